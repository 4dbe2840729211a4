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
    from hushcast_located.subscriber.events import (
        Event,
        FeedMessage,
        Interval,
        Lapsed,
        OwnerKeyChange,
        Unanswered,
        Uncovered,
        WeightsChange,
    )
    from hushcast_located.subscriber.feed import Feed
    from hushcast_located.subscriber.feed_subscription import read_offer_given, subscribe, unsubscribe
    from hushcast_protocol.spatial.answer_problems import AnswerProblem
    from hushcast_protocol.spatial.feed_events import FeedTrouble, RequestAccepted

_HOME = {
    **dict.fromkeys(
        (
            *("Event", "FeedMessage", "Interval", "OwnerKeyChange", "Lapsed"),
            *("Unanswered", "Uncovered", "WeightsChange"),
        ),
        "hushcast_located.subscriber.events",
    ),
    "Feed": "hushcast_located.subscriber.feed",
    **dict.fromkeys(
        ("read_offer_given", "subscribe", "unsubscribe"), "hushcast_located.subscriber.feed_subscription"
    ),
    **dict.fromkeys(("FeedTrouble", "RequestAccepted"), "hushcast_protocol.spatial.feed_events"),
    "AnswerProblem": "hushcast_protocol.spatial.answer_problems",
}

__all__ = [
    "AnswerProblem",
    "Event",
    "Feed",
    "FeedMessage",
    "FeedTrouble",
    "Interval",
    "Lapsed",
    "OwnerKeyChange",
    "RequestAccepted",
    "Unanswered",
    "Uncovered",
    "WeightsChange",
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
