"""Seats in a root's configuration: listed, or given to another broker, as text, so that all else stays."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
from msgspec import structs

from hushcast_brokers.broker.settings import RootSettings, load_broker, parse_broker
from hushcast_brokers.broker.summary import short
from hushcast_brokers.broker_sections import NETWORK_FILE, BrokerFile, BrokerSection, broker_lines
from hushcast_brokers.network_file import BrokersNetworkFile
from hushcast_cli.configuration.config_files import check_edited, write_edited
from hushcast_cli.configuration.operator_files import read_given
from hushcast_protocol.base.addresses import Address
from hushcast_protocol.base.errors import UsageError
from hushcast_runtime.processes.config import parse_toml
from hushcast_runtime.toml import read_toml

ROOT = "root"
"""What is typed for the root in the place of a key."""
_LEAST_DIGITS = 8  # of a key that is typed: one by chance in four thousand million


def read_broker(file: Path) -> BrokerSection:
    """Return what a broker gave out; raise `UsageError` that names the key and the reason."""
    data, where = read_given(file)
    try:
        return parse_toml(data, where, BrokerFile).brokers[0]
    except UsageError as error:
        raise UsageError(f"{error} (it takes broker.toml, as the broker wrote it)") from None


def load_root(config: Path) -> RootSettings:
    """Read the root's configuration; raise `UsageError` for that of another broker."""
    settings = load_broker(config)
    if not isinstance(settings, RootSettings):
        raise UsageError(f"{config} is an {settings.role} broker's: the root alone lists brokers")
    return settings


def admit_broker(config: Path, broker: BrokerSection, parent: str | None) -> tuple[RootSettings, bool]:
    """List a broker in the root's configuration; return what that says then, and whether the broker is new.

    `parent` is the beginning of a key, or `root`, instead of what the broker asks for. Raises `UsageError`,
    and then changes nothing.
    """
    before = load_root(config)
    known = next((one for one in before.listed if one.key == broker.key), None)
    if parent is not None:
        above = None if parent == ROOT else _listed(before, parent).key
        broker = structs.replace(broker, parent=above)
    elif known is not None:
        broker = structs.replace(broker, parent=known.parent)  # as its operator was told, whatever it asks
    if known == broker:
        return before, False
    if known is not None:
        raise UsageError(
            f"{config} lists this broker with another role, address or parent: change its lines there,"
            " or `hushcast admin broker replace` it"
        )
    _check_not_root(before, broker)
    lines = broker_lines(bytes.fromhex(broker.key), Address(broker.address), broker.role, broker.parent)
    return _write(config, lambda text: f"{text.rstrip()}\n\n{lines}", [*before.listed, broker]), True


def replace_broker(config: Path, old: str, broker: BrokerSection) -> tuple[RootSettings, BrokerSection]:
    """Give a broker's seat, and all below it, to another one; return the settings then, and who had it.

    `old` is the beginning of its key. Raises `UsageError`, and then changes nothing.
    """
    before = load_root(config)
    former = _listed(before, old)
    if broker.role != former.role:
        raise UsageError(
            f"the new broker is an {broker.role} broker and {short(former.key)} an {former.role} one: whoever"
            f' takes its place needs `role = "{former.role}"`'
        )
    _check_not_root(before, broker)
    fresh = [
        structs.replace(
            one,
            key=broker.key if one is former else one.key,
            address=broker.address if one is former else one.address,
            parent=broker.key if one.parent == former.key else one.parent,
        )
        for one in before.listed
    ]

    def edited(text: str) -> str:
        return text.replace(former.key, broker.key).replace(f'"{former.address}"', f'"{broker.address}"')

    return _write(config, edited, fresh), former


def _listed(settings: RootSettings, digits: str) -> BrokerSection:
    found = [one for one in settings.listed if one.key.startswith(digits.lower().removesuffix("…"))]
    if len(digits) < _LEAST_DIGITS or len(found) != 1:
        say = "several brokers" if len(digits) >= _LEAST_DIGITS and found else "no broker"
        raise UsageError(
            f"{say} listed with a key that begins with {digits!r}: give at least {_LEAST_DIGITS} digits of"
            " it, as `hushcast admin broker tree` shows them"
        )
    return found[0]


def _check_not_root(settings: RootSettings, broker: BrokerSection) -> None:
    """Raise `UsageError` for the root itself, whose key and address are known once it has run."""
    file = settings.state_path() / NETWORK_FILE
    try:
        network = parse_toml(file.read_bytes(), str(file), BrokersNetworkFile).network
    except (OSError, UsageError):
        return
    if broker.key == network.root_key:
        raise UsageError("this is the root itself, which has its seat already")
    if broker.address == network.root:
        raise UsageError("this broker has the root's address: each broker has one of its own")


def _write(config: Path, edit: Callable[[str], str], listed: list[BrokerSection]) -> RootSettings:
    """Edit the text so that it lists these brokers, and write it; raise `UsageError`, and write nothing."""
    text = config.read_text("utf-8")
    fresh, expected = edit(text), read_toml(text) | {"brokers": [_plain(one) for one in listed]}
    check_edited(fresh, expected, str(config), "brokers")
    try:
        settings = parse_broker(fresh.encode(), str(config))
    except UsageError as error:
        raise UsageError(f"{error} (nothing was changed)") from None
    assert isinstance(settings, RootSettings)
    write_edited(config, fresh)
    return settings


def _plain(one: BrokerSection) -> dict[str, Any]:
    return {name: value for name, value in msgspec.to_builtins(one).items() if value is not None}
