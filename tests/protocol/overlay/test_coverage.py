"""Coverage: intervals against published figures, and who is named for lost probes."""

from __future__ import annotations

import random

import pytest
from core_examples import properties
from hypothesis import given
from hypothesis import strategies as st

from hushcast_protocol.base.errors import DecodeError
from hushcast_protocol.base.intervals import wilson
from hushcast_protocol.content.attributes import parse_attribute
from hushcast_protocol.content.payload_sizes import PADDED_SIZES
from hushcast_protocol.content.predicates import parse_where
from hushcast_protocol.content.reports import (
    MAX_HEARD,
    MAX_REPORT,
    Report,
    ReportedMessage,
    decode_report,
    missed,
    write_report,
)
from hushcast_protocol.overlay.coverage import ProbeCopy, ProbePath, judge, judged, share, ways, weight
from hushcast_protocol.overlay.tree import Tree, plan


@pytest.mark.parametrize(
    ("arrived", "probes", "low", "high"),
    [  # Wilson's score interval: Brown, Cai, DasGupta 2001, eq. 4
        (0, 0, 0.0, 1.0),
        (0, 10, 0.0, 0.2775),
        (10, 10, 0.7225, 1.0),
        (5, 10, 0.2366, 0.7634),
        (90, 100, 0.8256, 0.9448),
    ],
)
def test_known_intervals(arrived, probes, low, high):
    assert wilson(arrived / probes if probes else 0.0, probes) == (
        pytest.approx(low, abs=1e-4),
        pytest.approx(high, abs=1e-4),
    )


def test_an_interval_holds_the_truth_19_times_of_20():
    rng = random.Random(1)
    held = 0
    for _ in range(2000):
        low, high = wilson(sum(rng.random() < 0.9 for _ in range(200)) / 200, 200)
        held += low <= 0.9 <= high
    assert 0.935 <= held / 2000 <= 0.965


def probed(droppers: set[bytes], rounds: int, seed: int, relays: int = 200) -> list[ProbeCopy]:
    """Probe every relay of a tree some times; droppers lose all."""
    rng = random.Random(seed)
    names = [number.to_bytes(32, "big") for number in range(1, relays + 1)]
    tree = plan(names, 2, seed.to_bytes(16, "big"))
    probes = []
    for _ in range(rounds):
        for origin in rng.sample(names, len(names)):
            way = (origin,) if tree.parents[origin] is None else (origin, tree.parents[origin])
            probes.append(ProbeCopy(way, not droppers.intersection(way), 0.0))
    return probes


@pytest.mark.slow
@properties(50)
@given(st.integers(0, 2**32), st.integers(0, 20))
def test_all_that_can_be_told_are_named_and_nobody_else(seed, count):
    rng = random.Random(seed)
    droppers = {number.to_bytes(32, "big") for number in rng.sample(range(1, 201), count)}
    probes = probed(droppers, 2, seed)
    named = set(judge(probes).suspects)
    assert named <= droppers
    hidden = {probe.way[0] for probe in probes if len(probe.way) > 1 and probe.way[1] in droppers}
    assert droppers - hidden <= named


def test_bad_luck_names_nobody():
    probes = [probe._replace(arrived=index % 20 != 0) for index, probe in enumerate(probed(set(), 4, 7))]
    assert len(judge(probes).suspects) <= 4  # two losses of four in a row of luck that is bad indeed


def test_a_relay_that_loses_a_little_is_no_suspect():
    """Less than what messages with two origins hardly notice; more is named, though most of it passes."""
    way = (b"a" * 32,)
    assert not judge([ProbeCopy(way, number % 20 != 0, 0.0) for number in range(300)]).suspects
    assert judge([ProbeCopy(way, number % 3 != 0, 0.0) for number in range(30)]).suspects == [way[0]]


def test_one_lost_probe_names_nobody():
    assert not judge([ProbeCopy((b"a" * 32,), False, 0.0)]).suspects


NAMES = [number.to_bytes(32, "big") for number in range(1, 201)]


