"""How clients speak of purposes: by the topics of the published program, or by user properties of version 5.

The topics are those of the paper's own program (Wolf et al., 2021), so that its clients work unchanged; a
filter's `#` and `+` are written `HASH` and `PLUS` there, each as a whole level. The properties `DAP-SP` and
`DAP-MP` are those of MQTT-DAP and read as `ap` and `aip`; by the topic that goes with the second a client
says once what it would say with each of its messages.
"""

from __future__ import annotations

from typing import NamedTuple

from hushcast_protocol.mqtt.topics.topic_filters import is_filter, is_name, split_share
from hushcast_protocol.mqtt.wire.packets import Properties
from hushcast_protocol.purposes import filter_spelling
from hushcast_protocol.purposes.message_purposes import (
    ALLOWING,
    DAP_ALLOWED,
    OF_TERMS,
    PROHIBITED,
    WHAT,
    Pairs,
    UnreadablePurposes,
    purposes_in,
    read_list,
)

RESERVE, SUBSCRIBE, MESSAGE, CONTROL = "!RESERVE", "!AP", "!AIP", "!PBAC"
FIRST_LEVELS = frozenset({RESERVE, SUBSCRIBE, MESSAGE, CONTROL})
DAP = "$DAP"
DAP_REGISTER = f"{DAP}/purpose_management"
PURPOSE, DAP_PURPOSE = "ap", "DAP-SP"
_PURPOSES = frozenset({PURPOSE, DAP_PURPOSE})
_REMOVE = "remove"
MAX_COMMAND = 4_096  # characters of a command's topic: the longest filter, and purposes of a long list


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


def is_command(topic: str) -> bool:
    """Tell whether what is published to a topic speaks of purposes; none of it is ever delivered."""
    first = topic[:1]
    return (first == "!" and topic.partition("/")[0] in FIRST_LEVELS) or (
        first == "$" and topic.partition("/")[0] == DAP
    )


def read_command(topic: str, payload: bytes, properties: Properties) -> Command:
    """Return the command that was published; raises `UnreadablePurposes`."""
    given = properties.get("user_property", [])
    if len(topic) > MAX_COMMAND:
        raise UnreadablePurposes(f"a command has {MAX_COMMAND} characters at most")
    if topic == DAP_REGISTER:
        return _dap(given)
    first, _, rest = topic.partition("/")
    if first == RESERVE:
        return _reservation(rest, given)
    if first == CONTROL:
        return _control(rest, payload)
    raise UnreadablePurposes("nothing is published to this topic")


def read_subscription(wanted: str, properties: Properties) -> tuple[str, str]:
    """Return the filter and the purpose, empty for none, of a filter in a SUBSCRIBE.

    Raises `UnreadablePurposes`.
    """
    named = {value for name, value in properties.get("user_property", []) if name in _PURPOSES}
    filter_, written = _stripped(wanted)
    named |= {written} if written else set()
    if len(named) > 1:
        raise UnreadablePurposes("a subscription has one purpose")
    return filter_, next(iter(named), "")


def filter_of(wanted: str) -> str:
    """Return the filter that a client means in UNSUBSCRIBE, the purpose left out."""
    try:
        return _stripped(wanted)[0]
    except UnreadablePurposes:
        return wanted


def connect_purpose(properties: Properties) -> str:
    """Return the purpose that a CONNECT names for subscriptions that name none; empty for none."""
    return next((value for name, value in properties.get("user_property", []) if name in _PURPOSES), "")


def _dap(given: Pairs) -> RegisterCommand:
    """Read MQTT-DAP's registration: one property, its purposes and its filter separated by a colon."""
    values = [value for name, value in given if name == DAP_ALLOWED]
    if len(values) != 1:
        raise UnreadablePurposes(f"one property {DAP_ALLOWED} is needed")
    purposes, _, wanted = values[0].partition(":")
    return RegisterCommand(_filter(wanted), read_list(purposes))


def _reservation(rest: str, given: Pairs) -> Command:
    """Read `FILTER{aip|pip}`, or a filter alone with the purposes in properties."""
    what = [value for name, value in given if name == WHAT]
    if not rest.endswith("}"):
        if what == [_REMOVE]:
            return ReleaseCommand(_filter(filter_spelling.filter_of(rest)))
        if what or not any(name in {*ALLOWING, PROHIBITED} for name, _ in given):
            raise UnreadablePurposes("a reservation names purposes, or says reserve=remove")
        return ReserveCommand(
            _filter(filter_spelling.filter_of(rest)),
            purposes_in(given, ALLOWING),
            purposes_in(given, {PROHIBITED}),
        )
    if given and (what or any(name in OF_TERMS for name, _ in given)):
        raise UnreadablePurposes("purposes stand in the topic or in properties, not in both")
    wanted, inside = _braced(rest)
    if inside == "!":
        return ReleaseCommand(wanted)
    aip, _, pip = inside.partition("|")
    return ReserveCommand(wanted, read_list(aip), read_list(pip))


def _control(rest: str, payload: bytes) -> Command:
    name, _, argument = rest.partition("/")
    if name == "PRESUB":
        client_id, _, behind = argument.partition("/")
        if not client_id:
            raise UnreadablePurposes("a presubscription names a client")
        wanted, purpose = _braced(behind)
        return PresubscribeCommand(client_id, wanted, "" if purpose == "!" else _one(purpose))
    if name == "WITHDRAW":
        topic = filter_spelling.filter_of(argument)
        if not is_name(topic):
            raise UnreadablePurposes("a withdrawal names one topic")
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
        raise UnreadablePurposes("this is no topic filter")
    return found, _one(purpose)


def _braced(text: str) -> tuple[str, str]:
    """Split `FILTER{…}`; purposes hold no braces, filters may."""
    wanted, brace, inside = text.rpartition("{")
    if not brace or not inside.endswith("}"):
        raise UnreadablePurposes("purposes stand in braces at the end")
    return _filter(filter_spelling.filter_of(wanted)), inside[:-1]


def _filter(wanted: str) -> str:
    if not is_filter(wanted) or split_share(wanted) is not None:
        raise UnreadablePurposes("this is no topic filter")
    return wanted


def _one(purpose: str) -> str:
    if not purpose or set(purpose) & set(",|"):
        raise UnreadablePurposes("one purpose is named here")
    return purpose
