"""Names of subscriptions: the topic that an application means by a text, a link or a handle.

A text names an open topic. Where the daemon is subscribed to a topic of the same name that only a link names,
because it is private or has attributes, people who type the name mean that one: the text is refused.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from hushcast.handles import is_handle
from hushcast_local.subscription import LocalSubscription
from hushcast_protocol.base.errors import Refusal, UsageError
from hushcast_protocol.content.predicates import Predicate, parse_where
from hushcast_protocol.content.topics import LINK_SCHEME, Interest, Topic, parse_topic

_NEARLY_HANDLE = re.compile(r"\s*%[0-9a-fA-F]{4,}\s*\Z")  # cut off, too long, or with a space beside it


def open_or_held(held: Sequence[LocalSubscription], text: str, is_open: bool) -> Topic:
    """Return the topic of a new publication or subscription; `held` are the daemon's subscriptions.

    With `is_open` a text that is no handle is an open topic, whatever is held. Raises `UsageError`, also for
    a handle that was not copied whole, and `Refusal` where a text is the name of a held topic that it cannot
    stand for.
    """
    if is_handle(text):
        return _of_handle(held, text).interest.topic
    if _NEARLY_HANDLE.match(text) and not is_open:
        raise UsageError(
            "a handle is % and eight of 0 to 9 and a to f: copy it again, whole, or say that an open topic "
            "is meant (--open, open=True)"
        )
    topic = parse_topic(text)
    if not (is_open or text.startswith(LINK_SCHEME)) and (others := _namesakes(held, topic)):
        raise Refusal(f"{_described(others)}, or say that an open topic is meant (--open, open=True)")
    return topic


def wanted_interest(held: Sequence[LocalSubscription], text: str, where: str, is_open: bool) -> Interest:
    """Return what is to be subscribed to, a new one or one that is held; raises as `open_or_held`."""
    if is_handle(text):
        return _of_handle(held, text, where).interest
    topic = open_or_held(held, text, is_open)
    return Interest(topic, parse_where(where, topic.attributes))


def held_interest(
    held: Sequence[LocalSubscription], text: str, where: str | None
) -> tuple[Topic, Predicate | None]:
    """Return topic and condition of what is asked about; `None` where all subscriptions to the topic are.

    Raises `UsageError`, and `Refusal` for a handle that no subscription has.
    """
    if is_handle(text):
        interest = _of_handle(held, text, where).interest
        return interest.topic, interest.predicate
    topic = parse_topic(text)
    return topic, None if where is None else parse_where(where, topic.attributes)


def check_unlisted(held: Sequence[LocalSubscription], topic: Topic) -> None:
    """Raise `Refusal` where subscriptions that nothing was found among have the topic's name."""
    same = [one for one in held if one.interest.topic == topic]
    if same:
        raise Refusal(f"no subscription to this topic has this condition: there is {_handles(same)}")
    if others := _namesakes(held, topic):
        raise Refusal(_described(others))


def _of_handle(held: Sequence[LocalSubscription], text: str, where: str | None = None) -> LocalSubscription:
    one = next((one for one in held if one.handle == text), None)
    if one is None:
        raise Refusal("no subscription has this handle: `hushcast subscriptions` lists them")
    if where and parse_where(where, one.interest.topic.attributes) != one.interest.predicate:
        raise UsageError("a handle stands for a subscription with its condition: leave the other away")
    return one


def _namesakes(held: Sequence[LocalSubscription], topic: Topic) -> list[LocalSubscription]:
    """Return the subscriptions to other topics of the same name."""
    topics = ((one, one.interest.topic) for one in held)
    return [one for one, other in topics if other.name == topic.name and other != topic]


def _described(others: Sequence[LocalSubscription]) -> str:
    private = any(one.interest.topic.secret is not None for one in others)
    kind = "a private topic" if private else "a topic with attributes"
    return (
        f"this daemon is subscribed to {kind} of this name: give its link, or its handle {_handles(others)}"
    )


def _handles(held: Sequence[LocalSubscription]) -> str:
    return " or ".join(one.handle for one in held[:3])
