"""The order between houses: two gateways, a network that shuffles and repeats, and a plain model."""

from __future__ import annotations

import random

import pytest
from steps import one_step

from hushcast_protocol.mqtt import arrival_order, own_places
from hushcast_protocol.mqtt.arrival_order import (
    MAX_HELD,
    NEW_WAIT,
    ArrivalOrder,
    Mark,
    ReleasedArrival,
    stream_of,
)
from hushcast_protocol.mqtt.envelope import Place
from hushcast_protocol.mqtt.own_places import EPOCH_UNIT, OwnPlaces, SourceSecret

WAIT = 15.0
SECRET = SourceSecret(bytes(32))
STREAM = stream_of("home", "hush/home/a", b"source 1")
START = 1_000_000_000.0


def place(number: int, epoch: int = 1, alone: bool = False) -> Place:
    return Place(b"source 1", epoch, number, alone)


def told(released: list[ReleasedArrival[int]]) -> list[int]:
    return [one.item if not one.is_late else -one.item for one in released]


def take(order: ArrivalOrder[int], number: int, now: float = 0.0, epoch: int = 1) -> list[int]:
    return told(order.came(STREAM, place(number, epoch, number == 1), number, 1, now))


def test_what_comes_in_any_order_is_handed_out_in_one() -> None:
    order = ArrivalOrder[int](WAIT)
    assert [take(order, number) for number in (3, 1, 2, 5, 6, 4)] == [[], [1], [2, 3], [], [], [4, 5, 6]]
    assert order.held == 0


def test_what_lacks_is_waited_for_and_not_for_ever() -> None:
    order = ArrivalOrder[int](WAIT)
    assert [take(order, 1), take(order, 3, 1.0), take(order, 5, 9.0)] == [[1], [], []]
    assert order.next_due == 1.0 + WAIT
    assert told(order.due(15.9)) == []
    assert told(order.due(16.0)) == [3]
    assert take(order, 2, 16.0) == [-2], "it is late: something newer was handed out"
    assert take(order, 4, 16.0) == [4, 5]
    assert told(order.due(100.0)) == []
    assert order.next_due is None


def test_who_comes_to_a_topic_waits_where_something_may_be_under_way() -> None:
    order = ArrivalOrder[int](WAIT)
    assert take(order, 7) == []
    assert take(order, 6) == []
    assert told(order.due(WAIT)) == [6, 7]
    other = ArrivalOrder[int](WAIT)
    assert told(other.came(STREAM, place(7, alone=True), 7, 1, 0.0)) == [7]


def test_another_epoch_goes_on_with_any_number_that_is_known() -> None:
    order = ArrivalOrder[int](WAIT)
    order.restore(STREAM, Mark(1, 10))
    assert take(order, 9, epoch=2) == [9], "numbers that the gateway forgot are given again"
    assert take(order, 11, epoch=1) == [-11]
    assert take(order, 11, epoch=3) == []
    assert take(order, 10, epoch=2) == [10, 11]


def test_who_does_not_wait_learns_what_is_late() -> None:
    order = ArrivalOrder[int](0.0)
    assert [take(order, number) for number in (2, 1, 3)] == [[2], [-1], [3]]
    order = ArrivalOrder[int](WAIT)
    assert told(order.came(STREAM, place(5), 5, 1, 0.0, False)) == [5]
    assert told(order.came(STREAM, place(3), 3, 1, 0.0, False)) == [-3]


def test_what_waits_is_bounded_and_nothing_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    order = ArrivalOrder[int](WAIT)
    take(order, 1)
    found = [take(order, number) for number in range(3, MAX_HELD + 4)]
    assert found[:-1] == [[]] * MAX_HELD
    assert found[-1] == list(range(3, MAX_HELD + 4)), "not waited for any longer"
    monkeypatch.setattr(arrival_order, "MAX_HELD_OUT_OF_ORDER", 100)
    order = ArrivalOrder[int](WAIT)
    take(order, 1)
    assert told(order.came(STREAM, place(3), 3, 70, 0.0)) == []
    assert told(order.came(STREAM, place(4), 4, 70, 0.0)) == [3, 4]
    assert told(order.came(STREAM, place(6), 6, 70, 0.0)) == [], "and there is room again"


