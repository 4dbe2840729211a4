"""Located feeds: what an owner, a provider and a subscriber run.

async with hushcast.connect() as daemon:
    feed = hushcast_located.subscribe(daemon, offer, at=(60.17, 24.94), keywords=["shoe", "discount"])
    async with feed:
        async for event in feed:
            if isinstance(event, hushcast_located.Interval):
                for message in event.messages:
                    print(message.text)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hushcast_located.following.events import (
        Event,
        Interval,
        Lapsed,
        Message,
        NewWeights,
        Unanswered,
        Uncovered,
    )
    from hushcast_located.following.feed import Feed
    from hushcast_located.following.subscribe import read_offer_given, subscribe, unsubscribe
    from hushcast_protocol.spatial.following import Accepted, Trouble
    from hushcast_protocol.spatial.problems import Problem

_HOME = {
    **dict.fromkeys(
        (
            *("Event", "Interval", "Lapsed", "Message"),
            *("NewWeights", "Unanswered", "Uncovered"),
        ),
        "hushcast_located.following.events",
    ),
    "Feed": "hushcast_located.following.feed",
    **dict.fromkeys(("read_offer_given", "subscribe", "unsubscribe"), "hushcast_located.following.subscribe"),
    **dict.fromkeys(("Accepted", "Trouble"), "hushcast_protocol.spatial.following"),
    "Problem": "hushcast_protocol.spatial.problems",
}

__all__ = [
    "Accepted",
    "Event",
    "Feed",
    "Interval",
    "Lapsed",
    "Message",
    "NewWeights",
    "Problem",
    "Trouble",
    "Unanswered",
    "Uncovered",
    "read_offer_given",
    "subscribe",
    "unsubscribe",
]


def __getattr__(name: str) -> Any:
    """Import what is asked for: commands that need one part of it start without the rest."""
    if name not in _HOME:
        raise AttributeError(f"module 'hushcast_located' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return __all__
