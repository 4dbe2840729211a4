"""Following a feed: in any order, with repeats and losses, what is told is true, and told in time."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from random import Random

import pytest
from cheating import MEANS, Scene
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from spatial_world import OWNER, SECONDS, START, STRANGER, World

from hushcast_protocol.base.crypto.signatures import SignaturePurpose, Signed, sign
from hushcast_protocol.base.wire import encode
from hushcast_protocol.spatial.answer_problems import AnswerProblem
from hushcast_protocol.spatial.batch import Batch, BatchBody, BatchInterval, make_batch, read_batch
from hushcast_protocol.spatial.feed_events import (
    MAX_PASSED,
    FeedEvent,
    FeedPosition,
    FeedTrouble,
    IntervalArrived,
    NewWeights,
    RequestAccepted,
)
from hushcast_protocol.spatial.feed_follower import MAX_EARLY, FeedFollower
from hushcast_protocol.spatial.located_answer import ProviderBatch
from hushcast_protocol.spatial.located_requests import RequestConfirmation

PATIENCE = 60.0


@dataclass
class Life:
    """One subscriber and what it was told; it dies and comes again as often as it has to."""

    world: World
    following: FeedFollower = field(init=False)
    told: list[FeedEvent] = field(default_factory=list)
    now: float = float(START)

    def __post_init__(self) -> None:
        self.begin(None)

    def begin(self, followed: FeedPosition | None) -> None:
        one = self.world.subscriptions[0]
        self.following = FeedFollower(OWNER.public(), one, self.now, 1, PATIENCE, followed)

    def taken(self, newest: int = 0, number: int = 1) -> None:
        signed = self.world.feeds[newest - 1].batch.signed if newest else None
        self.hear(encode(RequestConfirmation(number, signed)))

    def answer(self, number: int) -> bytes:
        return encode(self.world.answers[number - 1][0])

    def hear(self, data: bytes) -> None:
        self.following.hear(data, self.now)
        self.step()

    def step(self) -> None:
        while (event := self.following.step(self.now)) is not None:
            self.told.append(event)

    def until(self, moment: float) -> None:
        """Wait, and look whenever it asks for it."""
        while (deadline := self.following.deadline) is not None and deadline <= moment:
            self.now = max(self.now, deadline)
            before = len(self.told)
            self.step()
            assert len(self.told) > before, "a deadline moves it"
        self.now = max(self.now, moment)

    @property
    def arrived(self) -> list[int]:
        return [one.batch.body.number for one in self.told if isinstance(one, IntervalArrived)]

    @property
    def troubles(self) -> list[tuple[AnswerProblem, int | None, int | None]]:
        return [(one.problem, one.first, one.last) for one in self.told if isinstance(one, FeedTrouble)]

    @property
    def silent(self) -> list[tuple[int, int]]:
        """Of which times it was told that nothing came."""
        return [
            (one.since, one.until)
            for one in self.told
            if isinstance(one, FeedTrouble) and one.since is not None and one.until is not None
        ]


def draw(seed: int, intervals: int = 6) -> Life:
    return Life(World.draw(Random(seed), most=8, intervals=intervals, subscriptions=2))


def end(number: int) -> float:
    """When an interval is over."""
    return float(START + SECONDS * number)


@pytest.mark.slow
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, 2**32))
def test_honest_answers_within_patience_are_all_told_in_order_and_nobody_is_accused(seed: int) -> None:
    random = Random(seed)
    life = draw(seed)
    newest = random.choice((0, 0, 1, 2))
    sent = [(START + random.uniform(0, PATIENCE - 1), encode(_taken(life, newest)))]
    for number in range(newest + 1, 7):
        for _ in range(random.choice((1, 1, 2))):
            sent.append((end(number) + random.uniform(0, PATIENCE - 1), life.answer(number)))
        if random.random() < 0.3:  # sent again, long after
            sent.append((random.uniform(end(number), end(7)), life.answer(number)))
    for moment, data in sorted(sent):
        life.until(moment)
        life.hear(data)
        if random.random() < 0.3:  # dies; what was not told comes again
            early = [one for at, one in sent if at <= moment]
            life.begin(life.following.state)
            for one in early:
                life.hear(one)
    assert life.arrived == list(range(newest + 1, 7))
    assert life.troubles == []
    for event in life.told:
        if isinstance(event, IntervalArrived):
            number = event.batch.body.number
            assert sorted(one.id for one in event.messages) == life.world.wanted(number - 1, 0)
    tables = [feed.table.digest for feed in life.world.feeds[max(newest - 1, 0) :]]
    changes = sum(one != after for one, after in pairwise(tables))
    assert len({one.batch.body.number for one in life.told if isinstance(one, NewWeights)}) == changes


def _taken(life: Life, newest: int) -> RequestConfirmation:
    return RequestConfirmation(1, life.world.feeds[newest - 1].batch.signed if newest else None)


@pytest.mark.slow
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, 2**32))
def test_what_is_left_out_is_told_within_an_interval_of_what_comes_after(seed: int) -> None:
    random = Random(seed)
    life = draw(seed)
    life.taken()
    missing = {number for number in range(2, 6) if random.random() < 0.5}
    for number in range(1, 7):
        if number not in missing:
            life.until(end(number) + random.uniform(0, PATIENCE))
            life.hear(life.answer(number))
    life.until(life.now + PATIENCE)
    gaps = {number for problem, first, last in life.troubles if problem is AnswerProblem.MISSING_INTERVAL
            for number in range(first or 0, (last or 0) + 1)}  # fmt: skip
    assert gaps == missing
    assert life.arrived == sorted({1, 2, 3, 4, 5, 6} - missing)
    silent = {moment for since, until in life.silent for moment in range(since, until, SECONDS)}
    assert silent == {end(number - 1) for number in missing}, "each was due long before the next one came"
    assert {problem for problem, _, _ in life.troubles} <= {
        AnswerProblem.MISSING_INTERVAL,
        AnswerProblem.SILENT,
    }
    before = len(life.told)
    late = sorted(missing, key=lambda _: random.random())
    for number in late:
        life.hear(life.answer(number))
        life.hear(life.answer(number))
    assert [one.batch.body.number for one in life.told[before:] if isinstance(one, IntervalArrived)] == late
    assert all(isinstance(one, IntervalArrived) and one.is_late for one in life.told[before:])


@pytest.mark.slow
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, 2**32))
def test_a_provider_that_cheats_is_caught_and_nothing_of_it_is_told_as_true(seed: int) -> None:
    random = Random(seed)
    world = World.draw(random, most=12)
    life = Life(world)
    life.taken()
    for number in range(1, 4):
        means = random.choice(MEANS)
        cheat = means(Scene(world, number - 1, 0))
        life.until(end(number))
        if cheat is not None and cheat.before is None and cheat.subscription == world.subscriptions[0]:
            before = len(life.told)
            life.hear(cheat.data)
            found = {one.problem for one in life.told[before:] if isinstance(one, FeedTrouble)}
            assert found <= cheat.problems
            life.hear(cheat.data)
        life.until(end(number) + 1)
        life.hear(life.answer(number))
    for event in life.told:
        if isinstance(event, IntervalArrived):
            at = event.batch.body.number - 1
            assert sorted(one.id for one in event.messages) == world.wanted(at, 0)
    assert sorted(life.arrived) == [1, 2, 3], "an honest answer afterwards is taken"


def test_an_answer_that_does_not_hold_is_told_once_and_the_chain_goes_on() -> None:
    life = draw(3)
    life.taken()
    life.hear(life.answer(1))
    other = encode(life.world.answers[1][1])
    life.hear(other)
    life.hear(other)
    life.hear(life.answer(3))
    assert life.troubles == [(AnswerProblem.OTHER_SUBSCRIPTION, 2, 2)]
    assert life.arrived == [1, 3], "nobody waits for an interval whose answer was seen"
    life.hear(life.answer(2))
    assert life.arrived == [1, 3, 2]


def test_garbage_is_told_once_an_interval() -> None:
    life = draw(3)
    for _ in range(3):
        life.hear(b"?")
    life.taken()
    life.hear(life.answer(1))
    life.hear(b"")
    assert life.troubles == [(AnswerProblem.FORM, None, None)] * 2


def test_batches_of_another_owner() -> None:
    life = draw(3)
    life.taken()
    body = life.world.feeds[0].batch.signed.body
    forged = replace(life.world.answers[0][0], batch=Signed(body, bytes(64)))
    life.hear(encode(forged))
    life.hear(encode(RequestConfirmation(1, Signed(body, bytes(64)))))
    assert life.troubles == [(AnswerProblem.SIGNATURE, None, None)]
    assert STRANGER.public() != OWNER.public()


def test_two_stories_of_one_interval() -> None:
    life = draw(3)
    life.taken()
    life.hear(life.answer(1))
    body = life.world.feeds[0].batch.body
    other = _batch(replace(body, start=body.start + 1))
    life.hear(encode(RequestConfirmation(2, other.signed)))
    life.hear(encode(replace(life.world.answers[0][0], batch=other.signed)))
    assert life.troubles == [(AnswerProblem.FORKED, 1, 1)]
    assert life.arrived == [1]


def test_an_owner_that_goes_back_in_time_is_told_and_followed() -> None:
    life = draw(3)
    life.taken()
    life.hear(life.answer(1))
    body = life.world.feeds[1].batch.body
    early = _batch(replace(body, start=START - 1))
    life.hear(encode(replace(life.world.answers[1][0], batch=early.signed)))
    third = _batch(replace(life.world.feeds[2].batch.body, previous=early.digest))
    life.hear(encode(replace(life.world.answers[2][0], batch=third.signed)))
    assert life.troubles == [(AnswerProblem.BACK_IN_TIME, 2, 2)]
    assert life.arrived == [1, 3]


def _batch(body: BatchBody) -> Batch:
    return Batch(sign(OWNER, SignaturePurpose.LOCATED_BATCH, body), body)


def test_what_the_provider_says_is_there_has_to_come() -> None:
    life = draw(3)
    life.taken(1)
    assert life.told == [RequestAccepted(1)]
    life.taken(3, number=2)
    life.until(life.now + PATIENCE)
    assert life.troubles == [(AnswerProblem.MISSING_INTERVAL, 2, 3)]


def test_answers_to_a_request_whose_receipt_came_late() -> None:
    life = draw(3)
    life.taken(3, number=2)  # the second request overtook the answers to the first
    life.hear(life.answer(2))
    life.hear(life.answer(3))
    life.hear(life.answer(4))
    life.taken(1, number=1)
    assert (life.arrived, life.troubles) == ([2, 3, 4], [])


def test_without_a_receipt_it_begins_with_the_first_that_comes() -> None:
    life = draw(3)
    life.hear(life.answer(4))
    life.hear(life.answer(3))
    assert life.arrived == []
    life.until(life.now + PATIENCE)
    assert (life.arrived, life.troubles) == ([3, 4], [])


def test_old_batches_are_nothing_new() -> None:
    life = draw(3)
    life.taken(4)
    life.hear(life.answer(2))
    life.hear(life.answer(1))
    assert (life.arrived, life.troubles) == ([], [(AnswerProblem.OLD_ROOT, None, None)])


def test_silence_is_told_once_an_interval() -> None:
    life = draw(3)
    life.taken()
    life.until(end(3))
    assert life.troubles == [], "nobody said that there is a batch"
    life.hear(life.answer(1))
    life.until(end(5))
    silent = [(end(number - 1), end(number)) for number in (2, 3, 4)]
    assert life.silent == silent
    life.until(end(5) + PATIENCE)
    assert life.silent[-1] == (end(4), end(5))


@pytest.mark.parametrize("pause", [0, 1, 5, 100])
def test_silence_is_told_as_soon_after_a_pause_of_the_owner_as_without_one(pause: int) -> None:
    life = draw(3)
    life.taken()
    life.hear(life.answer(1))
    # The owner makes no batch for that long, and its second one then: numbers do not go on meanwhile.
    back = START + SECONDS * (1 + pause)
    life.until(back + SECONDS)
    first = life.world.feeds[0]
    made = make_batch(OWNER, BatchInterval(back, SECONDS, first.batch), first.table, 4, [])
    _, batch, root = read_batch(encode(made))
    life.hear(encode(ProviderBatch(batch, root, first.table).answers([life.world.subscriptions[0]])[0]))
    before = len(life.silent)
    assert life.arrived == [1, 2]
    life.until(back + 2 * SECONDS + PATIENCE - 1)
    assert len(life.silent) == before
    life.until(back + 2 * SECONDS + PATIENCE)
    assert life.silent[before:] == [(back + SECONDS, back + 2 * SECONDS)]


def test_who_comes_back_hears_what_waits_before_it_calls_anybody_silent() -> None:
    life = draw(3)
    life.taken()
    life.hear(life.answer(1))
    life.now = end(6)
    life.begin(life.following.state)
    life.step()
    for number in range(2, 7):
        life.hear(life.answer(number))
    life.until(end(7))
    assert (life.arrived, life.troubles) == ([1, 2, 3, 4, 5, 6], [])
    life.now = end(1000)
    life.begin(life.following.state)
    life.until(end(1000) + PATIENCE)
    assert len(life.troubles) == 1, "one line for all that was missed meanwhile"


@pytest.mark.parametrize("far", [MAX_PASSED + 1, 10**9])
def test_memory_is_bounded(far: int) -> None:
    life = draw(3)
    life.taken()
    life.hear(life.answer(1))
    last = life.world.feeds[5].batch.body
    for number in range(far, far + 2 * MAX_EARLY, 2):
        batch = _batch(replace(last, number=number, start=last.start + number))
        life.hear(encode(replace(life.world.answers[5][0], number=number, batch=batch.signed)))
        assert len(life.following._early) <= MAX_EARLY + 1
    life.until(life.now + PATIENCE)
    assert len(life.following.state.passed) <= MAX_PASSED
    assert life.troubles[0] == (AnswerProblem.MISSING_INTERVAL, 2, far - 1)


def test_another_subscription_may_take_the_place_of_one() -> None:
    life = draw(3)
    life.taken()
    life.hear(life.answer(1))
    life.following.ask(life.world.subscriptions[1])
    life.hear(life.answer(2))
    life.hear(encode(life.world.answers[2][1]))
    asked = [one.asked for one in life.told if isinstance(one, IntervalArrived)]
    one, other = life.world.subscriptions
    assert asked == [one, one, other]
    assert life.troubles == []


def test_an_answer_that_waits_is_known_by_its_mark() -> None:
    life = draw(3)
    life.taken(1)
    life.following.hear(life.answer(3), life.now, 17)
    life.step()
    assert life.following.oldest_mark == 17
    life.until(life.now + PATIENCE)
    assert life.following.oldest_mark is None
