"""OpenSSL stays out of a program that does not use it: it is 5 MB of a process that seals with libsodium."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec
from threading import Lock
from types import ModuleType
from typing import Any

_LOCK = Lock()


class _LateModule(ModuleType):
    """Stands for a module until somebody asks for something in it, and leads there whoever imported it."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # whoever looks through all modules asks for these
            raise AttributeError(name)
        with _LOCK:
            if sys.modules.get(self.__name__) is self:
                del sys.modules[self.__name__]
        return getattr(import_module(self.__name__), name)


def spare_openssl() -> None:
    """Load it no sooner than for TLS. A program calls this before it loads anything else.

    `trio` imports `ssl`, which it uses for TLS alone; and `hashlib` takes its functions from OpenSSL where it
    can, though Python mostly has its own, which are as fast for what is short.
    """
    if "ssl" not in sys.modules:
        sys.modules["ssl"] = _LateModule("ssl")
    if find_spec("_sha3") is not None:  # else Python was built without
        sys.modules.setdefault("_hashlib", None)  # type: ignore[arg-type]
