"""How clients speak of purposes: by the topics of the published program, or by user properties of version 5.

The topics are those of the paper's own program (Wolf et al., 2021), so that its clients work unchanged; a
filter's `#` and `+` are written `HASH` and `PLUS` there, each as a whole level. The properties `DAP-SP` and
`DAP-MP` are those of MQTT-DAP and read as `ap` and `aip`; by the topic that goes with the second a client
says once what it would say with each of its messages.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import NamedTuple

from hushcast_gateway.purposes.withdrawals import WITHDRAWN_BY
from hushcast_protocol.base.errors import HushcastError
from hushcast_protocol.mqtt.packets import Properties
from hushcast_protocol.mqtt.topic_filters import is_filter, is_name, split_share
from hushcast_protocol.purposes import filter_spelling
from hushcast_protocol.purposes.purpose_names import Purpose, ancestors
from hushcast_protocol.purposes.sealed_messages import OpenedContent

RESERVE, SUBSCRIBE, MESSAGE, CONTROL = "!RESERVE", "!AP", "!AIP", "!PBAC"
FIRST_LEVELS = frozenset({RESERVE, SUBSCRIBE, MESSAGE, CONTROL})
DAP = "$DAP"
DAP_REGISTER = f"{DAP}/purpose_management"
PURPOSE, ALLOWED, PROHIBITED, WHAT = "ap", "aip", "pip", "reserve"
DAP_PURPOSE, DAP_ALLOWED = "DAP-SP", "DAP-MP"
_PURPOSES = frozenset({PURPOSE, DAP_PURPOSE})
OPENED = "hushcast-opened-for"
"""What the gateway writes beside a message that came sealed: for which purposes it opened.

Each that was granted, with `/#` where it is for all below, too.
"""
ALLOWING = frozenset({ALLOWED, DAP_ALLOWED})
_TERMS = frozenset({ALLOWED, PROHIBITED, DAP_ALLOWED, OPENED})
_REMOVE = "remove"
MAX_COMMAND = 4_096  # characters of a command's topic: the longest filter, and purposes of a long list
MAX_NAMED = 64  # purposes of one command: as many as a packet may have user properties


class UnreadableCommand(HushcastError):
    """A client wrote what means nothing; `str` says what, without what it wrote."""


class ReserveCommand(NamedTuple):
    """A reservation: purposes as they were written."""

    filter: str
    aip: tuple[str, ...]
    pip: tuple[str, ...]


class RegisterCommand(NamedTuple):
    """What a client publishes from now on, as long as it is connected, may be used for."""

    filter: str
    aip: tuple[str, ...]


class ReleaseCommand(NamedTuple):
    """A reservation is taken away."""

    filter: str


class PresubscribeCommand(NamedTuple):
    """Subscriptions of a client to a filter get a purpose; an empty one takes that away."""

    client_id: str
    filter: str
    purpose: str


class ControlCommand(NamedTuple):
    """A command of the published program to the broker: `SET`, `CLEAR`, `CRES` and others."""

    name: str
    argument: str
    value: bytes


Command = ReserveCommand | RegisterCommand | ReleaseCommand | PresubscribeCommand | ControlCommand


class MessagePurposes(NamedTuple):
    """What a message of its own says it may be used for; without `aip`, what it must not be used for."""

    aip: tuple[str, ...] | None
    pip: tuple[str, ...]


def is_command(topic: str) -> bool:
    """Tell whether what is published to a topic speaks of purposes; none of it is ever delivered."""
    first = topic[:1]
    return (first == "!" and topic.partition("/")[0] in FIRST_LEVELS) or (
        first == "$" and topic.partition("/")[0] == DAP
    )


def read_command(topic: str, payload: bytes, properties: Properties) -> Command:
    """Return the command that was published; raises `UnreadableCommand`."""
    given = properties.get("user_property", [])
    if len(topic) > MAX_COMMAND:
        raise UnreadableCommand(f"a command has {MAX_COMMAND} characters at most")
    if topic == DAP_REGISTER:
        return _dap(given)
    first, _, rest = topic.partition("/")
    if first == RESERVE:
        return _reservation(rest, given)
    if first == CONTROL:
        return _control(rest, payload)
    raise UnreadableCommand("nothing is published to this topic")


def read_subscription(wanted: str, properties: Properties) -> tuple[str, str]:
    """Return filter and purpose, empty for none, of a filter in a SUBSCRIBE; raises `UnreadableCommand`."""
    named = {value for name, value in properties.get("user_property", []) if name in _PURPOSES}
    filter_, written = _stripped(wanted)
    named |= {written} if written else set()
    if len(named) > 1:
        raise UnreadableCommand("a subscription has one purpose")
    return filter_, next(iter(named), "")


def filter_of(wanted: str) -> str:
    """Return the filter that a client means in UNSUBSCRIBE, the purpose left out."""
    try:
        return _stripped(wanted)[0]
    except UnreadableCommand:
        return wanted


def connect_purpose(properties: Properties) -> str:
    """Return the purpose that a CONNECT names for subscriptions that name none; empty for none."""
    return next((value for name, value in properties.get("user_property", []) if name in _PURPOSES), "")


def has_terms(properties: Properties) -> bool:
    """Tell whether a message has terms of its own."""
    return any(name in _TERMS for name, _ in properties.get("user_property", ()))


def is_apart(properties: Properties) -> bool:
    """Tell whether a message is decided apart from its topic's others: it has terms, or can be withdrawn."""
    return has_terms(properties) or any(
        name == WITHDRAWN_BY for name, _ in properties.get("user_property", ())
    )


