"""What is remembered between commands: where the last testnet is, so that it need not be typed each time."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from hushcast_cli.output import note
from hushcast_protocol.base.errors import UsageError
from hushcast_runtime.user_folders import state_home


def remember_testnet(directory: Path) -> None:
    """Remember a testnet that has come up; where that cannot be written, do without."""
    with suppress(OSError, UsageError):
        file = _file()
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        file.write_text(f"{directory.absolute()}\n")


def last_testnet() -> Path | None:
    """Return the directory of the testnet that came up last, if it is still there, and tell which it is."""
    try:
        directory = Path(_file().read_text().strip())
        if not directory.is_dir():
            return None
    except (OSError, ValueError, UsageError):
        return None
    note(f"the testnet in {directory}")
    return directory


def _file() -> Path:
    return state_home() / "hushcast" / "testnet"