def sent_in_pairs(bad: set[bytes], pairs: int, seed: int, select: bool) -> tuple[list[ProbeCopy], float]:
    """Probe with two origins each; return the outcomes, and the share of probes that came at all.

    Those that are bad lose everything, or where they `select` only what they hold both copies of.
    """
    rng = random.Random(seed)
    all_ways = ways([plan(NAMES, 2, seed.to_bytes(16, "big"))], NAMES)
    outcomes, came = [], 0
    for _ in range(pairs):
        origins = rng.sample(NAMES, 2)
        held = [not bad.isdisjoint(all_ways[origin].relays) for origin in origins]
        lost = [all(held)] * 2 if select else held
        came_by = {
            all_ways[origin].relays[-1] for origin, gone in zip(origins, lost, strict=True) if not gone
        }
        came += bool(came_by)
        copies = {origin: all_ways[origin] for origin in origins}
        for origin, arrived in judged(copies, origins, came_by).items():
            outcomes.append(ProbeCopy(copies[origin].relays, arrived, 0.0, weight(origin, all_ways, 2)))
    return outcomes, came / pairs


@pytest.mark.slow
@pytest.mark.parametrize("select", [False, True])
@pytest.mark.parametrize("part", [0.1, 0.2])
def test_relays_that_lose_only_what_they_hold_twice_are_found_as_well(part, select):
    """They lose a fifth to a third of what passes them: those above others, which do the harm, are named."""
    at_the_top, named_there, honest = 0, 0, 0
    for seed in range(5):
        bad = set(random.Random(seed).sample(NAMES, round(part * len(NAMES))))
        outcomes, _ = sent_in_pairs(bad, 1000, seed, select)
        named = set(judge(outcomes).suspects)
        tops = bad & {probe.way[-1] for probe in outcomes}
        at_the_top, named_there = at_the_top + len(tops), named_there + len(tops & named)
        honest += len(named - bad)
    assert named_there >= 0.9 * at_the_top > 0
    assert honest <= 0.01 * 5 * len(NAMES)


@pytest.mark.slow
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_the_share_is_that_of_all_origins_whatever_the_tree(depth):
    """Under a top with many relays copies join more often and tell less: the weights make up for it."""
    rng = random.Random(depth)
    names = NAMES[:40]
    parents = dict(plan(names, depth, bytes(16)).parents)
    if depth > 1:  # one top gets half of all leaves of the others
        big = next(relay for relay, above in parents.items() if above is None)
        leaves = [relay for relay in parents if relay not in parents.values() and parents[relay] != big]
        parents |= dict.fromkeys(leaves[::2], big)
    all_ways = ways([Tree(parents)], names)
    bad = set(names[::9])
    true = sum(bad.isdisjoint(way.relays) for way in all_ways.values()) / len(names)
    outcomes = []
    for _ in range(20_000):
        copies = {origin: all_ways[origin] for origin in rng.sample(names, 2)}
        came_by = {way.relays[-1] for way in copies.values() if bad.isdisjoint(way.relays)}
        for origin, arrived in judged(copies, list(copies), came_by).items():
            outcomes.append(ProbeCopy(copies[origin].relays, arrived, 0.0, weight(origin, all_ways, 2)))
    assert share(outcomes)[0] == pytest.approx(true, abs=0.012)


A, B, C, D = (letter * 32 for letter in (b"a", b"b", b"c", b"d"))
ON_A, ON_B, UNDER_A, OTHER_UNDER_A = (
    ProbePath((A,), frozenset([A])),
    ProbePath((B,), frozenset([B])),
    ProbePath((C, A), frozenset([A])),
    ProbePath((D, A), frozenset([A])),
)