def opened_for(properties: Properties, opened: OpenedContent) -> Properties:
    """Return the properties of a message that came sealed, with the purposes for which it opened."""
    given = properties.get("user_property", [])
    written = sorted(f"{one}/#" if one in opened.throughout else one for one in opened.purposes)
    return {**properties, "user_property": [*given, (OPENED, ",".join(written))]}


def is_opened_for(
    properties: Properties, purpose: Purpose | None, granted: Container[str] | None = None
) -> bool:
    """Tell whether a message opened for a purpose that is `granted` still, or did not come sealed.

    A client that writes the property itself narrows: what it says and what the gateway says both count.
    """
    found = [value for name, value in properties.get("user_property", ()) if name == OPENED]
    if not found or purpose is None:
        return not found
    still = [one for one in ancestors(purpose) if granted is None or one in granted]
    ways = {*(f"{above}/#" for above in still), *({purpose} & set(still))}
    return all(not ways.isdisjoint(value.split(",")) for value in found)


def read_terms(properties: Properties) -> MessagePurposes | None:
    """Return the terms of a message that is no command, `None` for none; raises `UnreadableCommand`."""
    given = properties.get("user_property", [])
    if any(name == WHAT for name, _ in given):
        raise UnreadableCommand(f"reservations are published to {RESERVE}/FILTER")
    if not has_terms(properties):
        return None
    allows = any(name in (ALLOWED, DAP_ALLOWED) for name, _ in given)
    return MessagePurposes(_named(given, ALLOWED, DAP_ALLOWED) if allows else None, _named(given, PROHIBITED))


def _dap(given: Iterable[tuple[str, str]]) -> RegisterCommand:
    """Read MQTT-DAP's registration: one property, its purposes and its filter separated by a colon."""
    values = [value for name, value in given if name == DAP_ALLOWED]
    if len(values) != 1:
        raise UnreadableCommand(f"one property {DAP_ALLOWED} is needed")
    purposes, _, wanted = values[0].partition(":")
    return RegisterCommand(_filter(wanted), _list(purposes))


def _reservation(rest: str, given: list[tuple[str, str]]) -> Command:
    """Read `FILTER{aip|pip}`, or a filter alone with the purposes in properties."""
    what = [value for name, value in given if name == WHAT]
    if not rest.endswith("}"):
        if what == [_REMOVE]:
            return ReleaseCommand(_filter(filter_spelling.filter_of(rest)))
        if what or not any(name in (ALLOWED, PROHIBITED, DAP_ALLOWED) for name, _ in given):
            raise UnreadableCommand("a reservation names purposes, or says reserve=remove")
        return ReserveCommand(
            _filter(filter_spelling.filter_of(rest)),
            _named(given, ALLOWED, DAP_ALLOWED),
            _named(given, PROHIBITED),
        )
    if what or any(name in _TERMS for name, _ in given):
        raise UnreadableCommand("purposes stand in the topic or in properties, not in both")
    wanted, inside = _braced(rest)
    if inside == "!":
        return ReleaseCommand(wanted)
    aip, _, pip = inside.partition("|")
    return ReserveCommand(wanted, _list(aip), _list(pip))


def _control(rest: str, payload: bytes) -> Command:
    name, _, argument = rest.partition("/")
    if name == "PRESUB":
        client_id, _, behind = argument.partition("/")
        if not client_id:
            raise UnreadableCommand("a presubscription names a client")
        wanted, purpose = _braced(behind)
        return PresubscribeCommand(client_id, wanted, "" if purpose == "!" else _one(purpose))
    if name == "WITHDRAW":
        topic = filter_spelling.filter_of(argument)
        if not is_name(topic):
            raise UnreadableCommand("a withdrawal names one topic")
        return ControlCommand(name, topic, payload)
    if name in ("CRES", "ARES"):
        return ControlCommand(name, _filter(filter_spelling.filter_of(argument)), payload)
    return ControlCommand(name, argument, payload)


def _stripped(wanted: str) -> tuple[str, str]:
    """Take `!AP/` and the purpose from a filter; `$share/GROUP/` may stand before it or behind."""
    share = split_share(wanted)
    inside = wanted if share is None else share[1]
    if not inside.startswith(f"{SUBSCRIBE}/"):
        return wanted, ""
    inside = inside.removeprefix(f"{SUBSCRIBE}/")
    if share is None and (share := split_share(inside)) is not None:
        inside = share[1]
    filter_, purpose = _braced(inside)
    found = filter_ if share is None else f"$share/{share[0]}/{filter_}"
    if not is_filter(found):
        raise UnreadableCommand("this is no topic filter")
    return found, _one(purpose)


def _braced(text: str) -> tuple[str, str]:
    """Split `FILTER{…}`; purposes hold no braces, filters may."""
    wanted, brace, inside = text.rpartition("{")
    if not brace or not inside.endswith("}"):
        raise UnreadableCommand("purposes stand in braces at the end")
    return _filter(filter_spelling.filter_of(wanted)), inside[:-1]


def _filter(wanted: str) -> str:
    if not is_filter(wanted) or split_share(wanted) is not None:
        raise UnreadableCommand("this is no topic filter")
    return wanted


def _one(purpose: str) -> str:
    if not purpose or set(purpose) & set(",|"):
        raise UnreadableCommand("one purpose is named here")
    return purpose


def _named(given: Iterable[tuple[str, str]], *names: str) -> tuple[str, ...]:
    """Return what all properties with these names list; one with an empty value lists nothing."""
    return _bounded([one for name, value in given if name in names for one in _list(value)])


def _list(text: str) -> tuple[str, ...]:
    return _bounded(text.split(",")) if text else ()


def _bounded(purposes: list[str]) -> tuple[str, ...]:
    if len(purposes) > MAX_NAMED or not all(purposes):
        raise UnreadableCommand(f"purposes are separated by commas, {MAX_NAMED} at most")
    return tuple(purposes)
