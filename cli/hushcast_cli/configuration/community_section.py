"""Naming a community in a daemon's configuration: as text, so that comments and order stay."""

from __future__ import annotations

import re
from pathlib import Path

from hushcast_brokers.keys import COMMUNITY_KEY
from hushcast_cli.configuration.config_files import check_edited, write_edited
from hushcast_node.settings import NodeSettings
from hushcast_protocol.base.errors import UsageError
from hushcast_runtime.environment import system_environment
from hushcast_runtime.files import acting_as_owner, load_seed
from hushcast_runtime.processes.config import load_settings, parse_settings
from hushcast_runtime.toml import read_toml

_HEADER = re.compile(r"^[ \t]*\[[ \t]*brokers[ \t]*\][ \t]*(#.*)?$", re.MULTILINE)
_KEY = re.compile(r"[0-9a-f]{64}\Z")


def join_community(config: Path, keeper: str) -> tuple[str, bool]:
    """Have a daemon be in a community; return the key to admit it by, and whether the setting is new.

    Raises `UsageError`, and then changes nothing.
    """
    if not _KEY.match(keeper):
        raise UsageError(
            "a community is named by 64 hexadecimal digits, which `hushcast admin community new` shows"
        )
    settings = load_settings(config, NodeSettings)
    if not settings.has_communities:
        raise UsageError(f'{config}: its network has no communities: that takes privacy = "community"')
    if settings.brokers.community not in (None, keeper):
        raise UsageError(f"{config} names another community: take that line out first")
    is_new = settings.brokers.community is None
    fresh = _edited(config.read_text("utf-8"), keeper, str(config)) if is_new else ""
    state = settings.state_path()
    if not state.is_dir():
        raise UsageError(f"{state} is not there yet: start the daemon once, and type this again")
    with acting_as_owner(state):
        key = load_seed(state / COMMUNITY_KEY, system_environment().randomness).public()
    if is_new:
        parse_settings(fresh.encode(), str(config), NodeSettings)
        write_edited(config, fresh)
    return key.hex(), is_new


def _edited(text: str, keeper: str, where: str) -> str:
    line = f'community = "{keeper}"'
    if (header := _HEADER.search(text)) is not None:
        fresh = f"{text[: header.end()]}\n{line}{text[header.end() :]}"
    else:
        fresh = f"{text.rstrip()}\n\n[brokers]\n{line}\n"
    before = read_toml(text)
    expected = before | {"brokers": before.get("brokers", {}) | {"community": keeper}}
    check_edited(fresh, expected, where, "section `brokers`")
    return fresh
