"""Extras: what some commands need beyond a daemon, and how it is had where this program was installed.

No command names the package as an index would know it: there nobody holds the name, and an attacker may.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from urllib.parse import unquote, urlsplit

PACKAGE_PREFIX = "/opt/hushcast"  # where the Debian package has its environment, which has no pip
_WHEELS = Path("/usr/share/hushcast")


def how_to_get(
    extra: str, prefix: str = sys.prefix, wheels: Path = _WHEELS, record: str | None = None
) -> str:
    """Return the command that installs an extra; of the Debian package, into another environment.

    `record` is what pip wrote of where the package came from, unless given of the one that runs.
    """
    wheel = next(iter(wheels.glob("hushcast-*.whl")), None) if prefix == PACKAGE_PREFIX else None
    if wheel is not None:
        own = "~/hushcast"
        return (
            f"not in the Debian package: `python3 -m venv {own} && "
            f"{own}/bin/pip install '{wheel}[{extra}]'`, then use {own}/bin/hushcast"
        )
    flag, origin = _origin(_installed() if record is None else record)
    if origin is None:
        return (
            f"add the extra `{extra}` to the wheel or the checkout that was installed, by its path: "
            f"`{prefix}/bin/pip install './WHEEL[{extra}]'`"
        )
    return f"add it with `{prefix}/bin/pip install {flag}'{origin}[{extra}]'`"


def _installed() -> str:
    # Not above: it loads some sixty modules, which every command would wait for.
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        return distribution("hushcast").read_text("direct_url.json") or "{}"
    except PackageNotFoundError:
        return "{}"


def _origin(record: str) -> tuple[str, Path | None]:
    """Return pip's option, and the wheel or the checkout, if it is still there; a record is of PEP 610."""
    told = json.loads(record)
    url = urlsplit(told.get("url", ""))
    path = Path(unquote(url.path))
    if url.scheme != "file" or not path.exists():
        return "", None
    return "--editable " if told.get("dir_info", {}).get("editable") else "", path
