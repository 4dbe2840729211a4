"""Frames to keepers: what an origin hands in, and what anybody may ask of what is kept."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

import msgspec

from hushcast_protocol.base.errors import DecodeError
from hushcast_protocol.base.wire import Bytes16, Bytes32, Counter, Wire
from hushcast_protocol.content.kept_shares import MAX_KEPT_IDS
from hushcast_protocol.content.messages import MAX_BODY, TRAIL_SIZE, Message, check_message
from hushcast_protocol.overlay.kept_answers import MAX_AWAY

MAX_SHOWN = 64  # messages of one question: 75 kB of the smallest, and a first contact is dearer than these


class HandIn(Wire, frozen=True, tag="hand-in"):
    """Relay to keeper: a message that was dropped there, with its trunk alone and no trail.

    It has its number among the forwards of this link, and is acknowledged as they are: `unrouted` says that
    this end does not keep it.
    """

    message: Message


class AskKept(Wire, frozen=True, tag="ask-kept"):
    """Anybody to a keeper: what of a trunk and day it keeps, all or what came in one epoch."""

    day: Counter
    trunk: Bytes16
    epoch: Counter | None


class ShownKept(Wire, frozen=True, tag="kept"):
    """The answer, the same for all who ask: their ids in ascending order, none where it keeps none.

    `gave_way` counts messages of the trunk and day that it kept once, and had no room for: so many at most.
    `away` are the epochs of what was asked for, in ascending order, in which it was not there all the time.
    """

    ids: Annotated[tuple[Bytes32, ...], msgspec.Meta(max_length=MAX_KEPT_IDS)]
    gave_way: Counter
    away: Annotated[tuple[Counter, ...], msgspec.Meta(max_length=MAX_AWAY)] = ()


class AskKeptMessages(Wire, frozen=True, tag="ask-kept-messages"):
    """Anybody to a keeper: messages of a trunk and day."""

    day: Counter
    trunk: Bytes16
    ids: Annotated[tuple[Bytes32, ...], msgspec.Meta(min_length=1, max_length=MAX_SHOWN)]


class ShownKeptMessages(Wire, frozen=True, tag="kept-messages"):
    """The answer: those of them that are kept, as they were handed in, in the order of the question.

    Where their bodies have more than 256 KiB together, the first ones that have not, or the very first.
    """

    messages: Annotated[tuple[Message, ...], msgspec.Meta(max_length=MAX_SHOWN)]


KeeperRequest = AskKept | AskKeptMessages
KeeperAnswer = ShownKept | ShownKeptMessages


def to_hand_in(message: Message) -> Message:
    """Return what of a dropped message goes to keepers: not the attributes it would be routed by."""
    return Message(message.id, message.day, message.tokens[:1], bytes(TRAIL_SIZE), message.body)


def first_shown(sizes: Iterable[int]) -> int:
    """Return how many messages with bodies of these sizes, in order, go into one answer: the first does."""
    count = taken = 0
    for size in sizes:
        taken += size
        if count and taken > MAX_BODY:
            break
        count += 1
    return count


def check_shown(question: AskKeptMessages, answer: ShownKeptMessages) -> None:
    """Raise a `PeerError` unless all that is shown was asked for, once, and could have been handed in."""
    asked = set(question.ids)
    for message in answer.messages:
        if message.id not in asked or (message.day, message.tokens) != (question.day, (question.trunk,)):
            raise DecodeError("a keeper shows what it was not asked for")
        asked.remove(message.id)
        check_handed_in(message)


def check_handed_in(message: Message) -> None:
    """Raise unless an honest relay could hand a message in; raises as `check_message` does."""
    check_message(message)
    if len(message.tokens) > 1 or message.trail != bytes(TRAIL_SIZE):
        raise DecodeError("a message is handed in with more than its trunk")