def test_marks_are_bounded_and_the_alias_with_most_loses_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrival_order, "MAX_MARKS", 3)
    order = ArrivalOrder[int](WAIT)
    mine = stream_of("mine", "hush/mine/a", b"source 1")
    order.came(mine, place(1, alone=True), 1, 1, 0.0)
    for number in range(10):
        other = stream_of("theirs", f"hush/theirs/{number}", b"source 2")
        order.came(other, place(1, alone=True), 1, 1, 0.0)
    assert [one.alias for one in order.forgotten] == ["theirs"] * 8
    assert told(order.came(mine, place(1), 1, 1, 0.0)) == [-1], "what others did has not touched this"


def test_no_step_is_long(monkeypatch: pytest.MonkeyPatch) -> None:
    order = ArrivalOrder[int](WAIT)
    for number in range(MAX_HELD + 1, 1, -1):
        with one_step():
            order.came(STREAM, place(number), number, 1, 0.0)
    with one_step():
        assert len(order.due(WAIT)) == MAX_HELD


def test_numbers_grow_by_topic_and_sources_have_nothing_in_common() -> None:
    own = OwnPlaces(SECRET)
    first, _ = own.next("a", START)
    assert first == own.next("a", START + 100.0)[0], "until it is taken"
    assert first is not None
    assert first.is_alone
    own.taken("a", Mark(first.epoch, first.number), START)
    second, _ = own.next("a", START)
    other, _ = own.next("b", START)
    assert second is not None
    assert other is not None
    assert (second.number, second.is_alone, other.number) == (2, False, 1)
    assert other.source != second.source == first.source
    assert OwnPlaces(SourceSecret(b"1" * 32)).source("a") != first.source


def test_a_gateway_knows_what_it_published_in_this_run_and_what_an_earlier_one_has_noted() -> None:
    own = OwnPlaces(SECRET)
    own.restore("a", Mark(5, 7), START)
    assert own.is_known("a", Place(own.source("a"), 5, 7, False))
    assert not own.is_known("a", Place(own.source("a"), 5, 8, False))
    now, _ = own.next("a", START)
    assert now is not None
    assert (now.epoch, now.number) == (int(START) // EPOCH_UNIT, 8)
    own.given_up("a")
    again, _ = own.next("a", START)
    assert again is not None
    assert (again.epoch, again.number) == (now.epoch + 1, 8)
    assert own.is_known("a", now)
    assert own.is_known("a", again)


def test_a_run_that_noted_nothing_is_told_from_the_next() -> None:
    before, _ = OwnPlaces(SECRET, 5_000_000).next("a", START)
    after, _ = OwnPlaces(SECRET, 5_000_000 + own_places.EPOCHS_A_RUN).next("a", START)
    assert before is not None
    assert after is not None
    assert after.epoch > before.epoch
    assert after.number == before.number


def test_topics_with_numbers_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_places, "MAX_NUMBERED", 2)
    own = OwnPlaces(SECRET)
    for topic in "ab":
        found, given_up = own.next(topic, START)
        assert found is not None
        assert not given_up
        own.taken(topic, Mark(found.epoch, found.number), START)
    assert own.next("c", START) == (None, ""), "numbers of `a` would begin anew in one epoch"
    later = START + EPOCH_UNIT
    found, given_up = own.next("c", later)
    assert found is not None
    assert given_up == "a"


class House:
    """A gateway with what is on its disk, a model of what is retained, and what its clients got."""

    def __init__(self, name: bytes, now: float) -> None:
        self.secret = SourceSecret(name * 32)
        self.numbers: dict[str, Mark] = {}
        self.marks: dict[tuple[str, bytes], Mark] = {}
        self.retained: dict[str, int] = {}
        self.got: list[tuple[str, int]] = []
        self.unheard: list[tuple[str, Place, int, bool]] = []
        self.start(now)

    def start(self, now: float) -> None:
        """Begin a run with what the disk has; what waited comes again from the daemon."""
        self.own, self.order = OwnPlaces(self.secret), ArrivalOrder[tuple[str, Place, int, bool]](WAIT)
        for topic, mark in self.numbers.items():
            self.own.restore(topic, mark, now)
        for (topic, source), mark in self.marks.items():
            self.order.restore(stream_of("home", topic, source), mark)

    def keep(self, topic: str, value: int, retain: bool) -> None:
        if retain and value % 5 == 0:  # deletes
            self.retained.pop(topic, None)
        elif retain:
            self.retained[topic] = value

    def publish(self, topic: str, value: int, retain: bool, now: float) -> tuple[str, Place, int, bool]:
        found, _ = self.own.next(topic, now)
        assert found is not None
        self.keep(topic, value, retain)
        self.own.taken(topic, Mark(found.epoch, found.number), now)
        self.numbers[topic] = Mark(found.epoch, found.number)
        return topic, found, value, retain

    def take(self, one: tuple[str, Place, int, bool], now: float) -> None:
        topic, found, _, _ = one
        if self.own.source(topic) == found.source:
            return
        self.unheard.append(one)
        self.release(self.order.came(stream_of("home", topic, found.source), found, one, 1, now))

    def release(self, released: list[ReleasedArrival[tuple[str, Place, int, bool]]]) -> None:
        for each in released:
            topic, found, value, retain = each.item
            if each.item in self.unheard:
                self.unheard.remove(each.item)
            if not each.is_late:
                self.marks[topic, found.source] = each.mark
                self.got.append((topic, value))
                self.keep(topic, value, retain)

    def pass_time(self, now: float) -> None:
        while released := self.order.due(now):
            self.release(released)


