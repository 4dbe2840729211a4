"""The engine in numpy beside the pure code and brute force: the same matches, bit for bit."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from proving import try_batch
from spark_same import asking, texts
from spatial_world import World, entries

import hushcast_located.figures.matching_costs as measure_module
import hushcast_located.prover as prover_module
import hushcast_located.similarity_reach as reach_module
from hushcast_located import engines
from hushcast_located.batch_folder import BatchFolder
from hushcast_located.crowd import crowd_of
from hushcast_located.figures.figures_run import run_given
from hushcast_located.figures.matching_costs import WorkloadSize, measure
from hushcast_located.local_engine import LocalEngine, MatchingWork
from hushcast_located.owner import BatchOptions, add_batch
from hushcast_located.workload import KEYWORDS, Workload, greatest_distance
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.wire import encode
from hushcast_protocol.spatial.matching import MatchingCost, plain, pruned
from hushcast_protocol.spatial.similarity import WHOLE, WeightedSubscription
from hushcast_protocol.spatial.weight_table import sign_table

Pairs = list[tuple[int, str]]


def hold(world: World) -> int:
    """Hold every way of the engine against the pure code and brute force; return the matches."""
    total = 0
    for at, feed in enumerate(world.feeds):
        asked = [feed.table.asked(one) for one in world.subscriptions]
        expected = [(number, name) for number in range(len(asked)) for name in world.wanted(at, number)]
        pure = MatchingCost()
        assert sorted((number, one.message.id) for number, one in plain(entries(feed.root), asked, pure)) == (
            sorted(expected)
        )
        engine = LocalEngine(crowd_of(asked), pruned_from=world.random.choice((1, 2, 8)))
        for way in (engine.plain, engine.settled):
            work = MatchingWork()
            assert found(way(entries(feed.root), work)) == sorted(expected)
            assert work.accessed == pure.accessed
            assert work.candidates >= pure.candidates  # the filter is rounded up
        work = MatchingWork()
        assert found(engine.pruned(feed.root, work)) == sorted(expected)
        assert work.accessed <= pure.accessed
        assert work.compared <= work.candidates
        total += len(expected)
    return total


def found(some: object) -> Pairs:
    return sorted((number, one.message.id) for one, numbers in some for number in numbers.tolist())  # type: ignore[attr-defined]


@pytest.mark.slow
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, 2**32), st.sampled_from((0, 1, 5, 40)), st.integers(0, 12))
def test_the_engine_finds_what_brute_force_does(seed: int, most: int, subscriptions: int) -> None:
    hold(World.draw(Random(seed), most=most, intervals=1, subscriptions=subscriptions))


def test_integers_alone_find_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reach_module, "_DOUBT", 2.0)  # nothing is left to floats
    assert sum(hold(World.draw(Random(seed), intervals=1, subscriptions=12)) for seed in range(10)) > 50


@pytest.mark.parametrize("seed", range(3))
def test_the_heaviest_words_and_most_of_them(seed: int) -> None:
    random = Random(seed)
    world = World.draw(random, most=30, intervals=1)
    said = {word for entry in entries(world.feeds[0].root) for word in entry.words}
    words = [*sorted(said), *(f"w{number}" for number in range(64))]
    weights = {word: 1_000_000_000 - random.randrange(3) for word in words}
    asked = []
    for number in range(30):
        some = dict(
            sorted(((word, weights[word]) for word in random.sample(words, 1 + 2 * number)), key=_rank)
        )
        place = random.choice(world.subscriptions).place
        asked.append(
            WeightedSubscription(place, some, random.randrange(WHOLE + 1), random.randrange(WHOLE + 1), 2**31)
        )
    expected = sorted((at, one.message.id) for at, one in pruned(world.feeds[0].root, asked, MatchingCost()))
    assert found(LocalEngine(crowd_of(asked), 1).pruned(world.feeds[0].root, MatchingWork())) == expected


def _rank(one: tuple[str, int]) -> tuple[int, str]:
    return -one[1], one[0]


def test_a_border_is_decided_by_integers() -> None:
    world = World.draw(Random(5), most=30, intervals=1)
    (entry, *_) = entries(world.feeds[0].root)
    x, y, z = entry.message.place
    for off in (0, 1):  # exactly where simS is theta, and a unit (6 mm) beyond
        one = WeightedSubscription((x, y, z - 2**28 - off), {"nowhere": 7}, 0, 500, 2**29)
        engine = LocalEngine(crowd_of([one]))
        names = [name for _, name in found(engine.plain([entry], MatchingWork()))]
        assert names == ([entry.message.id] if off == 0 else [])


def test_without_numpy_the_pure_code_finds_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World.draw(Random(1), most=40, intervals=1, subscriptions=20)
    (feed,) = world.feeds
    fast = engines.matches(feed, world.subscriptions)
    assert fast == [world.wanted(0, number) for number in range(20)]
    assert any(fast)
    monkeypatch.setitem(sys.modules, "numpy", None)
    assert engines.matches(feed, world.subscriptions) == fast


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, 2**64))
def test_answers_are_those_of_the_pure_code(seed: int) -> None:
    try_batch(Random(seed))


def test_answers_by_integers_alone_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reach_module, "_DOUBT", 2.0)
    assert sum(try_batch(Random(seed)) for seed in range(10)) > 50


def test_many_answers_are_made_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prover_module, "_CELLS", 1)  # 16 subscriptions at once
    world = World.draw(Random(3), most=40, intervals=1, subscriptions=50)
    made = [encode(answer) for answer in world.answers[0]]
    assert [answer for answer, _ in engines.answers(world.feeds[0], world.subscriptions)] == made


def test_answers_without_numpy_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World.draw(Random(1), most=40, intervals=1, subscriptions=20)
    fast = list(engines.answers(world.feeds[0], world.subscriptions))
    monkeypatch.setitem(sys.modules, "numpy", None)
    assert list(engines.answers(world.feeds[0], world.subscriptions)) == fast
    assert sum(messages for _, messages in fast) > 10


@pytest.mark.slow
def test_a_workload_follows_from_its_seed_and_is_as_the_papers() -> None:
    one, other = (Workload(np.random.default_rng(3)) for _ in range(2))
    said = one.messages(20, 1)
    assert said == other.messages(20, 1)
    assert {len(message.words) for message in said} == {KEYWORDS}
    table = sign_table(Seed(bytes(32)), 1, dict.fromkeys(said[0].words, 7), 9, greatest_distance())
    crowd, same = one.crowd(500, table), other.crowd(500, table)
    assert set(np.diff(crowd.starts).tolist()) == {1, 2, 3, 4, 5}
    again = crowd_of([same.asked(number) for number in range(500)])
    assert (again.places == crowd.places).all()
    assert (again.weights == crowd.weights).all()
    assert [again.names[word] for word in again.words] == [crowd.names[word] for word in crowd.words]


@pytest.mark.slow
def test_what_is_measured_is_as_the_paper_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure_module, "PROOFS", 20)
    points = list(measure(WorkloadSize(1500, 40, 1), lambda _: None))
    assert len(points) == 9
    for point in points:
        plain_way, settled, by_tree = (point.ways[name] for name in ("SP", "SP, settled", "SP + IIP"))
        assert plain_way.candidates == settled.candidates == by_tree.candidates
        assert plain_way.candidates >= plain_way.compared * 0.999 >= settled.compared == by_tree.compared
        assert plain_way.candidates >= point.wanted
    at = {(point.alpha, point.theta): point for point in points}
    assert at[500, 500].wanted > at[500, 700].wanted > at[500, 900].wanted > 0
    proofs = at[500, 700].proofs
    assert proofs is not None
    assert proofs.all.size > 0


@pytest.mark.slow
def test_figures_are_of_data_that_is_given_too(tmp_path: Path) -> None:
    for name, some in (("messages", texts()), ("subscriptions", asking())):
        (tmp_path / name).write_text("".join(json.dumps(one) + "\n" for one in some))
    batches = BatchFolder(tmp_path / "batches")
    add_batch(Seed(bytes(32)), batches, tmp_path / "messages", BatchOptions(300), 10_000)
    page = run_given(tmp_path / "out", batches.path, tmp_path / "subscriptions", lambda _: None)
    assert "100 subscriptions and 100 messages that were given" in page.read_text()
    told = json.loads((tmp_path / "out" / "figures.json").read_text())
    assert told["size"] == {"subscriptions": 100, "messages": 100, "seed": None}
    assert all(point["wanted"] > 0 for point in told["points"])
