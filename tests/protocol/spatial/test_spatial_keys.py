"""An owner's keys: who follows a hand-over, what an old key's thief can do and what not, and revocation."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from spatial_world import SECONDS, START, message, subscription

from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.crypto.signatures import SignaturePurpose, Signed, sign
from hushcast_protocol.base.errors import DecodeError, PeerError
from hushcast_protocol.base.wire import encode
from hushcast_protocol.spatial.answer_problems import AnswerProblem, InvalidAnswer
from hushcast_protocol.spatial.batch import Batch, BatchInterval, check_by, make_batch, read_batch
from hushcast_protocol.spatial.feed_events import (
    FeedEvent,
    FeedPosition,
    FeedTrouble,
    IntervalArrived,
    NewOwnerKey,
)
from hushcast_protocol.spatial.feed_follower import FeedFollower
from hushcast_protocol.spatial.located_answer import ProviderBatch
from hushcast_protocol.spatial.located_requests import RequestConfirmation
from hushcast_protocol.spatial.owner_keys import (
    MAX_OWNER_KEYS,
    OwnerHandover,
    OwnerKeys,
    check_handovers,
    sign_handover,
)
from hushcast_protocol.spatial.places import chord
from hushcast_protocol.spatial.verifier import verify
from hushcast_protocol.spatial.weight_table import WeightTable, idf, read_table, sign_again, sign_table

SEEDS = [Seed(bytes([at]) * 32) for at in range(1, 40)]
FIRST, SECOND, THIRD, THIEF = (one.public() for one in SEEDS[:4])


def handover(old: int, new: int | None, last: int, batch: bytes = bytes(32)) -> Signed:
    return sign_handover(SEEDS[old], None if new is None else SEEDS[new].public(), last, batch)


CHAIN = (handover(0, 1, 3), handover(1, 2, 7))


def test_each_batch_is_signed_by_the_key_of_its_time() -> None:
    keys = OwnerKeys.read(FIRST, CHAIN)
    assert [keys.of(number) for number in (1, 3, 4, 7, 8)] == [FIRST, FIRST, SECOND, SECOND, THIRD]
    assert (keys.current, keys.end) == (THIRD, None)
    assert keys.all == {FIRST, SECOND, THIRD}


def test_who_knows_a_later_key_takes_nothing_of_an_earlier_one() -> None:
    keys = OwnerKeys.read(SECOND, CHAIN)
    assert [keys.of(number) for number in (1, 4, 8)] == [SECOND, SECOND, THIRD]
    assert OwnerKeys.read(THIEF, CHAIN) == OwnerKeys(THIEF)
    assert keys.extended((handover(0, None, 3),)).current == THIRD, "its first key ends the feed for others"


def test_hand_overs_are_learned_in_any_order_and_once() -> None:
    first = OwnerKeys(FIRST).extended(CHAIN[:1])
    assert first.extended(CHAIN) == OwnerKeys.read(FIRST, CHAIN)
    assert OwnerKeys.read(FIRST, CHAIN).extended(CHAIN[:1]) == OwnerKeys.read(FIRST, CHAIN)
    assert first.extended(CHAIN[1:]) == OwnerKeys.read(FIRST, CHAIN)
    assert OwnerKeys(FIRST).extended(CHAIN[1:]) == OwnerKeys(FIRST), "nothing leads there"


@pytest.mark.parametrize(
    "forged",
    [
        (CHAIN[1], CHAIN[0]),
        (CHAIN[0], CHAIN[0]),
        (CHAIN[0], handover(1, 2, 3)),
        (CHAIN[0], handover(1, 0, 5)),
        (handover(0, 0, 5),),
        (handover(0, None, 5), handover(1, 2, 7)),
    ],
)
def test_hand_overs_that_do_not_follow_each_other_are_none(forged: tuple[Signed, ...]) -> None:
    with pytest.raises(DecodeError):
        check_handovers(forged)


@given(st.integers(0, len(CHAIN[0].body + CHAIN[0].signature) * 8 - 1))
def test_one_with_a_flipped_bit_leads_nowhere(bit: int) -> None:
    data = bytearray(CHAIN[0].body + CHAIN[0].signature)
    data[bit // 8] ^= 1 << bit % 8
    with pytest.raises(PeerError):
        OwnerKeys.read(FIRST, [Signed(bytes(data[:-64]), bytes(data[-64:]))])


def test_nobody_hands_over_for_another() -> None:
    body = OwnerHandover(FIRST, THIEF, 3, bytes(32))
    with pytest.raises(InvalidAnswer, match="signature"):
        OwnerKeys.read(FIRST, [sign(SEEDS[3], SignaturePurpose.LOCATED_HANDOVER, body)])
    with pytest.raises(InvalidAnswer, match="signature"):
        OwnerKeys.read(FIRST, [sign(SEEDS[0], SignaturePurpose.HANDOVER, body)])


def test_of_two_hand_overs_of_one_key_the_first_that_was_heard_holds() -> None:
    keys = OwnerKeys.read(FIRST, CHAIN)
    for other in (handover(0, 3, 3), handover(0, 1, 2), handover(1, 3, 9)):
        with pytest.raises(InvalidAnswer, match="forked"):
            keys.extended([other])


def test_a_revocation_holds_against_a_hand_over_whichever_was_heard_first() -> None:
    end = handover(0, None, 3)
    stolen = OwnerKeys.read(FIRST, [handover(0, 3, 3)])
    ended = stolen.extended([end])
    assert (ended.current, ended.end, ended.of(3)) == (None, 3, FIRST)
    with pytest.raises(InvalidAnswer, match="revoked"):
        ended.of(4)
    with pytest.raises(InvalidAnswer, match="forked"):
        ended.extended([handover(0, 3, 3)])
    assert ended.extended([handover(0, None, 9)]) == ended, "the first one stays"


def test_no_more_are_kept_than_a_feed_may_have() -> None:
    keys = OwnerKeys(FIRST)
    signed = [handover(at, at + 1, at + 1) for at in range(MAX_OWNER_KEYS + 4)]
    for one in signed:
        keys = keys.extended([one])
    assert len(keys.signed) == MAX_OWNER_KEYS
    assert keys.current == SEEDS[MAX_OWNER_KEYS + 4].public()
    assert keys.root == SEEDS[4].public(), "whoever kept up needs the first ones no more"
    assert OwnerKeys.read(FIRST, keys.signed).current == FIRST, "who did not has to ask the owner"


@dataclass
class Owner:
    """Makes batches, hands over, and says all of it as a provider does."""

    seed: Seed = SEEDS[0]
    random: Random = field(default_factory=lambda: Random(3))
    feeds: list[ProviderBatch] = field(default_factory=list)
    keys: tuple[Signed, ...] = ()

    def __post_init__(self) -> None:
        weights, other = idf([("ba",)])
        self.table: WeightTable = sign_table(self.seed, 1, weights, other, chord(100))
        self.asked = replace(subscription(self.random), threshold=0)

    def next(self) -> Batch:
        previous = self.feeds[-1].batch if self.feeds else None
        interval = BatchInterval(START if previous is None else previous.end, SECONDS, previous)
        said = [message(self.random, interval.number, f"{self.seed.public().hex()[:4]}-{interval.number}")]
        signer, batch, root = read_batch(encode(make_batch(self.seed, interval, self.table, 4, said)))
        assert signer == self.seed.public()
        self.feeds.append(ProviderBatch(batch, root, self.table))
        return batch

    def hand_over(self, to: Seed) -> None:
        last = self.feeds[-1].batch
        self.keys += (sign_handover(self.seed, to.public(), last.body.number, last.digest),)
        self.seed, self.table = to, sign_again(to, self.table, self.keys)

    def thief(self) -> Owner:
        """Whoever has the key of now, and knows all that was said."""
        other = Owner(self.seed, Random(9), [*self.feeds], self.keys)
        other.table, other.asked = self.table, self.asked
        return other

    def answer(self, number: int) -> bytes:
        (answer,) = self.feeds[number - 1].answers([self.asked])
        return encode(answer)


@dataclass
class Reader:
    """Follows by the owner's first key."""

    owner: Owner
    told: list[FeedEvent] = field(default_factory=list)
    now: float = float(START)

    def __post_init__(self) -> None:
        self.begin(None)
        self.hear(encode(RequestConfirmation(1, None)))

    def begin(self, followed: FeedPosition | None) -> None:
        self.follower = FeedFollower(FIRST, self.owner.asked, self.now, 1, followed=followed)

    def dies(self) -> None:
        self.begin(self.follower.state)
        self.step()

    def hear(self, data: bytes) -> None:
        self.follower.hear(data, self.now)
        self.step()

    def step(self) -> None:
        while (event := self.follower.step(self.now)) is not None:
            self.told.append(event)

    @property
    def said(self) -> list[str]:
        """The ids of all messages that were told."""
        return [one.id for event in self.told if isinstance(event, IntervalArrived) for one in event.messages]

    @property
    def problems(self) -> list[AnswerProblem]:
        return [one.problem for one in self.told if isinstance(one, FeedTrouble)]


