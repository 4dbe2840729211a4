"""What a followed feed tells: intervals that hold, and what is wrong, missing or changed."""

from __future__ import annotations

from dataclasses import dataclass, field

from hushcast.events import Disconnected, Lost, Reconnected
from hushcast_protocol.spatial.feed_events import FeedTrouble, RequestAccepted
from hushcast_protocol.spatial.places import degrees_of
from hushcast_protocol.spatial.verification_object import WantedMessage


@dataclass(frozen=True)
class FeedMessage:
    """A message that the owner signed and the subscription wants. Its `repr` does not show what it says."""

    id: str = field(repr=False)
    """By which the owner knows it, in its interval."""
    latitude: float = field(repr=False)
    """Degrees."""
    longitude: float = field(repr=False)
    """Degrees."""
    payload: bytes = field(repr=False)
    """At most 65,536 bytes."""

    @property
    def text(self) -> str:
        """The payload as UTF-8, with U+FFFD for what is none."""
        return self.payload.decode(errors="replace")


@dataclass(frozen=True)
class Interval:
    """An interval whose answer holds, with all of its messages that the subscription wants."""

    number: int
    start: int
    """Unix seconds."""
    seconds: int
    messages: tuple[FeedMessage, ...]
    is_late: bool
    """Whether it was told as missing, or not to hold, before."""
    is_complete: bool
    """`False` only with blur: what the provider was told does not cover the subscription by new weights."""


@dataclass(frozen=True)
class WeightsChange:
    """From an interval on the owner weighs words, or distances, otherwise."""

    number: int
    version: int


@dataclass(frozen=True)
class OwnerKeyChange:
    """From an interval on another key signs, to which the owner's old key has handed over."""

    number: int
    owner: str
    """The new key, in hexadecimal digits: for `owner`, whoever subscribes from now on."""


@dataclass(frozen=True)
class Unanswered:
    """The provider has not said so far that it took the subscription; it is asked again now and then."""

    seconds: float
    """Since it was asked first."""


@dataclass(frozen=True)
class Lapsed:
    """The subscription was not renewed in time, and is asked for anew: nothing says what came meanwhile."""


@dataclass(frozen=True)
class Uncovered:
    """By new weights or another rule of words, what the provider was told does not cover the subscription.

    Where something else does, it is told that, at some moment of the next minutes.
    """

    number: int
    """The interval from which on."""
    is_mended: bool


Event = (
    Interval
    | FeedTrouble
    | WeightsChange
    | OwnerKeyChange
    | RequestAccepted
    | Unanswered
    | Lapsed
    | Uncovered
    | Lost
    | Disconnected
    | Reconnected
)


def message(wanted: WantedMessage) -> FeedMessage:
    """Return a message as a program sees it."""
    return FeedMessage(wanted.id, *degrees_of(wanted.place), wanted.payload)
