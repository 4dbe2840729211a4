"""What is said of a program that does not run: its unit, when it wrote last, and what to type next."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from hushcast_runtime.processes.program import Program

if TYPE_CHECKING:
    from hushcast.control_messages import Finding

_WITHIN = 5.0  # seconds; a service manager that takes longer is not asked
_ASKED = ("LoadState", "ActiveState", "SubState", "Result", "StatusText")


def finding_of_stopped(program: Program, config: Path, state: Path, unit: str | None) -> Finding:
    """Return what keeps a program from running as far as can be seen from here, and what to type.

    `unit` is the one that would run this configuration, `None` where the package has none.
    """
    from hushcast_protocol.base.findings import warning

    shown = _shown(unit) if unit is not None else {}
    if unit is None or shown.get("LoadState") != "loaded":
        found = f"no unit of this machine runs {config}{_last_written(state)}"
        return warning("service", found, f"hushcast run --config {config}")
    active, result = shown.get("ActiveState", ""), shown.get("Result", "success")
    said = f"; it said last: {shown['StatusText']}" if shown.get("StatusText") else ""
    why = f", {result}" if result != "success" else ""
    found = f"{unit} is {active} ({shown.get('SubState')}{why}){said}{_last_written(state)}"
    log = f"journalctl -u {unit} -n 30 says why"
    if active == "inactive":
        return warning("service", found, f"systemctl enable --now {unit}")
    return warning(
        "service", found, log if active == "activating" else f"{log}; then systemctl restart {unit}"
    )


def _shown(unit: str) -> Mapping[str, str]:
    """Return what the service manager tells of a unit; nothing where there is no such manager."""
    command = ["systemctl", "show", unit, *(f"--property={name}" for name in _ASKED)]
    try:
        done = subprocess.run(  # noqa: S603 - no shell, and a unit of the package
            command, capture_output=True, text=True, timeout=_WITHIN, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return {}
    return dict(line.partition("=")[::2] for line in done.stdout.splitlines())


def _last_written(state: Path) -> str:
    from hushcast_runtime.storage.state_layout import DATABASE
    from hushcast_runtime.wording import counted

    # Whoever reads the database, as the doctor does, may write SQLite's shared memory, and an empty log.
    files = (state / DATABASE, state / f"{DATABASE}-wal")
    found = [looked.st_mtime for file in files if file.exists() and (looked := file.stat()).st_size > 0]
    if not found:
        return ""
    minutes = max(0, round((time.time() - max(found)) / 60))
    if minutes < 120:
        ago = counted(minutes, "minute")
    elif minutes < 48 * 60:
        ago = counted(round(minutes / 60), "hour")
    else:
        ago = counted(round(minutes / 1440), "day")
    return f"; its state was last written {ago} ago"