@pytest.mark.parametrize(
    ("copies", "taken", "came_by", "known"),
    [
        # Ways with nothing in common: each by its top.
        ({A: ON_A, B: ON_B}, [A, B], {A, B}, {A: True, B: True}),
        ({A: ON_A, B: ON_B}, [A, B], {B}, {A: False, B: True}),
        ({C: UNDER_A, B: ON_B}, [C, B], set(), {C: False, B: False}),
        # Ways that join: one copy arrives, and it could be either.
        ({C: UNDER_A, D: OTHER_UNDER_A}, [C, D], {A}, {}),
        ({C: UNDER_A, D: OTHER_UNDER_A}, [C, D], set(), {}),
        # One way is part of the other: what arrives passed it, whoever brought it there.
        ({A: ON_A, C: UNDER_A}, [A, C], {A}, {A: True}),
        ({A: ON_A, C: UNDER_A}, [A, C], set(), {A: False}),
        # An origin that gave no receipt proves nothing, and may have brought the copy that came.
        ({C: UNDER_A, D: OTHER_UNDER_A}, [D], {A}, {}),
        ({A: ON_A, B: ON_B}, [B], {A}, {B: False}),
        # A copy went around a lost relay, and came by a top of neither way.
        ({A: ON_A, B: ON_B}, [A, B], {B, C}, {A: True, B: True}),
        ({A: ON_A, B: ON_B}, [A, B], {C}, {A: False, B: False}),
        ({A: ON_A, B: ON_B}, [A, B], {C, D}, {A: True, B: True}),
        # A single origin, as before.
        ({C: UNDER_A}, [C], {A}, {C: True}),
        ({C: UNDER_A}, [C], {B}, {C: True}),
        ({C: UNDER_A}, [C], set(), {C: False}),
    ],
)
def test_only_what_is_certain_is_judged(copies, taken, came_by, known):
    assert judged(copies, taken, came_by) == known


def test_with_several_trees_a_copy_may_come_by_any():
    trees = [Tree({A: None, B: None, C: A, D: B}), Tree({A: C, B: D, C: None, D: None})]
    found = ways(trees, [A, B, C, D, b"e" * 32])
    assert found[C] == ProbePath((C,), frozenset([A, C]))
    assert set(found) == {A, B, C, D}  # the last has no seat yet
    assert judged({C: found[C], D: found[D]}, [C, D], {C}) == {C: True, D: False}
    assert judged({A: found[A], C: found[C]}, [A, C], {C}) == {}


def test_a_listed_root_hears_one_copy_whoever_brings_it():
    found = ways([Tree({A: None, B: None})], [A, B], top=C)
    assert judged({A: found[A], B: found[B]}, [A, B], {C}) == {}
    assert judged({A: found[A]}, [A], {C}) == {A: True}


def test_a_report_is_as_small_as_the_smallest_message():
    heard = [ReportedMessage(bytes([n]) * 32, {"lat": 2**31, "kind": "f" * 60}) for n in range(50)]
    packed = write_report(heard)
    assert len(packed) <= MAX_REPORT < PADDED_SIZES[0]
    read = decode_report(packed)
    assert read.heard == tuple(heard[: len(read.heard)])
    assert 1 <= len(read.heard) <= MAX_HEARD


def test_an_empty_report_is_a_report():
    assert decode_report(write_report([])) == Report(())


@pytest.mark.parametrize("data", [b"", b"\x00" * 10, b"\xff" * 600, b"\x93" * 5])
def test_what_is_no_report_is_refused(data):
    with pytest.raises(DecodeError):
        decode_report(data)


def test_only_what_should_have_come_is_missed():
    where = parse_where("lat in [10, 20]", [parse_attribute("lat:0..100:1")])
    report = Report(
        (
            ReportedMessage(b"1" * 32, {"lat": 15}),  # missed
            ReportedMessage(b"2" * 32, {"lat": 50}),  # not wanted
            ReportedMessage(b"5" * 32, {"lat": 15}),  # known
        )
    )
    assert missed(report, where, {b"5" * 32}.__contains__) == [b"1" * 32]


def test_a_report_is_cut_to_the_room_that_there_is():
    heard = [ReportedMessage(bytes([n]) * 32, {}) for n in range(20)]
    for room in (11, 40, 100, 500):
        packed = write_report(heard, room)
        assert len(packed) <= room
        assert len(decode_report(packed).heard) == (room - 11) // 42
