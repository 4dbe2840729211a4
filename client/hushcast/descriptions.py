"""What a daemon tells of itself: what it is subscribed to, what waits in its outbox."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hushcast.control_messages import Finding

__all__ = ["Finding", "Publication", "Subscription", "Unsent"]


@dataclass(frozen=True)
class Publication:
    """A message that is on the daemon's disk, or that a relay took over."""

    id: str
    """64 hexadecimal digits."""
    topic: str = field(repr=False)
    """The topic's name."""
    token: bytes = field(repr=False, compare=False)
    """By which the daemon knows it when it is asked again."""
    outlook: str = field(default="", compare=False)
    """At a daemon under cover, for people: when it goes, and when its receipt may be there."""


@dataclass(frozen=True)
class Subscription:
    """A subscription that the daemon holds."""

    handle: str
    """What stands in a topic's place for this one, also where its link is lost."""
    topic: str = field(repr=False)
    """The topic's name."""
    where: str = field(repr=False)
    """The condition on its attributes; empty where there is none."""
    is_private: bool
    """Whether nobody reads it without its link."""
    attributes: list[str] = field(repr=False)
    """Names of the topic's attributes."""
    is_ready: bool
    """Whether messages reach it."""
    since: float
    """Unix seconds."""
    cursor: int
    """Its newest message's."""
    shown: int
    """That of the last message that a program was done with."""
    acknowledged: int
    """That of the last message that does not come again."""
    dropped: int
    """Messages that were removed, too old or too many, before anybody acknowledged them."""
    described: dict[str, Any] = field(repr=False)
    """All that the daemon tells, with what its carrier adds."""


@dataclass(frozen=True)
class Unsent:
    """A publication in the outbox: it waits for a receipt, or was given up."""

    id: str
    """64 hexadecimal digits."""
    topic: str = field(repr=False)
    """The topic's name."""
    since: float
    """Unix seconds."""
    state: str
    """`dropping`, `waiting` or `given up`."""
    receipts: int
    """Of relays that have it."""
    attempts: int
    """So far."""
    reason: str | None
    """Why the last attempt failed."""
    next_attempt: float | None
    """Unix seconds; `None` while it is handed over, and where it was given up."""
    described: dict[str, Any] = field(repr=False)
    """All that the daemon tells."""


def subscription(told: dict[str, Any]) -> Subscription:
    """Return a subscription that the daemon described."""
    return Subscription(
        told["handle"],
        told["topic"],
        told["where"],
        told["private"],
        told["attributes"],
        told["ready"],
        told["since"],
        told["cursor"],
        told["shown"],
        told["acknowledged"],
        told["dropped"],
        told,
    )


def unsent(told: dict[str, Any]) -> Unsent:
    """Return a publication that the daemon described."""
    return Unsent(
        told["id"],
        told["topic"],
        told["since"],
        told["state"],
        told["receipts"],
        told["attempts"],
        told["reason"],
        told["next_attempt"],
        told,
    )
