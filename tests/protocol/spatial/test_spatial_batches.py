"""Batches of located feeds: chained, signed, and read by a provider as the owner made them."""

from __future__ import annotations

from random import Random

import pytest
from msgspec.structs import replace
from spatial_world import OWNER, STRANGER, message, place

from hushcast_protocol.base.crypto.signatures import SignaturePurpose, sign
from hushcast_protocol.base.errors import DecodeError, UsageError
from hushcast_protocol.base.wire import encode
from hushcast_protocol.spatial import batch as batches
from hushcast_protocol.spatial import weight_table as tables
from hushcast_protocol.spatial.answer_problems import AnswerProblem, InvalidAnswer
from hushcast_protocol.spatial.batch import (
    MAX_BATCH,
    Batch,
    BatchBody,
    BatchInterval,
    WholeBatch,
    check_batch,
    check_next,
    make_batch,
    read_batch,
)
from hushcast_protocol.spatial.keywords import MAX_WORD
from hushcast_protocol.spatial.located_answer import MAX_ANSWER, ProviderBatch
from hushcast_protocol.spatial.located_messages import MAX_MESSAGES, LocatedMessage
from hushcast_protocol.spatial.located_subscription import MAX_KEYWORDS, LocatedSubscription
from hushcast_protocol.spatial.places import chord
from hushcast_protocol.spatial.tmr_tree import grow
from hushcast_protocol.spatial.verifier import verify
from hushcast_protocol.spatial.weight_table import sign_table
from hushcast_protocol.spatial.word_pages import PAGE

TABLE = sign_table(OWNER, 1, {"a": 1}, 2, chord(1))
SAID = [message(Random(at), 1, str(at)) for at in range(9)]


def made(previous: Batch | None = None) -> WholeBatch:
    start = 1000 if previous is None else previous.end
    interval = BatchInterval(start, 300, previous)
    return make_batch(OWNER, interval, TABLE, 4, [replace(one, number=interval.number) for one in SAID])


def signed(body: BatchBody) -> Batch:
    return check_batch(sign(OWNER, SignaturePurpose.LOCATED_BATCH, body), OWNER.public())


FIRST = check_batch(made().signed, OWNER.public())
SECOND = check_batch(made(FIRST).signed, OWNER.public())
THIRD = check_batch(made(SECOND).signed, OWNER.public())


def test_one_comes_after_the_other() -> None:
    assert (FIRST.body.number, SECOND.body.number) == (1, 2)
    check_next(SECOND, FIRST)
    check_next(THIRD, SECOND)
    later = signed(replace(SECOND.body, start=SECOND.body.start + 999, version=2, table=bytes(32)))
    check_next(later, FIRST)  # the owner was away, and has a new table


@pytest.mark.parametrize(
    ("after", "before", "problem"),
    [
        (THIRD, FIRST, AnswerProblem.MISSING_INTERVAL),
        (FIRST, FIRST, AnswerProblem.OLD_ROOT),
        (FIRST, SECOND, AnswerProblem.OLD_ROOT),
        (signed(replace(SECOND.body, count=3)), SECOND, AnswerProblem.FORKED),
        (signed(replace(SECOND.body, previous=bytes(32))), FIRST, AnswerProblem.FORKED),
        (signed(replace(SECOND.body, table=bytes(32))), FIRST, AnswerProblem.FORKED),
        (signed(replace(SECOND.body, start=1299)), FIRST, AnswerProblem.BACK_IN_TIME),
        (signed(replace(SECOND.body, version=0, table=bytes(32))), FIRST, AnswerProblem.WEIGHTS),
    ],
)
def test_what_does_not_follow_has_a_name(after: Batch, before: Batch, problem: AnswerProblem) -> None:
    with pytest.raises(InvalidAnswer) as raised:
        check_next(after, before)
    assert raised.value.problem is problem


def test_a_batch_that_goes_back_in_time_is_not_made() -> None:
    with pytest.raises(UsageError, match="goes back in time: the one before ends at 1300"):
        make_batch(OWNER, BatchInterval(1299, 300, FIRST), TABLE, 4, [])


def test_too_many_messages_are_not_made_into_one_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "MAX_MESSAGES", 8)
    with pytest.raises(UsageError, match="9 messages are too many for one batch: 8 at most"):
        made()


def test_messages_of_too_many_bytes_are_not_made_into_one_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "MAX_BATCH", 500)
    with pytest.raises(UsageError, match="bytes, above the 500 of a batch"):
        made()


def test_messages_of_too_many_words_are_not_made_into_one_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "MAX_PAGES", 1)
    with pytest.raises(UsageError, match="different words: 8 at most"):
        made()


def test_an_answer_has_room_for_all_of_the_largest_batch() -> None:
    # Tiny messages have the most proof for their bytes, in a tree of fan-out 2.
    said = [LocatedMessage(1, str(at), place(Random(at)), ("a", "b"), b"") for at in range(256)]
    whole = make_batch(OWNER, BatchInterval(0, 1, None), TABLE, 2, said)
    feed = ProviderBatch(check_batch(whole.signed, OWNER.public()), grow(said, 2), TABLE)
    far = LocatedSubscription(place(Random("far")), ("a", "b"), 1000, 1000)
    (answer,) = feed.answers([far])
    data = encode(answer)
    assert len(verify(OWNER.public(), far, data).messages) == 256
    assert len(data) - len(encode(whole)) < 200 * 256
    words = MAX_KEYWORDS * PAGE * (MAX_MESSAGES // 8 + 4 * MAX_WORD)
    assert MAX_BATCH + 200 * MAX_MESSAGES + words + 1024 < MAX_ANSWER


def test_a_table_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "MAX_TABLE_WORDS", 2)
    with pytest.raises(UsageError, match="3 different words are above the 2 of a table"):
        sign_table(OWNER, 1, {"a": 1, "b": 1, "c": 1}, 1, 1)


def test_a_provider_reads_what_the_owner_made() -> None:
    owner, batch, root = read_batch(encode(made()))
    assert owner == OWNER.public()
    assert root is not None
    assert (batch.body.count, batch.body.root) == (9, root.hash)


def test_what_was_changed_on_the_way_is_refused() -> None:
    whole = made()
    one = whole.messages[0]
    for messages, error in (
        (whole.messages[1:], InvalidAnswer),
        ((replace(one, payload=b"other"), *whole.messages[1:]), InvalidAnswer),
        ((*whole.messages[1:], one), DecodeError),
        ((one, *whole.messages), DecodeError),
        ((replace(one, place=(0, 0, 0)), *whole.messages[1:]), DecodeError),
        ((replace(one, number=2), *whole.messages[1:]), DecodeError),
        ((replace(one, words=("b", "a")), *whole.messages[1:]), DecodeError),
    ):
        with pytest.raises(error):
            read_batch(encode(replace(whole, messages=messages)))
    with pytest.raises(InvalidAnswer):
        read_batch(encode(replace(whole, owner=STRANGER.public())))
