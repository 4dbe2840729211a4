"""Where the daemon's socket is."""

from __future__ import annotations

import os
from pathlib import Path

from hushcast.errors import NoDaemon

SYSTEM_SOCKET = Path("/run/hushcast/control.sock")
VARIABLE = "HUSHCAST_SOCKET"


def daemon_socket(path: str | os.PathLike[str] | None = None) -> Path:
    """Return `path`, or what `HUSHCAST_SOCKET` says, or the first of the usual places that exists.

    These are `$XDG_RUNTIME_DIR/hushcast/control.sock` and `/run/hushcast/control.sock`. Raises `NoDaemon`.
    """
    chosen = path or os.environ.get(VARIABLE)
    if chosen:
        return Path(chosen)
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    usual = [Path(runtime) / "hushcast" / "control.sock"] if runtime and Path(runtime).is_absolute() else []
    usual.append(SYSTEM_SOCKET)
    for place in usual:
        if _exists(place):
            return place
    places = " or ".join(map(str, usual))
    raise NoDaemon(
        f"no daemon at {places}: start one with `hushcast node run`, or name its socket with --socket or "
        f"{VARIABLE}"
    )


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except PermissionError:
        return True  # asking it tells why not
