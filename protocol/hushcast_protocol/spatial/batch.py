"""Batches: the messages of one interval under one signed root, numbered and chained to the batch before.

Also an interval without messages has its batch. So a provider can leave out neither a message nor a batch
without being caught at the next one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated

import msgspec

from hushcast_protocol.base.crypto.hashes import DIGEST, Domain, digest
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.crypto.signatures import SignaturePurpose, Signed, check, sign
from hushcast_protocol.base.errors import AuthenticationError, DecodeError, UsageError
from hushcast_protocol.base.wire import Bytes32, Counter, PublicKey, Wire, decoder, encode
from hushcast_protocol.spatial.answer_problems import AnswerProblem, InvalidAnswer
from hushcast_protocol.spatial.keywords import are_words
from hushcast_protocol.spatial.located_messages import MAX_MESSAGES, LocatedMessage
from hushcast_protocol.spatial.owner_keys import Handovers, OwnerKeys
from hushcast_protocol.spatial.places import on_earth
from hushcast_protocol.spatial.tmr_tree import MAX_FAN_OUT, BatchWords, TreeNode, grow, root_hash
from hushcast_protocol.spatial.weight_table import WeightTable
from hushcast_protocol.spatial.word_pages import MAX_PAGES, PAGE

MAX_BATCH = 8 * 1024 * 1024  # bytes of a batch with its messages; 2,000 of the paper's size take 1.6 MB
MAX_INTERVAL = 7 * 24 * 3600  # seconds: who leaves a batch out is caught with the next one
FIRST = bytes(DIGEST)
"""What the first batch names as the one before it."""


class BatchBody(Wire, frozen=True, tag="located-batch/1"):
    """What the owner signs: which interval, after which batch, how many messages under which roots."""

    number: Annotated[int, msgspec.Meta(ge=1, lt=2**48)]
    previous: Bytes32
    start: Counter
    seconds: Annotated[int, msgspec.Meta(ge=1, le=MAX_INTERVAL)]
    count: Annotated[int, msgspec.Meta(ge=0, le=MAX_MESSAGES)]
    fan_out: Annotated[int, msgspec.Meta(ge=2, le=MAX_FAN_OUT)]
    version: Counter
    table: Bytes32
    root: Bytes32
    words: Bytes32


class WholeBatch(Wire, frozen=True, tag="located-messages/1"):
    """A batch as a provider gets it: whose it is, what is signed, and the messages by id."""

    owner: PublicKey
    signed: Signed
    messages: Annotated[tuple[LocatedMessage, ...], msgspec.Meta(max_length=MAX_MESSAGES)]
    keys: Handovers = ()
    """Of the owner, as its table has them."""


@dataclass(frozen=True)
class Batch:
    """A batch whose signature was checked."""

    signed: Signed
    body: BatchBody

    @property
    def digest(self) -> bytes:
        """By which the next batch names this one."""
        return digest(Domain.LOCATED_BATCH, self.signed.body)

    @property
    def end(self) -> int:
        """When its interval ends, in Unix seconds."""
        return self.body.start + self.body.seconds


_decode_body: Callable[[bytes], BatchBody] = decoder(BatchBody, "batch", 512)
_decode_whole: Callable[[bytes], WholeBatch] = decoder(WholeBatch, "batch", MAX_BATCH)


@dataclass(frozen=True)
class BatchInterval:
    """When a batch's interval begins (Unix seconds), how many seconds it has, and what came before it."""

    start: int
    seconds: int
    previous: Batch | None

    @property
    def number(self) -> int:
        """The number of its batch."""
        return self.previous.body.number + 1 if self.previous is not None else 1


