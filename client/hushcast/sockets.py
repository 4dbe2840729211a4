"""Where the daemon's socket is."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from hushcast.errors import NoDaemon

SYSTEM_SOCKET = Path("/run/hushcast/control.sock")
VARIABLE = "HUSHCAST_SOCKET"


def daemon_socket(path: str | os.PathLike[str] | None = None) -> Path:
    """Return `path`, or what `HUSHCAST_SOCKET` says, or the first of the usual places that exists.

    These are `$XDG_RUNTIME_DIR/hushcast/control.sock`, `hushcast/control.sock` below `$XDG_STATE_HOME` or
    `~/.local/state`, where there is one if the other variable was not set, and `/run/hushcast/control.sock`.
    Raises `NoDaemon`.
    """
    chosen = path or os.environ.get(VARIABLE)
    if chosen:
        return Path(chosen)
    homes = (_folder("XDG_RUNTIME_DIR"), _folder("XDG_STATE_HOME") or _usual_state_home())
    usual = [home / "hushcast" / "control.sock" for home in homes if home is not None]
    usual.append(SYSTEM_SOCKET)
    for place in usual:
        if _exists(place):
            return place
    places = " or ".join(map(str, usual))
    raise NoDaemon(
        f"no daemon at {places}: start one with `hushcast run`, or name its socket with --socket or "
        f"{VARIABLE}"
    )


def _folder(variable: str) -> Path | None:
    path = Path(os.environ.get(variable, ""))
    return path if path.is_absolute() else None


def _usual_state_home() -> Path | None:
    with suppress(RuntimeError):  # nobody knows a home
        return Path.home() / ".local" / "state"
    return None


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except PermissionError:
        return True  # asking it tells why not
