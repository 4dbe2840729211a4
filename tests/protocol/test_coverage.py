"""Coverage: intervals against published figures, and who is named for lost probes."""

from __future__ import annotations

import random

import pytest
from core_examples import properties
from hypothesis import given
from hypothesis import strategies as st

from hushcast_protocol.attributes import parse_attribute
from hushcast_protocol.coverage import Probe, interval, suspects
from hushcast_protocol.errors import DecodeError
from hushcast_protocol.messages import PADDED_SIZES
from hushcast_protocol.predicates import parse_where
from hushcast_protocol.reports import (
    MAX_HEARD,
    MAX_REPORT,
    Heard,
    Report,
    decode_report,
    missed,
    write_report,
)
from hushcast_protocol.tree import plan


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
    assert interval(arrived, probes) == (pytest.approx(low, abs=1e-4), pytest.approx(high, abs=1e-4))


def test_an_interval_holds_the_truth_19_times_of_20():
    rng = random.Random(1)
    held = 0
    for _ in range(2000):
        low, high = interval(sum(rng.random() < 0.9 for _ in range(200)), 200)
        held += low <= 0.9 <= high
    assert 0.935 <= held / 2000 <= 0.965


def probed(droppers: set[bytes], rounds: int, seed: int, relays: int = 200) -> list[Probe]:
    """Probe every relay of a tree some times; droppers lose all."""
    rng = random.Random(seed)
    names = [number.to_bytes(32, "big") for number in range(1, relays + 1)]
    tree = plan(names, 2, seed.to_bytes(16, "big"))
    probes = []
    for _ in range(rounds):
        for origin in rng.sample(names, len(names)):
            way = (origin,) if tree.parents[origin] is None else (origin, tree.parents[origin])
            probes.append(Probe(way, not droppers.intersection(way), 0.0))
    return probes


@properties(50)
@given(st.integers(0, 2**32), st.integers(0, 20))
def test_all_that_can_be_told_are_named_and_nobody_else(seed, count):
    rng = random.Random(seed)
    droppers = {number.to_bytes(32, "big") for number in rng.sample(range(1, 201), count)}
    probes = probed(droppers, 2, seed)
    named = set(suspects(probes))
    assert named <= droppers
    hidden = {probe.way[0] for probe in probes if len(probe.way) > 1 and probe.way[1] in droppers}
    assert droppers - hidden <= named


def test_bad_luck_names_nobody():
    probes = [probe._replace(arrived=index % 20 != 0) for index, probe in enumerate(probed(set(), 4, 7))]
    assert len(suspects(probes)) <= 4  # two losses of four in a row of luck that is bad indeed


def test_a_relay_that_loses_a_little_is_no_suspect():
    way = (b"a" * 32,)
    assert suspects([Probe(way, number % 3 != 0, 0.0) for number in range(30)]) == []


def test_one_lost_probe_names_nobody():
    assert suspects([Probe((b"a" * 32,), False, 0.0)]) == []


def test_a_report_is_as_small_as_the_smallest_message():
    heard = [Heard(bytes([n]) * 32, n, {"lat": 2**31, "kind": "f" * 60}) for n in range(50)]
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
            Heard(b"1" * 32, 400, {"lat": 15}),  # missed
            Heard(b"2" * 32, 400, {"lat": 50}),  # not wanted
            Heard(b"3" * 32, 100, {"lat": 15}),  # may yet come
            Heard(b"4" * 32, 9000, {"lat": 15}),  # from before this subscription
            Heard(b"5" * 32, 400, {"lat": 15}),  # known
        )
    )
    assert missed(report, where, {b"5" * 32}.__contains__, settled=300, since=5000) == [b"1" * 32]
