"""The generator: the planner's trees, the routers' rules, and the same rows whatever does the work."""

import random
from collections import Counter

import numpy as np
import pytest

from hushcast_analytics.errors import TracesError
from hushcast_analytics.generator import draws
from hushcast_analytics.generator.edges import find_edges
from hushcast_analytics.generator.generator_jobs import generate, observations, truths
from hushcast_analytics.generator.message_routes import DUPLICATE, FORWARDED, route
from hushcast_analytics.generator.presence import LISTED_FOR, listed, presence, returns
from hushcast_analytics.generator.publications import numbers, publish
from hushcast_analytics.generator.scenario import EPOCH_SECONDS, GeneratorScenario
from hushcast_analytics.generator.tree_epochs import MENDING, UNSEAT_AFTER, forest, kept, tellings
from hushcast_analytics.generator.tree_repair import NONE, levels
from hushcast_analytics.generator.tree_seats import drawn, root_of, shape, subscribers
from hushcast_analytics.trace_schemas import EPOCHS_A_DAY, OBSERVATIONS, TRUTHS
from hushcast_overlay.relay import registration
from hushcast_protocol.base import epochs, roster_standing
from hushcast_protocol.content.messages import TRAIL_SIZE
from hushcast_protocol.overlay import tree
from hushcast_protocol.overlay.trail import ERROR_RATE, MAX_BITS_SET, MAX_HOPS

SMALL = GeneratorScenario(nodes=40, subscribers=3, topics=2, publications=60, epochs=3)
CHURNING = GeneratorScenario(
    nodes=40, subscribers=3, topics=2, publications=60, epochs=30, up=6, down=3, clients=0
)
PAPER = GeneratorScenario(nodes=40, subscribers=3, topics=2, publications=60, epochs=3, profile="paper")
EACH = pytest.mark.parametrize("asked", [SMALL, CHURNING, PAPER], ids=["small", "churning", "paper"])


def test_a_day_is_the_protocols():
    assert EPOCHS_A_DAY == epochs.EPOCHS_A_DAY


@pytest.mark.parametrize("relays", [1, 2, 3, 7, 40, 200, 500])
@pytest.mark.parametrize("depth", [1, 2, 3, 6])
def test_trees_are_those_of_the_planner_for_the_same_order(relays, depth):
    keys, seed = [number.to_bytes(32, "big") for number in range(relays)], bytes(32)
    planned, order = tree.plan(keys, depth, seed), tree.shuffled(keys, seed)
    above = shape(relays, depth)
    for place, relay in enumerate(order):
        assert planned.parents[relay] == (order[above[place]] if above[place] != NONE else None)
    hops = np.where(above == NONE, relays, above).astype(np.int32)
    assert levels(hops, relays).tolist() == [planned.path_length(relay) for relay in order]


def test_orders_are_uniform():
    tops = Counter()
    for topic in range(600):
        hops = drawn(GeneratorScenario(6, 1, topics=600, depth=1 + topic % 2), topic, 0, 0, np.arange(6))
        tops.update(np.flatnonzero(hops == 6).tolist())
    assert max(tops.values()) < 1.15 * min(tops.values())


def test_a_listed_root_has_no_seat_in_its_own_tree():
    hops = forest(PAPER, 1, 0)
    for number, root in enumerate(subscribers(PAPER, 1)):
        assert hops[root, number] == NONE
        assert (hops[:, number] == root).any()
        assert hops[:, number].max() < PAPER.nodes


def test_rosters_list_who_was_there_before():
    there, rosters = presence(CHURNING)[: CHURNING.nodes], listed(CHURNING)
    assert LISTED_FOR == registration.VALIDITY
    assert (rosters[:, 0] == there[:, 0]).all()
    for epoch in range(1, CHURNING.epochs):
        for relay in range(CHURNING.nodes):
            assert rosters[relay, epoch] == there[relay, max(0, epoch - 3) : epoch].any()
    assert (rosters[:, :-1] & ~rosters[:, 1:]).any()


def test_trees_are_kept_and_mended_by_the_roster():
    assert (MENDING, UNSEAT_AFTER) == (epochs.MENDING, roster_standing.UNSEAT_AFTER)
    for subscriber in range(CHURNING.subscribers):
        before = None
        for epoch, hops in enumerate(kept(CHURNING, 1, subscriber)):
            root = root_of(CHURNING, 1, subscriber)
            lately = listed(CHURNING)[:, max(0, epoch + 1 - UNSEAT_AFTER) : epoch + 1].any(axis=1)
            assert ((hops != NONE) == lately).all()
            assert (levels(hops, root) > 0).tolist() == lately.tolist()
            assert levels(hops, root).max() <= CHURNING.behaviour.depth
            assert (forest(CHURNING, 1, epoch)[:, subscriber] == hops).all()
            if before is not None:
                changed = ((before != NONE) != lately).sum()
                stayed = lately & (before != NONE)
                moved = before[stayed] != hops[stayed]
                # A leaf that takes a seat moves, and those under that seat: b of them at depth 2.
                assert moved.sum() <= changed * 9
                assert changed or hops is before
            before = hops
    first, *_, last = kept(SMALL, 1, 0)
    assert first is last, "nobody leaves, nothing changes"


