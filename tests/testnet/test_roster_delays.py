"""What a directory that delays rosters finds: its estimate, and a small network."""

from __future__ import annotations

import pytest

from hushcast_testnet.simulations.overlay_simulation import Scenario, simulate
from hushcast_testnet.simulations.roster_delays import PERIOD, companions_named

OWNERS = [(daemon, topic) for daemon in range(3) for topic in "ab"]
ROUNDS = range(8)


def test_subscriptions_that_follow_the_delays_of_their_daemon_are_all_named() -> None:
    late = {0: {0, 1, 4}, 1: {2, 3, 4}, 2: {0, 5, 6}}
    seated = {
        (daemon, topic): {at: 0.6 * (at in late[daemon]) + 0.01 * ord(topic) % 0.1 for at in ROUNDS}
        for daemon, topic in OWNERS
    }
    assert companions_named(seated, OWNERS, ROUNDS) == 1.0


def test_who_never_acts_in_the_same_rounds_is_named() -> None:
    seated = {
        (daemon, topic): {at: 0.9 + 0.1 * (topic == "b") for at in ROUNDS if at >> daemon & 1}
        for daemon, topic in OWNERS
    }
    assert companions_named(seated, OWNERS, ROUNDS) == 1.0


def test_where_all_are_alike_chance_is_what_is_named() -> None:
    alike = {owner: dict.fromkeys(ROUNDS, 0.9) for owner in OWNERS}
    for seated in (alike, {}):
        assert companions_named(seated, OWNERS, ROUNDS) == pytest.approx(1 / 3)
    assert companions_named(alike, OWNERS, range(0)) == pytest.approx(1 / 3)


def test_subscriptions_that_act_like_another_daemons_are_wrongly_named() -> None:
    moments = {"a": [0.0, 0.3, 0.6], "b": [0.3, 0.6, 0.0]}
    seated = {owner: dict.fromkeys(ROUNDS, moments[owner[1]][owner[0]]) for owner in OWNERS}
    assert companions_named(seated, OWNERS, ROUNDS) == 0.0


@pytest.mark.slow
def test_rosters_kept_back_link_nothing() -> None:
    """Eight subscriptions of four daemons over three rounds, in two networks; chance is a quarter.

    Of sixteen that are named by chance more than half are right once in 130 draws of networks; where rosters
    link something, all are.
    """
    minutes = 60.0 * PERIOD * 5
    named = []
    for seed in (1, 2):
        scenario = Scenario(4, 4, 2, topics=2, minutes=minutes, delay_rosters=0.6, seed=seed)
        result = simulate(scenario)
        assert result.delivered == result.pairs == 8
        assert result.conditions == {}
        found = result.companions
        assert (found["trials"], found["by_chance"]) == (8, 0.25)
        assert found["rounds"] >= 3
        named.append(found["named"])
    assert sum(named) / len(named) <= 0.5