def script(seed: int, longest: float, may_lose: bool) -> tuple[House, House, list[tuple[str, int, bool]]]:
    """Play one script: house 1 publishes, both are killed now and then; return what came of it."""
    chance = random.Random(seed)
    now = START
    first, second = House(b"1", now), House(b"2", now)
    published: list[tuple[str, int, bool]] = []
    under_way: list[tuple[float, tuple[str, Place, int, bool]]] = []
    moments = sorted(now + chance.uniform(0, 40) for _ in range(chance.randint(2, 50)))
    lasts = moments[-1] + longest + 2 * WAIT + 1
    for moment in [*moments, *(lasts - WAIT + number for number in range(0, int(WAIT) + 2, 4)), lasts]:
        for at, one in sorted((each for each in under_way if each[0] <= moment), key=lambda each: each[0]):
            second.pass_time(at)
            second.take(one, at)
        under_way = [each for each in under_way if each[0] > moment]
        second.pass_time(moment)
        if chance.random() < 0.05:
            first.start(moment)
        if chance.random() < 0.05:
            second.start(moment)
            again, second.unheard = second.unheard, []
            for one in again:
                second.take(one, moment)
        if moment not in moments:
            continue
        topic, value, retain = chance.choice("ab"), len(published) + 1, chance.random() < 0.6
        one = first.publish(topic, value, retain, moment)
        published.append((topic, value, retain))
        for _ in range(1 if chance.random() < 0.9 else 2):
            if not (may_lose and chance.random() < 0.1):
                under_way.append((moment + chance.uniform(0, longest), one))
    return first, second, published


def retained(got: list[tuple[str, int]], published: list[tuple[str, int, bool]]) -> dict[str, int]:
    """Return what a plain list of what came retains."""
    found: dict[str, int] = {}
    for topic, value in got:
        if published[value - 1][2]:
            found[topic] = value
    return {topic: value for topic, value in found.items() if value % 5}


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_two_houses_are_as_a_plain_list_whatever_the_network_does(part: int) -> None:
    """Ten thousand scripts; where nothing takes longer than is waited for, nothing lacks either."""
    for seed in range(part * 1_000, (part + 1) * 1_000):
        is_quick = seed % 2 == 0
        longest = WAIT / 3 if is_quick else 4 * WAIT
        first, second, published = script(seed, longest, may_lose=not is_quick)
        for topic in "ab":
            got = [value for name, value in second.got if name == topic]
            sent = [value for name, value, _ in published if name == topic]
            assert got == sorted(set(got)), f"{seed}: in order, and none twice"
            if is_quick:
                assert got == sent, f"{seed}: all"
        if is_quick:
            assert second.retained == first.retained, seed
            assert not second.unheard, seed
        else:
            assert second.retained == retained(second.got, published), seed


def test_what_may_have_gone_before_a_gateway_read_is_not_waited_for_as_long() -> None:
    order: ArrivalOrder[str] = ArrivalOrder(45.0)
    new, known = stream_of("home", "new", b"source 1"), stream_of("home", "known", b"source 1")
    order.restore(known, Mark(5, 1))
    for stream in (new, known):
        assert order.came(stream, Place(b"source 1", 5, 3, False), stream.alias, 10, 0.0) == []
    assert order.next_due == NEW_WAIT
    assert [one.stream for one in order.due(NEW_WAIT)] == [new]
    assert order.due(44.9) == []
    assert [one.stream for one in order.due(45.0)] == [known]