def test_everybody_in_a_tree_is_told_of_each_seat_when_there():
    """What a day's tellings leave behind is the tree in force, at all relays that were there to be told."""
    there = presence(CHURNING)[: CHURNING.nodes]
    for day in range(CHURNING.days):
        known, moment = np.full(CHURNING.nodes, NONE), -1.0
        for telling in tellings(CHURNING, 0, day, 1):
            epoch = int(telling.moment // EPOCH_SECONDS)
            assert telling.moment > moment
            assert not (telling.told & ~there[:, epoch]).any()
            known[telling.told], moment = telling.hops[telling.told], telling.moment
            up = there[:, epoch] & (telling.hops != NONE)
            assert (known[up] == telling.hops[up]).all()
    (only,) = tellings(SMALL, 0, 0, 1)
    assert only.changed
    assert only.told.all()


def walked(hops, by_edge, relay):
    """The rules of the routers once more, one message at a time."""
    relays = hops.shape[0]
    sent, done, waiting = set(), set(), [(relay, None)]
    while waiting:
        at, previous = waiting.pop()
        gate = (at, previous) if by_edge else at
        if gate in done:
            continue
        done.add(gate)
        for column in hops.T:
            hop = int(column[at])
            if hop == NONE or (by_edge and previous is not None and column[previous] != at):
                continue
            if (at, hop) not in sent:
                sent.add((at, hop))
                if hop < relays:
                    waiting.append((hop, at))
    return sent


@pytest.mark.parametrize("profile", ["hardened", "paper"])
@pytest.mark.parametrize("depth", [1, 2, 3, 4])
def test_edges_are_those_that_routers_take(profile, depth):
    asked = GeneratorScenario(nodes=30, subscribers=12, profile=profile, depth=depth)
    hops, by_edge = forest(asked, 0, 0), asked.behaviour.edge_elements
    chance = random.Random(depth)
    relays = np.array([chance.randrange(30) for _ in range(50)])
    found = find_edges(hops, by_edge, np.arange(50), relays)
    for message, relay in enumerate(relays):
        mine = found.edge_message == message
        edges = set(zip(found.edge_relay[mine].tolist(), found.edge_hop[mine].tolist(), strict=True))
        assert edges == walked(hops, by_edge, int(relay))


@EACH
def test_times_run_forwards(asked):
    for epoch in range(asked.epochs):
        published = publish(asked, 0, epoch, np.array(numbers(asked, 0, epoch)))
        routes = route(asked, 0, epoch, published.drops)
        came, went = routes.arrivals, routes.transmissions
        assert (published.dropped > published.asked[:, None]).all()
        assert (published.settled >= published.dropped.max(axis=1)).all()
        first = {}
        for message, relay, time in zip(came.message, came.relay, came.time, strict=True):
            first[message, relay] = min(time, first.get((message, relay), np.inf))
        sent = {}
        for message, relay, hop, wished, time in zip(
            went.message, went.relay, went.hop, went.asked, went.time, strict=True
        ):
            assert (message, relay, hop) not in sent, "once to each next hop"
            sent[message, relay, hop] = time
            assert first[message, relay] <= wished <= time
        for message, relay, previous, time in zip(
            came.message, came.relay, came.previous, came.time, strict=True
        ):
            if previous >= 0:
                assert sent[message, previous, relay] < time
        kept = came.outcome == FORWARDED
        assert set(came.outcome[~kept].tolist()) <= ({DUPLICATE} if not asked.listed else {1, 2, 3})


def test_all_arrives_at_all_subscribers_where_everybody_stays():
    for asked in (SMALL, PAPER):
        message = np.array(numbers(asked, 1, 2))
        routes = route(asked, 1, 2, publish(asked, 1, 2, message).drops)
        ended = list(zip(routes.deliveries.message, routes.deliveries.subscriber, strict=True))
        assert sorted(ended) == sorted((one, k) for one in message for k in range(asked.subscribers))


def test_nobody_acts_while_away():
    there = presence(CHURNING)
    assert 0.5 < there.mean() < 0.8
    back = returns(CHURNING)
    assert (back[:, :-1][there] == np.nonzero(there)[1]).all()
    waited = 0
    for epoch in range(CHURNING.epochs):
        published = publish(CHURNING, 0, epoch, np.array(numbers(CHURNING, 0, epoch)))
        assert there[published.author, epoch].all()
        assert there[published.origins, epoch].all()
        routes = route(CHURNING, 0, epoch, published.drops)
        waited += routes.transmissions.waited.sum()
        when = (routes.arrivals.time // EPOCH_SECONDS).astype(int)
        inside = when < CHURNING.epochs
        # A message may be on its way over a link as the epoch ends.
        under_way = routes.arrivals.time % EPOCH_SECONDS < 1
        assert (
            there[routes.arrivals.relay, np.minimum(when, CHURNING.epochs - 1)] | ~inside | under_way
        ).all()
    assert waited > 0


def test_numbers_of_messages_are_dealt_out_once():
    for publications in (0, 1, 7, 60, 61):
        asked = GeneratorScenario(5, 1, topics=4, publications=publications, epochs=3)
        dealt = [n for epoch in range(3) for topic in range(4) for n in numbers(asked, topic, epoch)]
        assert sorted(dealt) == list(range(publications))


def test_draws_are_even_and_differ_by_purpose_and_seed():
    values = draws.uniform(1, "a", np.arange(100_000))
    assert abs(values.mean() - 0.5) < 0.005
    assert abs(np.histogram(values, 10, (0, 1))[0] - 10_000).max() < 500
    others = draws.uniform(1, "b", np.arange(100_000)), draws.uniform(2, "a", np.arange(100_000))
    for other in others:
        assert abs(np.corrcoef(values, other)[0, 1]) < 0.02
    pairs = draws.uniform(1, "a", np.arange(300)[:, None], np.arange(300))
    assert len(np.unique(pairs)) == 90_000
    assert (
        draws.hexes(1, "a", 16, np.arange(2))[0].as_py() == draws.hexes(1, "a", 16, np.array([0]))[0].as_py()
    )
    assert len(draws.hexes(1, "a", 32, np.arange(2))[1].as_py()) == 64


def test_trails_are_as_large_as_the_daemons():
    from hushcast_analytics.generator.message_routes import SLICE_BITS, SLICES

    assert (MAX_HOPS, MAX_BITS_SET / MAX_HOPS, ERROR_RATE) == (32, SLICES, 1e-4)
    assert 8 * TRAIL_SIZE == SLICES * SLICE_BITS


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"nodes": 0, "subscribers": 1}, "a relay"),
        ({"nodes": 5, "subscribers": 6, "clients": 0}, "6 subscribers"),
        ({"nodes": 5, "subscribers": 6, "profile": "paper"}, "6 subscribers"),
        ({"nodes": 5, "subscribers": 1, "profile": "paper", "clients": 1}, "no clients"),
        ({"nodes": 1, "subscribers": 1}, "2 origins"),
        ({"nodes": 5, "subscribers": 1, "run": "a/b"}, "a run is called"),
        ({"nodes": 5, "subscribers": 1, "down": -1}, "up for an epoch"),
    ],
)
def test_what_makes_no_network_is_refused(wrong, told):
    with pytest.raises(TracesError, match=told):
        GeneratorScenario(**wrong)


