"""Frames of the tomography service: what brokers, and others who ask, say to it and it to them.

Brokers open the link under their own names and keep it: they state on it, ask and watch. Anybody else asks
over a link without a name, and pays with stamps under load. Questions have numbers of the asker's that
answers repeat.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Literal

import msgspec

from hushcast_protocol.base.crypto.proof_of_work import MAX_DIFFICULTY, ProofOfWork
from hushcast_protocol.base.crypto.signatures import Signed
from hushcast_protocol.base.wire import Counter, Wire, decoder
from hushcast_protocol.brokers.broker_tree import MAX_TREE
from hushcast_protocol.brokers.frames import NewTree
from hushcast_protocol.brokers.tomography.questions import TomographyQuestion
from hushcast_protocol.brokers.tomography.statements import MAX_CROWD, MAX_STATEMENT

MAX_STATED_AT_ONCE = 32  # statements in one frame
MAX_TOMOGRAPHY_FRAME = max(MAX_STATED_AT_ONCE * (MAX_STATEMENT + 96), MAX_TREE) + 1024  # bytes

NoAnswerReason = Literal[
    "unknown",  # the tree does not list this broker
    "form",  # it is not what the protocol allows
    "forged",  # a statement is not signed by the broker
    "stale",  # of another epoch, with an earlier number, or no longer valid
    "contradicted",  # the broker signed two statements with one number
    "not-edge",  # sources of a broker that has no clients
    "another's",  # a source for which another broker vouches
    "cap",  # more sources than a broker may vouch for
    "quota",  # there is no room
    "no-way",  # the tree has no way from the one broker to the other
    "not-origin",  # about another broker's way, or its sources
    "k",  # larger than all edge brokers together may vouch for
    "exact",  # it asks for more than is told to somebody without a name
    "stamp",  # it costs work, and came without
]


# To the service.


class StateFilters(Wire, frozen=True, tag="state"):
    """A broker's statements, in the order of their numbers.

    `is_anew`: it has started again, and does not know what it stated before: all of that is to be forgotten,
    as it has other names for its clients now.
    """

    statements: Annotated[tuple[Signed, ...], msgspec.Meta(max_length=MAX_STATED_AT_ONCE)]
    is_anew: bool


class Ask(Wire, frozen=True, tag="ask"):
    """Answer this, once; or, to watch, again whenever the answer changes or is over. Brokers alone watch.

    A stamp, which brokers need not have, is for the question's digest (`question_digest`).
    """

    number: Counter
    question: TomographyQuestion
    is_watch: bool
    stamp: ProofOfWork | None


class Unwatch(Wire, frozen=True, tag="unwatch"):
    """Say no more about this question."""

    number: Counter


class Ping(Wire, frozen=True, tag="tomography-ping"):
    """Show a sign of life, or see whether anybody is there."""


# From the service.


class AskReply(Wire, frozen=True, tag="answered"):
    """The signed answer to a question, or why there is none; `difficulty`, in bits, is for the next try."""

    number: Counter
    answer: Signed | None
    reason: NoAnswerReason | None
    difficulty: Annotated[int, msgspec.Meta(ge=0, le=MAX_DIFFICULTY)]


class StatementRefused(Wire, frozen=True, tag="not-taken"):
    """A statement was refused; `number` is its place among those of this link, from 1."""

    number: Counter
    reason: NoAnswerReason


class LargestK(Wire, frozen=True, tag="largest-k"):
    """To brokers, first and when it changes: of one filter no more sources than this need be stated."""

    k: Annotated[int, msgspec.Meta(ge=1, le=MAX_CROWD)]


class Pong(Wire, frozen=True, tag="tomography-pong"):
    """The answer to a `Ping`."""


ToService = StateFilters | Ask | Unwatch | NewTree | Ping
FromService = AskReply | StatementRefused | LargestK | NewTree | Pong

decode_to_service: Callable[[bytes], ToService] = decoder(ToService, "frame", MAX_TOMOGRAPHY_FRAME)
decode_from_service: Callable[[bytes], FromService] = decoder(FromService, "frame", MAX_TOMOGRAPHY_FRAME)
