"""The lab's networks: seats are the planner's, figures those of an oracle that shares no code with them."""

import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from pyspark.sql import SparkSession

from benchmarks.lab.asked import Asked, Dropping
from benchmarks.lab.drawing import Run
from benchmarks.lab.networks import Lab
from benchmarks.lab.seating import Seating
from hushcast_analytics.adversaries import Adversary
from hushcast_analytics.attacks.catalogue import ATTACKS
from hushcast_analytics.checkpoints import kept
from hushcast_analytics.examination import Case, Examination
from hushcast_analytics.trial_summary import summarised
from hushcast_protocol.overlay.leases import lease_mark
from hushcast_protocol.overlay.tree import plan
from overlay import exposed


@pytest.mark.parametrize(
    ("relays", "depth"), [(1, 1), (7, 2), (24, 2), (60, 3), (100, 4), (499, 3), (500, 2)]
)
def test_places_are_the_planners(relays: int, depth: int) -> None:
    seating = Seating(relays, depth)
    names = [bytes([n // 256, n % 256]) for n in range(relays)]
    tree = plan(names, depth, bytes(16))
    planned = Counter((tree.path_length(name), len(tree.children.get(name, ()))) for name in names)
    seated = Counter((len(path), seating.children[place]) for place, path in enumerate(seating.paths))
    assert seated == planned
    assert sum(above == -1 for above in seating.parents) == len(tree.children[None])


def test_full_places_fill_from_the_left() -> None:
    assert Seating(9, 2, "full").parents == [-1, -1, -1, 0, 0, 0, 1, 1, 1]
    assert Seating(8, 2, "full").children[:3] == [3, 2, 0]


def test_a_host_stays_above_all_others() -> None:
    below, seating = Seating(12, 2), Seating(13, 2, hosted=True)
    assert seating.parents == [-1, *(above + 1 for above in below.parents)]
    asked = Asked(
        runs=1, topics=6, relays=40, depth=2, listed=False, epochs=3, renewal="fresh", shards=2, hosted=True
    )
    hosts: dict[int, set[int]] = {}
    for chunk in Run(asked, 0).seated():
        (topic,) = set(chunk["topic"].tolist())
        hosts.setdefault(topic, set()).update(chunk["node"][chunk["above"] == -1].tolist())
        assert len(set(chunk["node"].tolist())) == len(chunk["node"]) == 20
    assert all(len(own) == 1 for own in hosts.values()), "in its shard or not"
    assert len(set.union(*hosts.values())) > 1
    with pytest.raises(ValueError, match="hosts keep boxes"):
        Asked(runs=1, topics=1, relays=9, depth=2, listed=True, hosted=True)


@pytest.mark.parametrize("hosted", [False, True], ids=["mailboxes", "hosts"])
def test_nothing_that_colluders_see_depends_on_who_subscribes(hosted: bool) -> None:
    """So an attack by trees and messages names the right one as often as chance does, whatever it goes by."""
    asked = Asked(
        runs=1, topics=4, relays=40, depth=2, listed=False, messages=9, origins=2, scan=True, hosted=hosted
    )
    seen = []
    for owner in (1, 17):
        run = Run(asked, 0, np.arange(10, dtype=np.int32))
        run.owners = [owner] * 4
        chunks = [*run.seated(), *run.passing(scan=False), *run.passing(scan=True)]
        seen.append(
            [{name: column.tolist() for name, column in chunk.items() if name != "owner"} for chunk in chunks]
        )
    assert seen[0] == seen[1]
    assert sum(len(chunk["node"]) for chunk in seen[0]) > 100


@pytest.mark.spark
def test_rows_agree_with_each_other(spark: SparkSession) -> None:
    lab = Lab(runs=2, topics=2, relays=13, depth=2, listed=False, messages=3, clients=2, seed=4)
    rows = lab.observations(spark).collect()
    told = lab.truths(spark).collect()
    # By the daemons' own hash: who knows a topic finds its leases.
    marked = {
        (r["run"], lease_mark(bytes.fromhex(r["tokens"][0]), bytes.fromhex(node)).hex()): r["tokens"][0]
        for r in told
        if r["kind"] == "installed"
        for node in {r["node"] for r in rows}
    }
    seats = {
        (r["run"], marked[r["run"], r["mark"]], r["node"]): r["next"]
        for r in rows
        if r["kind"] == "installed"
    }
    assert len(seats) == 2 * 2 * 13
    leases = {(r["run"], r["lease"], r["node"]): r for r in rows if r["kind"] == "installed"}
    passed = Counter((r["run"], r["lease"], r["node"]) for r in rows if r["kind"] == "passed")
    assert {key: row["children"] for key, row in leases.items() if row["children"]} == passed
    for row in rows:
        if row["kind"] == "passed":
            assert leases[row["run"], row["lease"], row["next"]]["next"] == row["node"]
        if row["kind"] == "sent":
            assert row["next"] == seats[row["run"], row["tokens"][0], row["node"]]
        if row["kind"] == "received" and row["previous"] is not None:
            assert seats[row["run"], row["tokens"][0], row["previous"]] == row["node"]
    reached = {
        (r["run"], r["message"]) for r in rows if r["kind"] == "sent" and r["next"].startswith("mailbox")
    }
    assert reached == {(r["run"], r["message"]) for r in rows if r["kind"] == "drop"}
    assert len(reached) == sum(row["kind"] == "published" for row in told) == 12
    names = sorted({row["node"] for row in rows})[:5]
    pairs = [(run, name) for run in ("4.0", "4.1") for name in names]
    watched = lab.observations(spark, spark.createDataFrame(pairs, "run string, node string"))
    theirs = [str(row) for row in watched.collect() if row["node"] in names]
    assert sorted(theirs) == sorted(str(row) for row in rows if row["node"] in names)


@pytest.mark.spark
def test_ways_that_meet_go_on_as_one(spark: SparkSession) -> None:
    lab = Lab(runs=1, topics=3, relays=13, depth=2, listed=False, messages=8, origins=3, trees=2, seed=4)
    rows = lab.observations(spark).collect()
    seats = {(r["lease"], r["node"]): r["next"] for r in rows if r["kind"] == "installed"}
    published = [row for row in lab.truths(spark).collect() if row["kind"] == "published"]
    sent = Counter((r["message"], r["node"], r["next"]) for r in rows if r["kind"] == "sent")
    dropped = Counter((r["message"], r["node"]) for r in rows if r["kind"] == "drop")
    assert dropped == Counter((row["message"], origin) for row in published for origin in row["origins"])
    expected: Counter[tuple[str, str, str]] = Counter()
    for row in published:
        assert len(set(row["origins"])) == 3
        for tree in range(2):
            edges = set()
            for node in row["origins"]:
                while not node.startswith("mailbox"):
                    above = seats[f"{row['topic']}-0-{tree}", node]
                    edges.add((row["message"], node, above))
                    node = above
            expected.update(edges)
    assert sent == expected


@pytest.mark.parametrize("dropping", ["silent", "refusing"])
def test_what_droppers_see(dropping: Dropping) -> None:
    asked = Asked(
        runs=1, topics=3, relays=40, depth=3, listed=False, messages=60, origins=2, dropping=dropping
    )
    droppers = np.arange(10, dtype=np.int32)
    ways: dict[tuple[int, ...], list[tuple[int, int]]] = {}
    for chunk in Run(asked, 0, droppers).passing(scan=False):
        assert set(chunk["node"]) <= set(droppers)
        assert not set(chunk["before"]) & set(droppers)
        assert not chunk["forwarded"].any()
        for topic, number, origin, hop, node in zip(
            *(chunk[name].tolist() for name in ("topic", "number", "origin", "hop", "node")), strict=True
        ):
            ways.setdefault((topic, number, origin), []).append((hop, node))
    if dropping == "silent":
        assert max(map(len, ways.values())) == 1
    else:
        # Publishers try three origins; relays go around every time, until their hops are honest.
        assert max(sum(hop == 0 for hop, _ in way) for way in ways.values()) == 3
        assert any(len({hop for hop, _ in way}) > 1 for way in ways.values())
    unseen = 3 * 60 * 2 - len(ways)
    # 30 of 40 origins, 30 of 40 relays above them at each level but the top's.
    assert 0.3 < unseen / (3 * 60 * 2) < 0.65


@pytest.mark.parametrize("dropping", ["none", "refusing"])
def test_a_topic_stays_in_its_shard(dropping: Dropping) -> None:
    asked = Asked(
        runs=1, topics=6, relays=40, depth=2, listed=False, messages=9, origins=2, epochs=3,
        renewal="fresh", shards=4, dropping=dropping, scan=True,
    )  # fmt: skip
    run = Run(asked, 0)
    seated: dict[tuple[int, int], set[int]] = {}
    for chunk in run.seated():
        for topic, epoch, node in zip(
            *(chunk[name].tolist() for name in ("topic", "epoch", "node")), strict=True
        ):
            seated.setdefault((topic, epoch), set()).add(node)
    assert {len(shard) for shard in seated.values()} == {10}
    for epoch in range(3):
        shards = {frozenset(seated[topic, epoch]) for topic in range(6)}
        assert 1 < len(shards) <= 4
        assert sum(map(len, shards)) == len(frozenset().union(*shards))
    assert len({frozenset(seated[0, epoch]) for epoch in range(3)}) == 3
    for scan in (False, True):
        for chunk in run.publications(scan):
            for topic, epoch, origins in zip(
                *(chunk[name].tolist() for name in ("topic", "epoch", "origins")), strict=True
            ):
                assert set(origins) <= seated[topic, epoch]
        for chunk in run.passing(scan):
            for topic, epoch, node in zip(
                *(chunk[name].tolist() for name in ("topic", "epoch", "node")), strict=True
            ):
                assert node in seated[topic, epoch]


Figures = dict[tuple[str, float], dict[str, Any]]


def figures(spark: SparkSession, lab: Lab, shares: Sequence[float], names: Sequence[str]) -> Figures:
    case = Case(
        lab.observations(spark),
        kept(lab.truths(spark)),
        lab.rosters(spark),
        lab.spanned,
        lab.depth,
        lab.shards,
    )
    examination = Examination(case, Adversary(tuple(shares)))
    rows = summarised(examination.measured([ATTACKS[name] for name in names]))
    return {(row["attack"], row["colluding"]): row for row in rows}


@pytest.mark.spark
def test_shape_attacks_agree_with_the_oracle(spark: SparkSession) -> None:
    """At 120 relays; `python -m benchmarks.lab.attacks oracle` at 500."""
    lab = Lab(runs=30, topics=10, relays=120, depth=3, listed=True, shape="full")
    found = figures(spark, lab, (0.1, 0.2), ("parent-of-interior", "install-depth"))
    rng = random.Random(1)
    for (attack, share), row in found.items():
        expected = exposed(120, 3, share, 4000, attack == "install-depth", rng)
        # The oracle errs, too, by a third of an interval; and of four intervals one may miss by a little.
        slack = 0.5 * (row["accuracy_high"] - row["accuracy_low"])
        assert row["accuracy_low"] - slack < expected < row["accuracy_high"] + slack, (attack, share)
    assert len(found) == 4


@pytest.mark.spark
def test_a_mailbox_leaves_chance(spark: SparkSession) -> None:
    lab = Lab(runs=10, topics=20, relays=60, depth=2, listed=False, messages=10)
    names = (
        "parent-of-interior",
        "install-depth",
        "traffic-share",
        "trail-popcount",
        "predecessor",
        "trained",
    )
    for row in figures(spark, lab, (0.1, 0.2), names).values():
        assert row["belief"] < 1.5 / 48, row["attack"]
        assert row["accuracy_low"] < 1.5 / 48, row["attack"]
