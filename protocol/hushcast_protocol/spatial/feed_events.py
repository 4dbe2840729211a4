"""What following a feed tells, one event at a time, and how far it has come."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import msgspec

from hushcast_protocol.base.crypto.signatures import Signed
from hushcast_protocol.base.wire import Bytes32, Counter, PublicKey, Wire
from hushcast_protocol.spatial.answer_problems import AnswerProblem
from hushcast_protocol.spatial.batch import Batch
from hushcast_protocol.spatial.keywords import WordRule
from hushcast_protocol.spatial.located_subscription import LocatedSubscription
from hushcast_protocol.spatial.owner_keys import Handovers
from hushcast_protocol.spatial.verification_object import WantedMessage

MAX_PASSED = 64  # intervals that are remembered, to tell a repeat, a late answer and a fork from each other


class PassedInterval(Wire, frozen=True):
    """An interval that was passed: its batch's hash as far as known, and whether an answer is awaited."""

    number: Counter
    digest: Bytes32 | None
    is_awaited: bool


class FeedPosition(Wire, frozen=True, tag="located-followed/1"):
    """How far a feed was followed: the last interval that was passed, the newest batch up to it, and others.

    `silent_to` is the moment, in Unix seconds, up to which it was told that nothing came; `keys` are the
    hand-overs that were heard of the owner.
    """

    at: Counter
    last: Signed | None
    passed: Annotated[tuple[PassedInterval, ...], msgspec.Meta(max_length=MAX_PASSED)]
    silent_to: Counter = 0
    keys: Handovers = ()


@dataclass(frozen=True)
class IntervalArrived:
    """An interval whose answer holds: its batch, which subscription was answered, all that this one wants.

    `rule` is how the owner has texts cut, `is_late` an interval that was passed before.
    """

    batch: Batch
    asked: LocatedSubscription
    messages: tuple[WantedMessage, ...]
    rule: WordRule
    is_late: bool = False


@dataclass(frozen=True)
class FeedTrouble:
    """Something does not hold, or is missing: which intervals, from one number to another if it is known.

    Of silence it is known from when until when nothing came, in Unix seconds: an owner that pauses numbers no
    intervals meanwhile.
    """

    problem: AnswerProblem
    first: int | None = None
    last: int | None = None
    since: int | None = None
    until: int | None = None


@dataclass(frozen=True)
class NewWeights:
    """From this interval on weights, or the greatest distance, are others: the owner signed a new table."""

    batch: Batch


@dataclass(frozen=True)
class NewOwnerKey:
    """From this interval on another key signs, which the one before handed over to."""

    batch: Batch
    key: PublicKey


@dataclass(frozen=True)
class RequestAccepted:
    """The provider has taken the request of this number."""

    number: int


FeedEvent = IntervalArrived | FeedTrouble | NewWeights | NewOwnerKey | RequestAccepted
