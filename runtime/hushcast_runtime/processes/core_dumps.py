"""Core dumps: forbidden, for a daemon's memory holds topics, messages and keys."""

from __future__ import annotations

import ctypes
import os
import resource

from hushcast_protocol.base.errors import UsageError

_PR_GET_DUMPABLE, _PR_SET_DUMPABLE = 3, 4  # linux/prctl.h
_libc = ctypes.CDLL(None, use_errno=True)


def forbid_core_dumps() -> None:
    """Make the kernel write no image of this process, nor let others of its user read its memory.

    The limit alone is not enough: the kernel ignores it where a program takes the dumps (core(5)).
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if _libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0) != 0:
        raise UsageError(f"core dumps cannot be forbidden: {os.strerror(ctypes.get_errno())}")


def core_dumps_are_forbidden() -> bool:
    """Tell whether the kernel would write nothing, whatever ends this process."""
    return _libc.prctl(_PR_GET_DUMPABLE, 0, 0, 0, 0) == 0 and resource.getrlimit(resource.RLIMIT_CORE)[0] == 0
