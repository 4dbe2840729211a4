"""Extras: what some commands need beyond a daemon, and how it is had where this program was installed."""

from __future__ import annotations

import sys
from pathlib import Path

PACKAGE_PREFIX = "/opt/hushcast"  # where the Debian package has its environment, which has no pip
_WHEELS = Path("/usr/share/hushcast")


def how_to_get(extra: str, prefix: str = sys.prefix, wheels: Path = _WHEELS) -> str:
    """Return the command that installs an extra; of the Debian package, into another environment."""
    wheel = next(iter(wheels.glob("hushcast-*.whl")), None) if prefix == PACKAGE_PREFIX else None
    if wheel is None:
        return f"install it with `pip install 'hushcast[{extra}]'`"
    own = "~/hushcast"
    return (
        f"not in the Debian package: `python3 -m venv {own} && {own}/bin/pip install '{wheel}[{extra}]'`, "
        f"then use {own}/bin/hushcast"
    )
