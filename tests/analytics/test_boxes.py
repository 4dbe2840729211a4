"""Boxes of the generator: hosts see what daemons' hosts see, and name as many owners as a model says."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from hushcast_analytics.attacks import box_evidence, host_attacks
from hushcast_analytics.errors import TracesError
from hushcast_analytics.generator import box_hosts
from hushcast_analytics.generator.box_hosts import HostSight, relay_names, sights
from hushcast_analytics.generator.presence import presence
from hushcast_analytics.generator.scenario import EPOCH_SECONDS, GeneratorScenario
from hushcast_analytics.generator.trace_rows import TraceRows
from hushcast_overlay.relay import registration
from hushcast_overlay.routes import arrivals, host_turns
from hushcast_protocol.base.epochs import EPOCHS_A_DAY
from hushcast_protocol.base.versions.manner import NEWEST

OWNERS = GeneratorScenario(
    nodes=60, subscribers=1, topics=40, epochs=144, clients=0, up=20, down=6, hosts=2, watchers=12
)


def test_what_owners_do_is_what_daemons_do() -> None:
    assert (
        NEWEST.away_epochs,
        host_turns.AWAY_AT_FIRST,
    ) == (box_hosts.AWAY_EPOCHS, box_hosts.AWAY_AT_FIRST)
    assert box_hosts.ATTACH_WITHIN == host_attacks.ATTACH_WITHIN == NEWEST.attach_within
    assert NEWEST.longest_pause == box_hosts.TRIED_AGAIN
    assert (
        NEWEST.quiet_for,
        NEWEST.comes_within,
    ) == (box_hosts.QUIET_FOR, box_hosts.COMES_WITHIN)
    assert box_hosts.HOSTS_DAYS == arrivals.HOSTS_DAYS == box_evidence.KEEPS - 1
    assert box_evidence.LISTED_FOR == registration.VALIDITY


def walked(
    asked: GeneratorScenario, topic: int, first: int, second: int
) -> tuple[dict[int, set[int]], set[int]]:
    """The epochs in which an owner is attached to each of two hosts, by rules in words of their own.

    And those in which it may come to the second once more: of the day after each for which it held.
    """
    up = presence(asked)
    owner = int(box_hosts.subscribers(asked, topic)[0])
    found: dict[int, set[int]] = {first: set(), second: set()}
    once_more: set[int] = set()
    lacking, is_known, is_linked, is_to_be_left = None, False, False, False
    for epoch in range(asked.epochs):
        if not up[owner, epoch]:
            is_linked = False
            continue
        if up[first, epoch]:
            found[first].add(epoch)
            lacking, is_known = None, True
        else:
            lacking = epoch if lacking is None else lacking
        # The second is dialled when the first has been away for two epochs, and left when it is back.
        is_next = lacking is not None and epoch - lacking >= (2 if is_known else 0)
        if not up[second, epoch]:
            is_linked = False
            continue
        if is_next or is_linked or is_to_be_left:
            found[second].add(epoch)
            is_linked, is_to_be_left = is_next, is_next
        if is_next:
            is_known = True
            # What is held for tomorrow, too, in the last hours before it, is for a day longer.
            day = epoch // EPOCHS_A_DAY
            ahead = box_hosts.begins(asked, topic, day + 1, 0) < (epoch + 1) * EPOCH_SECONDS
            after = day + 1 + (ahead and day + 1 < asked.days)
            once_more = {one for one in once_more if one <= epoch}
            once_more |= set(range((day + 1) * EPOCHS_A_DAY, (after + 1) * EPOCHS_A_DAY))
    return found, once_more


def attached(seen: list[HostSight], host: int, there: np.ndarray) -> set[int]:
    """The epochs in which a host sees somebody attached: until the end of the link, or its own."""
    found: set[int] = set()
    ends = sorted((one.moment, one.kind) for one in seen if one.host == host and one.kind != "installed")
    for place, (moment, kind) in enumerate(ends):
        if kind == "attached":
            after = ends[place + 1][0] if ends[place + 1 :] else len(there) * EPOCH_SECONDS - 1
            for epoch in range(int(moment // EPOCH_SECONDS), int(after // EPOCH_SECONDS) + 1):
                if not there[epoch]:
                    break
                found.add(epoch)
    return found


def agree(topic: int, first: int, second: int, views: dict[int, set[int]]) -> bool:
    """Whether two hosts see what they are to see, and the second at most one visit more a day."""
    expected, once_more = walked(OWNERS, topic, first, second)
    more = views[second] - expected[second]
    days = Counter(epoch // EPOCHS_A_DAY for epoch in more)
    whole = views[first] == expected[first] and expected[second] <= views[second]
    return whole and more <= once_more and max(days.values(), default=0) <= 1


def test_owners_are_attached_as_their_hosts_let_them() -> None:
    used = Counter[int]()
    for topic in range(OWNERS.topics):
        seen = list(sights(OWNERS, topic, 0))
        hosts = list(dict.fromkeys(one.host for one in sorted(seen, key=lambda one: one.moment)))
        assert 1 <= len(hosts) <= 2
        used[len(hosts)] += 1
        if len(hosts) < 2:
            continue
        # Whoever of both is first: one order agrees, and only one.
        there = presence(OWNERS)
        views = {host: attached(seen, host, there[host]) for host in hosts}
        agreeing = [pair for pair in (hosts, hosts[::-1]) if agree(topic, *pair, views)]
        assert len(agreeing) == 1, topic
    assert used[2] > 10, "hosts that are away for long are common here"


def test_nobody_leaves_the_list() -> None:
    kept_away = replace(OWNERS, kept_away=True)
    for topic in range(kept_away.topics):
        seen = {one.host for one in sights(kept_away, topic, 0)}
        assert len(seen) <= 2
        assert all(host < kept_away.watchers for host in seen)


def test_boxes_of_one_day_have_a_host_each() -> None:
    fresh = replace(OWNERS, hosts=1, fresh_boxes=True)
    seen = [one for topic in range(6) for one in sights(fresh, topic, 0)]
    assert {one.box for one in seen} == set(range(fresh.days))
    assert all(one.day == one.box for one in seen if one.kind == "installed")
    assert len({one.host for one in seen}) > fresh.days


@pytest.mark.parametrize(
    "more", [{"profile": "paper"}, {"publications": 1}, {"hosts": 3}], ids=["paper", "messages", "three"]
)
def test_what_has_no_boxes_is_refused(more: dict[str, object]) -> None:
    with pytest.raises(TracesError):
        replace(OWNERS, **more)


@pytest.mark.slow
def test_hosts_of_daemons_write_the_same_lines(tmp_path: Path) -> None:
    from hushcast_testnet.simulations.overlay_simulation import Scenario, simulate

    simulate(Scenario(12, 2, 4, origins=2, seed=3, minutes=26 * 60, traces=tmp_path))
    lines = [
        json.loads(line)
        for file in sorted(tmp_path.glob("*.jsonl"))
        for line in file.read_text().splitlines()
    ]
    boxes = {line["mailbox"] for line in lines if line["kind"] == "subscribed"}
    theirs = [line for line in lines if line.get("next") in boxes or line["kind"] == "subscribed"]
    asked = GeneratorScenario(nodes=12, subscribers=2, topics=1, epochs=26, clients=2, hosts=2)
    rows = TraceRows(asked)
    made = [*rows.seen_of_boxes(0, 0), *rows.seen_of_boxes(0, 1), *rows.truth_of_boxes(0, 0)]
    ours = [
        row for batch in made for row in batch.to_pylist() if row["kind"] != "installed" or row.get("next")
    ]

    def shapes(rows: list[dict[str, object]]) -> dict[object, set[tuple[str, ...]]]:
        found: dict[object, set[tuple[str, ...]]] = {}
        for row in rows:
            fields = tuple(sorted(name for name, value in row.items() if value is not None))
            found.setdefault(row["kind"], set()).add(
                tuple(set(fields) - {"schema", "run"}) and fields_of(fields)
            )
        return found

    def fields_of(fields: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(name for name in fields if name not in ("schema", "run"))

    by_daemons = shapes([line for line in theirs if line["kind"] != "sent"])
    assert by_daemons.pop("detached") == {("epoch", "kind", "next", "node", "time")}  # they end in the end
    assert shapes(ours) == by_daemons
    held = [
        (row["elements"], row["children"], row["day"] % 2) for row in theirs if row["kind"] == "installed"
    ]
    assert sorted(held) == sorted(
        (row["elements"], row["children"], row["day"] % 2) for row in ours if row["kind"] == "installed"
    )
    assert {line["kind"] for line in theirs} >= {"sent", "attached"}
    assert pa.Table.from_batches(rows.truth_of_boxes(0, 0)).num_rows == 1 + asked.days


def modelled(asked: GeneratorScenario, hosts: int) -> float:
    """The share of relays named by hosts of which a share of `watchers` collude: a model of its own.

    The owner is one of the honest. A first host sees when it is up, and names it where its hours leave it
    alone, by its relays' exact hours. A second host sees it while the first is away for two epochs and more,
    and names it where no other relay is up whenever it is seen.
    """
    rng = np.random.default_rng(5)
    honest, share = asked.nodes - asked.watchers, asked.watchers / asked.nodes
    by_first, by_second = [], []
    for _ in range(20):
        leave, back = rng.random((2, honest, asked.epochs))
        up = np.empty((honest, asked.epochs), bool)
        up[:, 0] = rng.random(honest) < asked.up / (asked.up + asked.down)
        for epoch in range(1, asked.epochs):
            up[:, epoch] = np.where(
                up[:, epoch - 1], leave[:, epoch] >= 1 / asked.up, back[:, epoch] < 1 / asked.down
            )
        by_first.append(len(np.unique(up, axis=0)) / honest)
        for owner, first in zip(range(honest), rng.permutation(honest), strict=True):
            away = ~up[first]
            seen = up[owner] & away & np.roll(away, 1) & np.roll(away, 2)
            by_second.append(owner != first and up[:, seen].all(axis=1).sum() == 1)
    second = (1 - share) * share * float(np.mean(by_second)) if hosts == 2 else 0.0
    return share * float(np.mean(by_first)) + second


@pytest.mark.spark
@pytest.mark.parametrize("hosts", [1, 2])
def test_as_many_owners_are_named_as_a_model_says(spark: SparkSession, hosts: int) -> None:
    """`python -m benchmarks.lab.boxes one two` at 500 relays, for 14 and 60 days."""
    from benchmarks.lab.boxes import counted, examined

    asked = replace(OWNERS, hosts=hosts, topics=150, epochs=10 * EPOCHS_A_DAY)
    trials = examined(spark, replace(asked, watchers=0), asked.watchers / asked.nodes).measured(
        [box_hosts_attack("box-presence"), box_hosts_attack("detach")]
    )
    for row in counted(trials):
        expected = modelled(asked, hosts)
        slack = 2.6 * (expected * (1 - expected) / row["trials"]) ** 0.5
        assert abs(row["sure"] / row["trials"] - expected) < slack, row


def box_hosts_attack(name: str):
    from hushcast_analytics.attacks.catalogue import ATTACKS

    return ATTACKS[name]


def test_names_of_relays_are_those_of_rows() -> None:
    rows = TraceRows(OWNERS)
    (roster,) = rows.seen_of_rosters(0)
    assert set(roster["node"].to_pylist()) <= {name.hex() for name in relay_names(OWNERS)}


@pytest.mark.parametrize(("hosts", "fails"), [(1, 0.0), (2, 0.0), (2, 0.03), (2, 1.0)])
def test_nobody_who_keeps_hosts_away_leads_an_owner_outside_its_list(hosts: int, fails: float) -> None:
    """`python -m benchmarks.lab.host_lists` counts boxes in networks whose relays come and go for good."""
    from benchmarks.lab.host_lists import ListScenario, days_at_colluders

    asked = ListScenario(600, relays=60, share=0.2, life=1e9, hosts=hosts, fails=fails)
    found = [any(days) for days in days_at_colluders(asked, 5)]
    # Who reaches the first now and then uses it alone; else either of both is bad.
    expected = 1 - (48 * 47) / (60 * 59) if fails == 1 else 0.2
    assert abs(np.mean(found) - expected) < 3 * (expected * (1 - expected) / len(found)) ** 0.5
