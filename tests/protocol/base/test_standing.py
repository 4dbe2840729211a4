"""Which roster is acted on: a steep one is held for a while, and one that lacks a relay unseats nobody."""

from itertools import pairwise

import pytest
from core_examples import properties
from hypothesis import given
from hypothesis import strategies as st

from hushcast_protocol.base.addresses import parse_address
from hushcast_protocol.base.roster import GENESIS, Network, Relay, Roster
from hushcast_protocol.base.roster_standing import (
    LEAST_LOSS,
    MAX_HELD,
    UNSEAT_AFTER,
    RosterStanding,
    follow,
    is_steep,
    restored,
    seating,
)

RELAYS = [bytes([number]) * 32 for number in range(1, 30)]
NETWORK = Network("standing", "hardened", 60)
ADDRESS = parse_address("127.0.0.1:1")
members = st.sets(st.sampled_from(RELAYS))


def a_roster(epoch, relays, difficulty=0):
    listed = {relay: Relay(relay, ADDRESS, relay, 0, difficulty) for relay in relays}
    return Roster(NETWORK, epoch, GENESIS, epoch.to_bytes(32, "big"), listed)


def walk(*lists):
    """Where daemons stand after each of some rosters."""
    standings: list[RosterStanding] = []
    for epoch, relays in enumerate(lists):
        standings.append(follow(standings[-1] if standings else None, a_roster(epoch, relays)))
    return standings


def test_one_short_roster_is_held_and_the_next_is_acted_on():
    first, short, last = walk(RELAYS, RELAYS[:1], RELAYS)
    assert (first.held, short.held, last.held) == (0, 1, 0)
    assert set(short.acted.relays) == set(RELAYS)
    assert short.acted.epoch == 0
    assert last.acted is last.roster


def test_a_network_that_shrank_is_believed_in_the_end():
    standings = walk(RELAYS, *[RELAYS[:2]] * (MAX_HELD + 1))
    whole = [set(standing.acted.relays) == set(RELAYS) for standing in standings]
    assert whole == [True] * (MAX_HELD + 1) + [False]
    assert standings[-1].held == 0


def test_small_networks_lose_relays_at_once():
    _, after = walk(RELAYS[:5], RELAYS[:3])
    assert after.held == 0
    assert not is_steep(RELAYS[:5], RELAYS[:3])
    assert is_steep(RELAYS[:5], RELAYS[:2])
    assert not is_steep(RELAYS[:2], [])


def test_a_third_may_go_and_no_more():
    assert not is_steep(RELAYS[:12], RELAYS[:8])
    assert is_steep(RELAYS[:12], RELAYS[:7])
    assert is_steep(RELAYS[:12], RELAYS[12:]), "others instead are a loss, too"


def test_what_a_held_roster_says_of_relays_is_used():
    """Under load a relay asks for stamps that it announces there."""
    first = follow(None, a_roster(0, RELAYS))
    held = follow(first, a_roster(1, RELAYS[:1], difficulty=12))
    assert held.held == 1
    assert held.acted.relays[RELAYS[0]].difficulty == 12
    assert held.acted.relays[RELAYS[1]].difficulty == 0


def test_a_relay_keeps_its_seat_until_some_rosters_lack_it():
    others = RELAYS[1:]
    standings = walk(RELAYS, *[others] * UNSEAT_AFTER)
    for count in range(1, UNSEAT_AFTER + 1):
        now = seating(standings[:count])
        assert RELAYS[0] in now.kept
        assert (RELAYS[0] in now.listed) == (count == 1)
    assert seating(standings).kept == set(others)


@pytest.mark.slow
@properties(100)
@given(st.lists(members, min_size=1, max_size=20))
def test_no_roster_is_held_for_ever_and_no_steep_one_acted_on_at_once(lists):
    standings = walk(*lists)
    for before, after in pairwise(standings):
        assert 0 <= after.held <= MAX_HELD
        lost = before.acted.relays.keys() - after.acted.relays.keys()
        if before.held < MAX_HELD:
            assert len(lost) < LEAST_LOSS or 3 * len(lost) <= len(before.acted.relays)
        assert after.acted.relays.keys() == (after.roster if not after.held else before.acted).relays.keys()


@pytest.mark.slow
@properties(100)
@given(st.lists(members, min_size=1, max_size=20))
def test_a_restart_changes_nothing(lists):
    by_epoch = {standing.roster.epoch: standing for standing in walk(*lists)}
    for standing in by_epoch.values():
        acted = by_epoch[standing.acted.epoch].roster
        again = restored(standing.roster, acted, standing.held)
        assert again.acted.relays.keys() == standing.acted.relays.keys()
        assert (again.held, again.acted.epoch) == (standing.held, standing.acted.epoch)