def test_an_answer_leads_from_any_key_to_the_one_that_signed_it() -> None:
    owner = Owner()
    owner.next()
    owner.hand_over(SEEDS[1])
    owner.next()
    owner.hand_over(SEEDS[2])
    owner.next()
    for known in (FIRST, SECOND, THIRD):
        assert len(verify(known, owner.asked, owner.answer(3), owner.feeds[1].batch).messages) == 1
        assert read_table(encode(owner.table.whole), known).digest == owner.table.digest
    with pytest.raises(InvalidAnswer, match="signature"):
        verify(THIEF, owner.asked, owner.answer(3))
    with pytest.raises(InvalidAnswer, match="signature"):
        verify(SECOND, owner.asked, owner.answer(1))


@pytest.mark.parametrize("lives", [1, 2])
def test_a_subscriber_follows_and_is_told_of_the_key_once(lives: int) -> None:
    owner = Owner()
    reader = Reader(owner)
    for number in range(1, 6):
        if number == 3:
            owner.hand_over(SEEDS[1])
        owner.next()
        reader.hear(owner.answer(number))
        if lives == 2:
            reader.dies()
    assert len(reader.said) == 5
    assert [(one.batch.body.number, one.key) for one in reader.told if isinstance(one, NewOwnerKey)] == [
        (3, SECOND)
    ]
    assert reader.problems == []


