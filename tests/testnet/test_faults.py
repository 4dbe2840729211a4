"""Whole networks whose relays die, come and go, or lose messages: what still arrives."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from hushcast_testnet.simulations import overlay_simulation
from hushcast_testnet.simulations.faults import Faults
from hushcast_testnet.simulations.overlay_members import OverlayMember
from hushcast_testnet.simulations.overlay_simulation import Scenario, SimulationResult, simulate

pytestmark = pytest.mark.slow

SMALL = Scenario(nodes=30, subscribers=3, publications=40)


@pytest.mark.usefixtures("late_on_a_day")
def test_small_networks_lose_nothing_to_relays_that_die_or_come_and_go() -> None:
    for faults, minutes in ((Faults(kill=0.1), None), (Faults(churn=0.03), 30)):
        result = simulate(Scenario(20, 3, 40, faults=faults, minutes=minutes, origins=2))
        assert result.lost_with_receipt == 0
        assert result.duplicates == 0
        assert result.receipts >= 38  # a publisher may be killed before it has heard from a relay


def test_without_faults_nothing_is_said_to_be_repaired() -> None:
    result = simulate(SMALL)
    assert result.repaired == {"pairs": 0, "delivered": 0}
    assert result.receipts == 40
    assert result.lost_with_receipt == result.gaps_reported == 0


@pytest.mark.usefixtures("late_on_a_day")
def test_a_tenth_of_the_relays_killed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What waited for a host that died for good goes to the next one; who has lost both has nobody.

    So relays are drawn until some subscribers lose their first host, and nobody both. What a host had said
    to have, and its owner had not yet, dies with it: of these owners a message of the last second may lack.
    """
    drawn: list[list[OverlayMember]] = []
    bereft: set[int] = set()
    lacking: list[tuple[int, float]] = []

    def kill(self: Any, nursery: trio.Nursery) -> None:
        boxes = [held.box for client in self._clients for held in client.daemon.overlay.routes.held]
        hosts = [box.hosts.relays for box in boxes if box is not None]
        assert len(hosts) == 10
        while len(drawn) < 100:
            drawn.append(self._env.sample(self._relays, len(self._relays) // 10))
            killed = {relay.key for relay in drawn[-1]}
            bereft.update(number for number, (first, *_) in enumerate(hosts) if first in killed)
            if bereft and not any(killed.issuperset(both) for both in hosts):
                break
            bereft.clear()
        for relay in drawn[-1]:
            relay.kill()

    count = overlay_simulation._Simulation._count

    def look(self: Any) -> SimulationResult:
        for sent, publication in self._accepted():
            shown = {number for message, number in self._shown if message == publication.message.id}
            lacking.extend((number, self._fault_at - sent.time) for number in set(range(10)) - shown)
        return count(self)

    monkeypatch.setattr(overlay_simulation._Simulation, "_break", kill)
    monkeypatch.setattr(overlay_simulation._Simulation, "_count", look)
    result = simulate(Scenario(nodes=50, subscribers=10, publications=50, faults=Faults(kill=0.1)))
    assert 0 < len(drawn) < 100
    assert result.receipts >= 49  # a publisher may be killed before it has heard from a relay
    assert all(number in bereft and 0 <= before <= 1.0 for number, before in lacking)
    assert len(lacking) <= len(bereft), "what was inside other relays that died is not lost"
    assert result.lost_with_receipt == len(lacking)
    assert result.repaired == {"pairs": 250, "delivered": 250}  # half of them follow the fault's repair
    assert result.duplicates == 0
    assert result.transmissions <= 1.2 * result.ideal


def test_an_hour_in_which_one_relay_in_a_hundred_goes_each_minute() -> None:
    scenario = Scenario(nodes=40, subscribers=10, publications=120, faults=Faults(churn=0.01), minutes=60)
    result = simulate(scenario)
    assert result.receipts == 120
    assert result.delivered == result.pairs == 1200
    assert result.duplicates == 0


def test_relays_that_lose_messages_are_found_and_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """Coverage says what is true, names who loses messages, and what it names loses nothing any more."""
    seen: list[dict[str, Any]] = []
    count = overlay_simulation._Simulation._count

    def look(self: Any) -> SimulationResult:
        bad = {relay.key for relay in self._relays if relay.drops}
        for client in self._clients:
            (held,) = client.daemon.overlay.routes.held
            tree = min(held.planned.values(), key=lambda planned: planned.key).installation.tree  # of today
            whole = [relay for relay in tree.parents if bad.isdisjoint(tree.way(relay))]
            told = held.coverage.describe()
            named = {bytes.fromhex(relay) for relay in told["suspects"]}
            truth = {
                "true": len(whole) / len(tree.parents),
                "found": len(named & bad),
                "wrong": len(named - bad),
                "host": held.box is not None and held.box.hosts.current in bad,
            }
            seen.append(told | truth)
        return count(self)

    spoil = overlay_simulation._Simulation._break

    def spare_hosts(self: Any, nursery: trio.Nursery) -> None:
        """A host that loses everything leaves its subscription nothing to learn from: the bad are others."""
        every = self._relays
        hosts = {
            held.box.hosts.current for client in self._clients for held in client.daemon.overlay.routes.held
        }
        self._relays = [relay for relay in every if relay.key not in hosts]  # 5 % of 56 are 3, as of 60
        spoil(self, nursery)
        self._relays = every

    monkeypatch.setattr(overlay_simulation._Simulation, "_count", look)
    monkeypatch.setattr(overlay_simulation._Simulation, "_break", spare_hosts)
    # Origins are drawn at random, so of a leaf there may be one outcome or none: enough that each has some.
    monkeypatch.setattr(overlay_simulation, "PROBES_A_RELAY", 3)
    faults = Faults(droppers=0.05)
    result = simulate(Scenario(nodes=60, subscribers=4, publications=160, origins=2, faults=faults))
    assert not any(told["host"] for told in seen)
    assert len(seen) == 4
    # An interval of 95 % may miss the truth once in twenty: of four, one at most.
    assert sum(told["low"] <= told["true"] <= told["high"] for told in seen) >= 3
    assert all(told["found"] == 3 for told in seen)
    assert all(told["wrong"] <= 0.02 * 56 for told in seen)
    # Trees lose nothing any more. A message is lost that was dropped at two bad relays: one in 400.
    assert result.repaired["delivered"] >= 0.985 * result.repaired["pairs"]


def test_relays_that_choose_what_they_lose_are_found() -> None:
    faults = Faults(droppers=0.2, select=True)
    results = []
    for seed in (1, 2):  # one network may mend its trees so well that its last ones lose nothing
        scenario = Scenario(nodes=20, subscribers=2, publications=40, origins=2, seed=seed, faults=faults)
        results.append(simulate(scenario))
    told = [result.told for result in results]
    assert min(one["delivered"] for one in told) < 1.0
    assert {one["bad"] for one in told} == {4}
    assert max(one["found"] for one in told) >= 1


def test_what_is_lost_for_one_subscriber_is_told_by_others() -> None:
    """Of the first ten minutes of a subscription reports say nothing: these go on for an hour."""
    faults = Faults(droppers=0.2, select=True)
    reported = 0
    for seed in (2, 3, 4):  # in three networks of eight one subscriber loses nothing that the other has
        scenario = Scenario(
            nodes=20, subscribers=2, publications=40, origins=2, seed=seed, faults=faults, minutes=60
        )
        reported += simulate(scenario).gaps_reported
    assert reported > 0
