"""Brokers as configurations list them: in the root's, and each in the file that its operator gives out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Annotated, Literal

import msgspec

from hushcast_protocol.base.addresses import Address, onion_address
from hushcast_protocol.base.errors import DecodeError, UsageError
from hushcast_protocol.base.wire import PublicKey
from hushcast_protocol.brokers.broker_tree import BrokerPosition, check_seats
from hushcast_runtime.processes.config import KeyText, Section, reachable
from hushcast_runtime.processes.network_file import toml_text

NETWORK_FILE = "network.toml"
"""In the root's state directory: the `[network]` section that brokers and daemons of the network need."""
BROKER_FILE = "broker.toml"
"""In another broker's state directory: the lines that the root's operator needs."""

_NOBODY = bytes(32)  # stands for the root, whose key is drawn when it starts


class BrokerSection(Section, frozen=True, kw_only=True):
    """A broker below the root, as its operator gives it out."""

    role: Literal["inner", "edge"]
    """`inner` has brokers below it, `edge` has clients."""
    key: KeyText
    """The broker's public key, 64 hexadecimal digits."""
    address: str
    """The broker's address, `….onion:7411`."""
    parent: KeyText | None = None
    """The key of the broker above it; the root unless given."""


class BrokerFile(Section, frozen=True, kw_only=True):
    """What a broker writes as `broker.toml`: its own lines and nothing else."""

    brokers: Annotated[tuple[BrokerSection, ...], msgspec.Meta(min_length=1, max_length=1)]


def seats_of(sections: Iterable[BrokerSection], root: PublicKey) -> tuple[BrokerPosition, ...]:
    """Return the seats of brokers whose sections were checked; the root's own is not among them."""
    return tuple(
        BrokerPosition(
            bytes.fromhex(one.key), one.address, one.role, bytes.fromhex(one.parent) if one.parent else root
        )
        for one in sections
    )


def check_brokers(sections: Sequence[BrokerSection], transport: str) -> None:
    """Raise `UsageError` that says which broker has no place in a tree, and what to do about it."""
    for number, one in enumerate(sections, 1):
        reachable(f"brokers #{number}.address", one.address, transport)
    _check_twice([one.key for one in sections], "key", "a broker has one seat, and one parent")
    _check_twice([one.address for one in sections], "address", "each broker has one of its own")
    roles = {one.key: one.role for one in sections}
    for number, one in enumerate(sections, 1):
        if one.parent is None:
            continue
        where = f"brokers #{number}.parent"
        if one.parent not in roles:
            raise UsageError(f"{where}: it is not listed: admit it first, or leave `parent` out for the root")
        if roles[one.parent] == "edge":
            raise UsageError(f"{where}: an edge broker has clients below it, no brokers: name an inner one")
    try:
        # Where nobody else can be, with this transport.
        somewhere = "127.0.0.1:1" if transport == "tor" else onion_address(_NOBODY)
        check_seats([BrokerPosition(_NOBODY, somewhere, "root", None), *seats_of(sections, _NOBODY)], _NOBODY)
    except DecodeError as error:
        raise UsageError(f"brokers: {error}: give one of them another parent, nearer to the root") from None


def _check_twice(values: Sequence[str], what: str, rule: str) -> None:
    found, times = next(iter(Counter(values).most_common(1)), ("", 0))
    if times > 1:
        numbers = [number for number, value in enumerate(values, 1) if value == found]
        raise UsageError(f"brokers: #{numbers[0]} and #{numbers[1]} have the same {what}: {rule}")


def broker_lines(key: PublicKey, address: Address, role: str, parent: str | None) -> str:
    """Return the lines that list a broker: as the root's operator is given them, and keeps them."""
    lines = f'[[brokers]]\nrole = "{role}"\nkey = "{key.hex()}"\naddress = {toml_text(address)}\n'
    return lines + (f'parent = "{parent}"\n' if parent is not None else "")
