"""User folders: where a user's configuration and state lie, as the XDG base directories have them."""

from __future__ import annotations

import os
import pwd
from collections.abc import Mapping
from pathlib import Path

from hushcast_protocol.base.errors import UsageError


def config_home(environment: Mapping[str, str] = os.environ) -> Path:
    """Return `$XDG_CONFIG_HOME` or `~/.config`; raise `UsageError` where nobody knows a home."""
    return xdg_folder("XDG_CONFIG_HOME", environment) or _home(environment) / ".config"


def state_home(environment: Mapping[str, str] = os.environ) -> Path:
    """Return `$XDG_STATE_HOME` or `~/.local/state`; raise `UsageError` where nobody knows a home."""
    return xdg_folder("XDG_STATE_HOME", environment) or _home(environment) / ".local" / "state"


def xdg_folder(variable: str, environment: Mapping[str, str]) -> Path | None:
    """Return what a variable names; a relative path is no folder, as the specification has it."""
    path = Path(environment.get(variable, ""))
    return path if path.is_absolute() else None


def _home(environment: Mapping[str, str]) -> Path:
    if (home := Path(environment.get("HOME", ""))).is_absolute():
        return home
    try:
        return Path(pwd.getpwuid(os.geteuid()).pw_dir)
    except KeyError:
        raise UsageError("this user has no home: HOME is not set, and /etc/passwd has no entry") from None