@pytest.mark.spark
@EACH
def test_rows_do_not_depend_on_partitions(spark, asked, monkeypatch):
    from hushcast_analytics.generator import generator_jobs as jobs

    for make, schema in ((observations, OBSERVATIONS), (truths, TRUTHS)):
        made = make(spark, asked)
        assert made.schema == schema
        rows = Counter(map(str, made.collect()))
        monkeypatch.setattr(jobs, "ROWS_A_TASK", 200)
        monkeypatch.setattr(jobs, "ROWS_A_PIECE", 200)
        again = make(spark, asked)
        assert again.rdd.getNumPartitions() > made.rdd.getNumPartitions()
        assert Counter(map(str, again.collect())) == rows
        monkeypatch.undo()


@pytest.mark.spark
def test_runs_lie_beside_each_other_and_are_not_made_twice(spark, tmp_path):
    out = str(tmp_path / "out")
    first = generate(spark, SMALL, out)
    second = generate(spark, GeneratorScenario(**{**vars(SMALL), "seed": 2, "run": "two"}), out)
    assert first.observations.select("message").distinct().count() == 61
    shared = first.observations.select("message").dropna().intersect(second.observations.select("message"))
    assert shared.count() == 0
    assert first.rejected.count() == 0
    with pytest.raises(TracesError, match="a run generated already"):
        generate(spark, SMALL, out)