def make_batch(
    seed: Seed, interval: BatchInterval, table: WeightTable, fan_out: int, messages: Sequence[LocatedMessage]
) -> WholeBatch:
    """Sign a batch of messages, which have distinct ids and the batch's number; raise `UsageError`."""
    if len(messages) > MAX_MESSAGES:
        raise UsageError(f"{len(messages):,} messages are too many for one batch: {MAX_MESSAGES:,} at most")
    previous = interval.previous
    if previous is not None and interval.start < previous.end:
        raise UsageError(
            f"a batch from {interval.start} on goes back in time: the one before ends at {previous.end}"
        )
    root = grow(messages, fan_out)
    said = BatchWords(root)
    if len(said.paged.pages) > MAX_PAGES:
        most = PAGE * MAX_PAGES
        raise UsageError(f"the messages have {len(said.numbers):,} different words: {most:,} at most")
    body = BatchBody(
        interval.number,
        FIRST if previous is None else previous.digest,
        interval.start,
        interval.seconds,
        len(messages),
        fan_out,
        table.body.version,
        table.digest,
        root_hash(root),
        said.paged.root,
    )
    in_order = tuple(sorted(messages, key=lambda one: one.id))
    signed = sign(seed, SignaturePurpose.LOCATED_BATCH, body)
    whole = WholeBatch(seed.public(), signed, in_order, table.whole.keys)
    if (size := len(encode(whole))) > MAX_BATCH:
        raise UsageError(f"the messages take {size:,} bytes, above the {MAX_BATCH:,} of a batch")
    return whole


def handovers_of(data: bytes) -> Handovers:
    """Return the hand-overs that come with a batch, unchecked; raise `DecodeError`."""
    return _decode_whole(data).keys


def read_batch(data: bytes) -> tuple[PublicKey, Batch, TreeNode | None]:
    """Return who signed it, batch and tree; raise `DecodeError`, or `InvalidAnswer` if another did."""
    whole = _decode_whole(data)
    batch = check_batch(whole.signed, whole.owner)
    names = [one.id for one in whole.messages]
    if names != sorted(set(names)):
        raise DecodeError("messages of a batch are not in their order")
    for one in whole.messages:
        if one.number != batch.body.number or not on_earth(one.place) or not are_words(one.words):
            raise DecodeError("a message of a batch has another number, no place on earth, or unsorted words")
    root = grow(whole.messages, batch.body.fan_out)
    found = len(names), root_hash(root), BatchWords(root).paged.root
    if found != (batch.body.count, batch.body.root, batch.body.words):
        raise InvalidAnswer(AnswerProblem.CHANGED)
    return whole.owner, batch, root


def check_batch(signed: Signed, owner: PublicKey) -> Batch:
    """Return a batch that the owner signed; raise `InvalidAnswer` if it did not, or `DecodeError`."""
    try:
        check(owner, SignaturePurpose.LOCATED_BATCH, signed.body, signed.signature)
    except AuthenticationError:
        raise InvalidAnswer(AnswerProblem.SIGNATURE) from None
    return kept_batch(signed)


def kept_batch(signed: Signed) -> Batch:
    """Return a batch that was checked before it was kept; raise `DecodeError`."""
    return Batch(signed, _decode_body(signed.body))


def check_by(signed: Signed, keys: OwnerKeys) -> Batch:
    """Return a batch that the key of its number signed; raise `InvalidAnswer`, or `DecodeError`."""
    number = _decode_body(signed.body).number
    batch = check_batch(signed, keys.of(number))
    if not keys.is_last(number, batch.digest):
        raise InvalidAnswer(AnswerProblem.FORKED)
    return batch


def check_next(batch: Batch, before: Batch) -> None:
    """Raise `InvalidAnswer` unless one batch comes right after another."""
    body, last = batch.body, before.body
    if body.number == last.number and batch.digest != before.digest:
        raise InvalidAnswer(AnswerProblem.FORKED)
    if body.number <= last.number:
        raise InvalidAnswer(AnswerProblem.OLD_ROOT)
    if body.number > last.number + 1:
        raise InvalidAnswer(AnswerProblem.MISSING_INTERVAL)
    if body.previous != before.digest:
        raise InvalidAnswer(AnswerProblem.FORKED)
    check_later(batch, before)


def check_later(batch: Batch, before: Batch) -> None:
    """Raise `InvalidAnswer` unless one batch can come after another, perhaps with others between them."""
    body, last = batch.body, before.body
    if body.version == last.version and body.table != last.table:
        raise InvalidAnswer(AnswerProblem.FORKED)
    if body.start < before.end:
        raise InvalidAnswer(AnswerProblem.BACK_IN_TIME)
    if body.version < last.version:
        raise InvalidAnswer(AnswerProblem.WEIGHTS)
