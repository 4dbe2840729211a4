"""After a configuration was edited: the daemon that runs is told, or it is said how to have it read that."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from hushcast_cli.configuration.places import ProgramPlaces


def tell_daemon(state: Path) -> bool | None:
    """Have the daemon with this state read its configuration; `None` if none runs, false if we may not."""
    from hushcast_runtime.storage.state_lock import holder

    try:
        pid = holder(state)
        if pid is None:
            return None
        os.kill(pid, signal.SIGHUP)
    except (PermissionError, ProcessLookupError):
        return False
    return True


def how_to_apply(usual: ProgramPlaces, command: str, config: Path | None, told: bool | None) -> list[str]:
    """Return what is left to type after `tell_daemon`; `config` is the one that was named, if one was."""
    if told:
        return []
    if config is None and usual.unit is not None:
        return [f"systemctl {'enable --now' if told is None else 'reload'} {usual.unit}"]
    if told is None:
        return [f"hushcast run --config {config}" if config is not None else command]
    return ["have the daemon's user, or root, send it SIGHUP"]
