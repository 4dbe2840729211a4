"""Frames to keepers: what an origin hands in, and what anybody may ask of what is kept."""

from __future__ import annotations

from typing import Annotated

import msgspec

from hushcast_protocol.base.errors import DecodeError
from hushcast_protocol.base.wire import Bytes16, Bytes32, Counter, Wire
from hushcast_protocol.content.messages import TRAIL_SIZE, Message, check_message
from hushcast_protocol.overlay.kept_shares import MAX_KEPT_IDS


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
    """

    ids: Annotated[tuple[Bytes32, ...], msgspec.Meta(max_length=MAX_KEPT_IDS)]
    gave_way: Counter


class AskKeptMessage(Wire, frozen=True, tag="ask-kept-message"):
    """Anybody to a keeper: one message."""

    day: Counter
    trunk: Bytes16
    id: Bytes32


class ShownKeptMessage(Wire, frozen=True, tag="kept-message"):
    """The answer: as it was handed in; nil where it is not kept."""

    message: Message | None


KeeperRequest = AskKept | AskKeptMessage
KeeperAnswer = ShownKept | ShownKeptMessage


def to_hand_in(message: Message) -> Message:
    """Return what of a dropped message goes to keepers: not the attributes it would be routed by."""
    return Message(message.id, message.day, message.tokens[:1], bytes(TRAIL_SIZE), message.body)


def check_handed_in(message: Message) -> None:
    """Raise unless an honest relay could hand a message in; raises as `check_message` does."""
    check_message(message)
    if len(message.tokens) > 1 or message.trail != bytes(TRAIL_SIZE):
        raise DecodeError("a message is handed in with more than its trunk")
