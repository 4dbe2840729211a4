"""Costs of relays with several parts at once are told apart, and each stands beside its formula."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
import trio
from cover_world import CoverWorld

from benchmarks.cover.clients import CoveredClient, CoverRun
from benchmarks.cover.cover_costs import PASSED_BY_PART, cover_costs
from benchmarks.cover.process_costs import ProcessCosts
from benchmarks.cover.relay_roles import CoverPart, Parts, chains_in, parts_of, split_by_part
from benchmarks.cover.socks_watch import Piece, SocksWatch
from hushcast_protocol.base.cover_terms import LEAST_ROUND
from hushcast_protocol.cover.cover_chain import CoverChain
from hushcast_runtime.storage.store import SqliteStore
from hushcast_runtime.transports.endpoints import Endpoint
from hushcast_runtime.transports.streams import LOOPBACK
from hushcast_testnet.inventory import Member

RELAYS = [bytes([number]) * 32 for number in range(15)]
SECONDS, THIRDS, DAEMONS, ROUNDS = RELAYS[:4], RELAYS[4:8], 54, 80
COSTS = {CoverPart.PORTER: 20.0, CoverPart.SECOND: 9.0, CoverPart.THIRD: 12.0, CoverPart.HOST: 3.0}


def drawn_parts(chance: random.Random) -> list[dict[CoverPart, float]]:
    """What each relay is of daemons that drew their chains, and their lanes' hosts, among fifteen."""
    chains = [
        CoverChain(chance.choice(RELAYS), chance.choice(SECONDS), chance.choice(THIRDS), 0, 0.0, 0.0)
        for _ in range(DAEMONS)
    ]
    hosts = chance.choices(RELAYS, k=3 * DAEMONS)
    bills = chance.choices(SECONDS, k=3 * DAEMONS)

    def parts(relay: bytes) -> dict[CoverPart, float]:
        done = {"blocks_handed": ROUNDS * bills.count(relay), "blocks_given": ROUNDS * hosts.count(relay)}
        return parts_of(relay, chains, done, ROUNDS)

    found = [parts(relay) for relay in RELAYS]
    for part in CoverPart:
        assert sum(one[part] for one in found) == pytest.approx(DAEMONS)
    return found


def took(parts: Parts, noise: float = 0.0) -> float:
    """What a relay takes, of which 100 whatever it is."""
    return 100 + sum(COSTS[part] * count for part, count in parts.items()) + noise


def test_what_each_part_costs_is_found_within_its_error() -> None:
    chance, far = random.Random(4), 0
    for _ in range(40):
        parts = drawn_parts(chance)
        found = split_by_part(parts, [took(one, chance.gauss(0, 8)) for one in parts])
        for part, cost in found.items():
            assert 0.1 < cost.error < 5
            far += abs(cost.mean - COSTS[part]) > 2.23 * cost.error  # one of twenty, by ten degrees
    assert far <= 16
    exact = split_by_part(parts, [took(one) for one in parts])
    assert [cost.mean for cost in exact.values()] == pytest.approx(list(COSTS.values()))


def test_parts_that_go_together_are_not_told_apart() -> None:
    parts = drawn_parts(random.Random(4))
    assert split_by_part(parts[:5], [took(one) for one in parts[:5]]) == {}
    alike = [one | {CoverPart.HOST: one[CoverPart.THIRD]} for one in parts]
    assert split_by_part(alike, [took(one) for one in alike]) == {}


def test_a_table_has_each_part_beside_its_formula(tmp_path: Path) -> None:
    parts = drawn_parts(random.Random(7))
    names = [f"relay-{number}" for number in range(len(RELAYS))]
    relays = [Member(name, "", str(tmp_path / name), str(tmp_path), None) for name in names]
    member = Member("client-1", "", str(tmp_path), str(tmp_path), None)
    client = CoveredClient(member, True, SocksWatch(Endpoint(host=LOOPBACK, port=1)))
    client.watch.seen.append(Piece(1.0, 0, True, 1))
    run = CoverRun(relays, [client], seconds=ROUNDS * LEAST_ROUND, passed=10)
    usual = ProcessCosts(1.0, 1_000, {"a": 1_000})
    run.parts = dict(zip(names, parts, strict=True))
    costs = {name: took(one) * ROUNDS for name, one in run.parts.items()}
    run.quiet = dict.fromkeys(names, usual)
    run.grown = {name: round(cost) for name, cost in costs.items()}
    run.taken = {member.name: usual} | {
        name: ProcessCosts(cost / 1e3, round(1e3 * cost), {"a": round(cost), "b": round(2 * cost)})
        for name, cost in costs.items()
    }
    found = {one.figure.split(", give or take")[0]: one for one in cover_costs(run, [client])}
    for part, cost in COSTS.items():
        for what, times, formula in (
            ("CPU, ms,", 1, None),
            ("bytes sent and received", 3, PASSED_BY_PART[list(CoverPart).index(part)]),
            ("bytes written to disk", 1e3, 8 * 4_096 if part is CoverPart.PORTER else 0),
            ("bytes more on disk", 1, 5 * 4_096 if part is CoverPart.PORTER else 0),
        ):
            one = found[f"{what} of a daemon's {part.value} a round"]
            assert one.ours == pytest.approx(times * cost, rel=0.01), what
            assert formula in (None, one.peer_value)
            assert (one.ratio is None) == (one.peer_value == 0)
    assert 65_000 < PASSED_BY_PART[0] < 70_000


async def test_a_chain_is_read_from_the_disk_of_a_daemon_that_runs(tmp_path: Path) -> None:
    world, path = CoverWorld(), tmp_path / "state.db"
    world.store = SqliteStore(path)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(world.store.run)
        assert chains_in(path) == []
        kept = await world.chain()
        await world.follow(kept)
        assert chains_in(path) == [kept.held.chain]
        nursery.cancel_scope.cancel()
    world.store.close()
