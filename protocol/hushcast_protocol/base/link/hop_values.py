"""Plain values around the hop machine: its rules, its states, and what it wants done."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import Any, Generic, TypeVar

import msgspec

from hushcast_protocol.base.crypto.secrets import Randomness
from hushcast_protocol.base.link.hop_link import ItemT, LinkState

LinkT = TypeVar("LinkT", bound=LinkState[Any])


@dataclass(frozen=True, slots=True)
class HopRules(Generic[ItemT]):
    """What all next hops of a daemon have in common."""

    holds: Callable[[ItemT], bool]
    """Whether the spool still holds an item: it may have expired, or gone another way."""
    randomness: Randomness
    goes_around: bool
    """Whether there are other ways: else what leads nowhere there is settled, and nothing counts as away."""
    dials: bool = True
    """Whether links are opened from here: else the other end opens them, and memory holds nothing without."""
    window: int | None = None
    """Bytes sent on a link before the next waits, where that is not `hop_link.MAX_UNACKNOWLEDGED`."""


class DialState(IntEnum):
    """Whether a link is being opened."""

    IDLE = 0
    DIALLING = 1
    PAUSED = 2


class BacklogState(IntEnum):
    """What becomes of the items that only the spool holds."""

    NONE = 0
    SPOOLED = 1
    READING = 2
    MOVING = 3


class HopCommand(Enum):
    """What is to be done, where the name says all."""

    DIAL = "open a link; answer with `link_up`, `dial_failed` or `dial_unneeded`"
    STOP_DIALLING = "nobody wants that link any more; no answer"
    GO_AROUND = "move the first items in the spool to other next hops; answer with `went_around`"
    WENT_AWAY = "it counts as away from now on"
    CAME_BACK = "it does not any more"


class SendItems(msgspec.Struct, Generic[LinkT, ItemT], frozen=True):
    """Write items to a link, in order."""

    link: LinkT
    items: list[ItemT]


class Settle(msgspec.Struct, Generic[ItemT], frozen=True):
    """Forget items in the spool: the next hop has taken them over."""

    items: list[ItemT]


class ReadBack(msgspec.Struct, Generic[ItemT], frozen=True):
    """Read the next items from the spool, and answer with `read_back`: none only where it has none there."""

    after: ItemT | None
    """What they are to stand behind; from the first on, if none."""


class Reroute(msgspec.Struct, Generic[ItemT], frozen=True):
    """Find another way for items that lead nowhere there; say `retry_later` if some have none."""

    items: list[ItemT]


class Close(msgspec.Struct, Generic[LinkT], frozen=True):
    """Close a link, which the machine does not count any more."""

    link: LinkT


HopActions = list[
    HopCommand | SendItems[LinkT, ItemT] | ReadBack[ItemT] | Settle[ItemT] | Reroute[ItemT] | Close[LinkT]
]
