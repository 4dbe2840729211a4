"""The hosts of a box: two of a list drawn once, in order, whatever becomes of them."""

from __future__ import annotations

import random
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from hushcast_protocol.overlay.host_list import GONE_AFTER, HOSTS, HostList, KnownHost

RELAYS = [bytes([number]) * 32 for number in range(12)]
PATIENCE = 7200.0
DAY = 20_000


def drawer(seed: int):
    randomness = random.Random(seed)
    return lambda relays, count: randomness.sample(relays, min(count, len(relays)))


def drawn(seed: int = 1) -> HostList:
    return HostList.drawn(RELAYS, DAY, drawer(seed))


def test_two_are_drawn_uniformly_and_in_order() -> None:
    lists = [drawn(seed).relays for seed in range(6000)]
    assert all(len(set(one)) == HOSTS for one in lists)
    for place in range(HOSTS):
        counts = Counter(one[place] for one in lists)
        assert counts.keys() == set(RELAYS)
        assert max(counts.values()) < 600 < 1.3 * min(counts.values()) * len(RELAYS) / 10


def test_where_there_is_one_relay_the_second_is_drawn_when_another_comes() -> None:
    alone = HostList.drawn(RELAYS[:1], DAY, drawer(1))
    assert alone.failed(RELAYS[0], 1e9, 0.0, True).current == RELAYS[0]
    both = alone.look(RELAYS[:2], DAY, drawer(1))
    assert both.relays == tuple(RELAYS[:2])
    assert both.failed(RELAYS[0], 1e9, 0.0, True).current == RELAYS[1]


def test_the_second_is_used_once_the_first_was_away_for_long_and_the_first_as_soon_as_it_answers() -> None:
    hosts = drawn()
    first, second = hosts.relays
    hosts = hosts.failed(first, 1000.0, PATIENCE, True)
    assert hosts.current == first
    assert hosts.failed(first, 1000.0 + PATIENCE - 1, PATIENCE, True).current == first
    hosts = hosts.failed(first, 1000.0 + PATIENCE, PATIENCE, True)
    assert hosts.current == second
    assert hosts.failed(second, 1e9, PATIENCE, True) == hosts.answered(second) == hosts
    hosts = hosts.answered(first)
    assert hosts == drawn()


def test_the_second_is_tried_first_and_used_only_if_it_answers_where_the_first_does_not() -> None:
    hosts = drawn()
    first, second = hosts.relays
    assert hosts.needs(first, 0.0, PATIENCE)
    assert not hosts.needs(second, 1e9, PATIENCE)
    for moment in (0.0, PATIENCE, 10 * PATIENCE):  # as where this daemon has no network
        hosts = hosts.failed(first, moment, PATIENCE, False)
        assert hosts.current == first
    assert not hosts.needs(second, PATIENCE - 1, PATIENCE)
    assert hosts.needs(second, PATIENCE, PATIENCE)
    assert hosts.failed(first, 11 * PATIENCE, PATIENCE, True).current == second
    assert not hosts.answered(first).needs(second, 1e9, PATIENCE)


def test_who_answers_now_and_then_is_not_left() -> None:
    hosts = drawn()
    first = hosts.relays[0]
    for moment in range(0, 100_000, 100):
        hosts = hosts.failed(first, moment, PATIENCE, True) if moment % 7000 else hosts.answered(first)
        assert hosts.current == first


def test_another_is_drawn_for_one_that_fourteen_days_of_rosters_lack() -> None:
    hosts = drawn()
    first, second = hosts.relays
    hosts = hosts.failed(first, 0.0, PATIENCE, True).failed(first, PATIENCE, PATIENCE, True)
    left = [relay for relay in RELAYS if relay != first]
    for day in range(1, GONE_AFTER):
        for _ in range(3):  # more rosters of the same day count as one
            hosts = hosts.look(left, DAY + day, drawer(2))
        assert hosts.relays == (first, second)
    assert hosts.look(RELAYS, DAY + GONE_AFTER, drawer(2)).hosts[0] == KnownHost(first, DAY + GONE_AFTER)
    hosts = hosts.look(left, DAY + GONE_AFTER, drawer(2))
    assert hosts.relays[0] == second, "who was second comes first: in order"
    assert hosts.relays[1] not in (first, second)
    assert (hosts.current, hosts.away_since) == (second, None)