def test_it_follows_though_the_first_answer_of_the_new_key_is_lost() -> None:
    owner = Owner()
    reader = Reader(owner)
    owner.next()
    reader.hear(owner.answer(1))
    owner.hand_over(SEEDS[1])
    owner.next()
    owner.next()
    reader.hear(owner.answer(3))
    reader.now += 60
    reader.step()
    assert reader.problems == [AnswerProblem.MISSING_INTERVAL]
    assert [one.key for one in reader.told if isinstance(one, NewOwnerKey)] == [SECOND]
    assert len(reader.said) == 2


@pytest.mark.parametrize("is_first", [False, True])
def test_a_thief_of_the_old_key_is_not_believed_by_whoever_heard_of_the_new_one(is_first: bool) -> None:
    """He signs the next batch, or that it hands over to him, before or after the owner is heard."""
    owner = Owner()
    reader = Reader(owner)
    owner.next()
    reader.hear(owner.answer(1))
    one, other = owner.thief(), owner.thief()
    owner.hand_over(SEEDS[1])
    owner.next()
    owner.next()
    for _ in range(3):
        one.next()
    other.hand_over(SEEDS[3])
    other.next()
    if is_first:  # what waits for its turn is looked at again
        reader.hear(one.answer(3))
        reader.hear(owner.answer(2))
    else:
        reader.hear(owner.answer(2))
        for forged in (one.answer(2), one.answer(3), other.answer(2)):
            reader.hear(forged)
        assert AnswerProblem.FORKED in reader.problems
    reader.hear(owner.answer(3))
    assert [name for name in reader.said if name.endswith(("-2", "-3"))] == [
        f"{SECOND.hex()[:4]}-{number}" for number in (2, 3)
    ]
    assert AnswerProblem.SIGNATURE in reader.problems
    reader.dies()


def test_another_last_batch_than_the_one_handed_over_after_is_a_fork() -> None:
    owner = Owner()
    owner.next()
    forger = owner.thief()
    owner.next()
    forger.next()
    owner.hand_over(SEEDS[1])
    keys = OwnerKeys.read(FIRST, owner.keys)
    assert check_by(owner.feeds[1].batch.signed, keys).body.number == 2
    with pytest.raises(InvalidAnswer, match="forked"):
        check_by(forger.feeds[1].batch.signed, keys)
    reader = Reader(owner)
    for number, one in ((1, owner), (2, forger)):
        reader.hear(one.answer(number))
    owner.next()
    reader.hear(owner.answer(3))
    assert AnswerProblem.FORKED in reader.problems
    assert len(reader.said) == 2, "what was heard first stays; that there is another is told"
    reader.dies()


def test_a_revoked_key_ends_the_feed_and_every_life_is_told() -> None:
    owner = Owner()
    reader = Reader(owner)
    owner.next()
    reader.hear(owner.answer(1))
    stolen = owner.thief()
    stolen.hand_over(SEEDS[3])
    for _ in range(2):
        stolen.next()
    reader.hear(stolen.answer(2))
    assert len(reader.said) == 2, "a thief's hand-over that comes first is followed: so revoke"
    last = owner.next()
    end = sign_handover(SEEDS[0], None, 2, last.digest)
    reader.hear(encode(RequestConfirmation(2, None, (end,))))
    assert reader.problems == [AnswerProblem.REVOKED]
    reader.hear(stolen.answer(3))
    reader.now += 10 * SECONDS
    reader.step()
    assert len(reader.said) == 2, "nor is silence told of a feed that has ended"
    assert set(reader.problems) <= {AnswerProblem.REVOKED, AnswerProblem.FORKED}
    reader.dies()
    reader.step()
    assert reader.problems.count(AnswerProblem.REVOKED) >= 2
