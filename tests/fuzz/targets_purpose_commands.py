"""Targets: how clients of a gateway speak of purposes, in topics and in user properties."""

from __future__ import annotations

from collections.abc import Iterator

from fuzzing import Target

from hushcast_gateway.purposes.commands import (
    RegisterCommand,
    ReserveCommand,
    filter_of,
    is_command,
    read_command,
    read_subscription,
)
from hushcast_protocol.mqtt.topics.topic_filters import is_filter
from hushcast_protocol.mqtt.wire.packets import Properties
from hushcast_protocol.purposes.message_purposes import MAX_NAMED, UnreadablePurposes, has_terms, read_terms


def _parts(data: bytes) -> tuple[str, Properties]:
    """A first line is a topic or filter, each other one a property, its name up to the first `=`."""
    first, *others = data.decode(errors="replace").split("\n")
    pairs = [(name, value) for name, _, value in (one.partition("=") for one in others)]
    return first, {"user_property": pairs} if pairs else {}


def _command(data: bytes) -> object:
    """What is published: a command that names a filter names a valid one."""
    topic, properties = _parts(data)
    if not is_command(topic):
        given = properties.get("user_property", ())
        terms = read_terms(given)
        assert (terms is not None) == has_terms(given)
        return terms
    command = read_command(topic, b"", properties)
    if (wanted := getattr(command, "filter", None)) is not None:
        assert is_filter(wanted)
    if isinstance(command, ReserveCommand | RegisterCommand):
        pip = command.pip if isinstance(command, ReserveCommand) else ()
        assert all((*command.aip, *pip))
        assert max(len(command.aip), len(pip)) <= MAX_NAMED
    return command


def _subscription(data: bytes) -> object:
    """A filter of SUBSCRIBE means what UNSUBSCRIBE means by the same."""
    wanted, properties = _parts(data)
    if not is_filter(wanted):
        filter_of(wanted)
        return None
    found, purpose = read_subscription(wanted, properties)
    assert is_filter(found)
    assert filter_of(wanted) == found
    return purpose


def _commands() -> Iterator[bytes]:
    yield from (b"!RESERVE/a/HASH{x,y/z|y}", b"!RESERVE/a{!}", b"!RESERVE/a{b}/PLUS{}", b"!PBAC/CRES/a/HASH")
    yield from (b"!PBAC/PRESUB/me/a/HASH{x}", b"!PBAC/SET/strict", b"!PBAC/PRESUB/me/a{!}")
    yield from (b"!RESERVE/a/HASH\naip=x,y\npip=z", b"!RESERVE/a\nreserve=remove")
    yield from (b"$DAP/purpose_management\nDAP-MP=x,y:a/#", b"a/b\naip=x\npip=y", b"a\nDAP-MP=x")


def _subscriptions() -> Iterator[bytes]:
    yield from (
        b"a/#\nap=x",
        b"!AP/a/HASH{x/y}",
        b"$share/g/!AP/a/PLUS{x}",
        b"!AP/$share/g/a{x}",
        b"a\nDAP-SP=x",
    )


TARGETS = [
    Target("purpose-commands", _command, _commands, (UnreadablePurposes,)),
    Target("purpose-subscriptions", _subscription, _subscriptions, (UnreadablePurposes,), weight=5),
]