def test_days_without_a_roster_do_not_count() -> None:
    hosts = drawn()
    left = [relay for relay in RELAYS if relay not in hosts.relays]
    later = hosts.look(left, DAY + 1000, drawer(2))
    assert later.relays == hosts.relays
    assert later.look(left, DAY + 500, drawer(2)) == later


def test_where_nobody_else_is_listed_the_list_stays() -> None:
    hosts = drawn()
    for day in range(1, 3 * GONE_AFTER):
        hosts = hosts.look([], DAY + day, drawer(2))
    assert hosts.relays == drawn().relays


steps = st.lists(
    st.one_of(
        st.tuples(st.just("failed"), st.integers(0, 11), st.floats(0, 1e6)),
        st.tuples(st.just("answered"), st.integers(0, 11), st.just(0.0)),
        st.tuples(st.just("look"), st.integers(0, GONE_AFTER - 2), st.floats(0, 1)),
    ),
    max_size=60,
)


@given(st.integers(0, 2**32), steps, st.floats(0, 1e6))
def test_nobody_drives_an_owner_outside_its_list(seed: int, moves: list, patience: float) -> None:
    """Whoever keeps whom away whenever, and whatever rosters lack for less than fourteen days."""
    hosts = drawn(seed)
    own = hosts.relays
    for move, number, value in moves:
        if move == "failed":
            hosts = hosts.failed(RELAYS[number], value, patience, bool(number % 2))
        elif move == "answered":
            hosts = hosts.answered(RELAYS[number])
        else:
            listed = [relay for relay in RELAYS if relay not in own or value > 0.5]
            hosts = hosts.look(listed, DAY + number, drawer(seed))
        assert hosts.relays == own
        assert hosts.current in own


@given(st.integers(0, 2**32), st.lists(st.tuples(st.integers(0, 40), st.sets(st.sampled_from(RELAYS)))))
def test_rosters_change_the_list_only_for_who_is_gone(seed: int, rosters: list) -> None:
    hosts = drawn(seed)
    lacked: Counter[bytes] = Counter()
    last = dict.fromkeys(hosts.relays, DAY)
    for day, listed in rosters:
        before = hosts
        hosts = hosts.look(listed, DAY + day, drawer(seed))
        for relay in before.relays:
            if relay in listed:
                lacked[relay] = 0
                last[relay] = max(last[relay], DAY + day)
            elif DAY + day > last[relay]:
                lacked[relay] += 1
                last[relay] = DAY + day
            assert relay in hosts.relays or lacked[relay] >= GONE_AFTER
        for relay in set(hosts.relays) - set(before.relays):
            assert relay in listed
            lacked[relay], last[relay] = 0, DAY + day
        assert 0 <= hosts.in_use < len(hosts.hosts) <= HOSTS


def test_who_loses_messages_comes_after_the_other_and_is_used_until_that_one_answers() -> None:
    hosts = drawn()
    first, second = hosts.relays
    left = hosts.lost(first)
    assert left.relays == (second, first)
    assert left.current == first
    assert left.needs(second, 0.0, PATIENCE)
    assert left.answered(second).current == second
    assert left.answered(second).lost(second).relays == (first, second)
    assert hosts.lost(second) == hosts


def test_where_the_second_is_used_the_first_is_away_and_nothing_changes() -> None:
    hosts = drawn()
    first, second = hosts.relays
    hosts = hosts.failed(first, 0.0, 0.0, True)
    assert hosts.current == second
    assert hosts.lost(second) == hosts
