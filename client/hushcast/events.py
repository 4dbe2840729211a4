"""What a subscription brings: messages, and what happened to messages that did not come."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from hushcast import control_messages

if TYPE_CHECKING:
    from hushcast_protocol.mqtt.envelope import OpenedEnvelope


@dataclass(frozen=True)
class Message:
    """A message. Its `repr` shows neither topic nor payload."""

    topic: str = field(repr=False)
    """The topic's name, which is no link: publish and acknowledge with what you subscribed to."""
    id: str
    """64 hexadecimal digits."""
    payload: bytes = field(repr=False)
    """At most 262,144 bytes, as its writer chose them."""
    received_at: float
    """Unix seconds at which the daemon got it."""
    cursor: int
    """Its place among the subscription's messages, from 1."""
    attributes: dict[str, str | int | float] = field(default_factory=dict, repr=False)
    """Those that its writer set, of the topic's; numbers as the topic's resolution rounds them."""
    author: str | None = field(default=None, repr=False)
    """The fingerprint of the key that signed it, whose signature holds; `None` where nobody signed."""
    past_day: float | None = None
    """Unix seconds at which its day began, if it was published before the day of the subscription."""
    path: str = field(default="", repr=False)
    """Of what was read for a purpose, where an MQTT client published it: `7/position` below the alias."""
    withdrawal: str = field(default="", repr=False)
    """Of what was read for a purpose, 64 hexadecimal digits: `Withdrawn` names it if the message is."""

    @property
    def text(self) -> str:
        """The payload as UTF-8, with U+FFFD for what is none: a stranger's bytes end no program."""
        return self.payload.decode(errors="replace")

    @property
    def mqtt(self) -> OpenedEnvelope:
        """What an MQTT client published: `payload`, `path` below the alias, `qos`, `retain`, `properties`.

        Of what has no envelope it is the payload alone.
        """
        from hushcast_protocol.mqtt.envelope import disclose  # of no use to most programs

        return disclose(self.payload)


@dataclass(frozen=True)
class Lost:
    """Messages that were removed, too old or too many, before this program got them."""

    topic: str = field(repr=False)
    """The topic's name."""
    count: int | None
    """How many; `None` where they waited elsewhere, and nobody knows how many there were, if any."""
    cursor: int
    """That of the last of them."""


@dataclass(frozen=True)
class Gap:
    """A message that another subscriber received, or that keepers had, and this daemon did not get."""

    topic: str = field(repr=False)
    """The topic's name."""
    id: str
    """64 hexadecimal digits."""


@dataclass(frozen=True)
class Unopened:
    """A message that does not open for the purpose of the subscription: it may not be used for that."""

    topic: str = field(repr=False)
    """The topic's name."""
    id: str
    """64 hexadecimal digits."""
    cursor: int
    """Its place among the subscription's messages, from 1."""
    problem: str
    """`not granted` as a rule; `form` where it is not sealed for purposes, `changed` where it was forged."""


@dataclass(frozen=True)
class Withdrawn:
    """The publisher of messages asks everybody who kept them to delete them; nobody else can ask that."""

    topic: str = field(repr=False)
    """The topic's name."""
    withdrawal: str = field(repr=False)
    """The `withdrawal` of these messages."""
    cursor: int
    """Its place among the subscription's messages, from 1."""


@dataclass(frozen=True)
class Coverage:
    """How much of the network reaches a subscription, as its probes say."""

    topic: str = field(repr=False)
    """The topic's name."""
    where: str = field(repr=False)
    """The condition on its attributes; empty where there is none."""
    probes: int
    """The daemon's own messages to itself that had time to arrive."""
    share: float | None
    """Of these, how many did; `None` before the first."""
    low: float | None
    """The lower end of the share's 95 % interval."""
    high: float | None
    """The upper end."""
    described: dict[str, Any] = field(repr=False)
    """All that the daemon's carrier tells."""


@dataclass(frozen=True)
class Disconnected:
    """The daemon went away; it is waited for."""


@dataclass(frozen=True)
class Reconnected:
    """The daemon is back, and messages come again."""


Event = Message | Lost | Gap | Unopened | Withdrawn | Coverage | Disconnected | Reconnected


def message(told: control_messages.MessageNotice) -> Message:
    """Return a message that the daemon told of."""
    payload = told.payload.encode() if told.encoding == "utf-8" else base64.b64decode(told.payload)
    about = told.attributes or {}, told.author, told.past_day
    return Message(told.topic, told.id, payload, told.received_at, told.cursor, *about)


def coverage(described: dict[str, Any]) -> Coverage:
    """Return the coverage that the daemon described."""
    return Coverage(
        described["topic"],
        described["where"],
        described.get("probes", 0),
        described.get("share"),
        described.get("low"),
        described.get("high"),
        described,
    )
