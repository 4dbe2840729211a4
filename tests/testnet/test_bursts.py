"""Bursts between two houses: a few of what `make soak` has two hundred of, and how they are judged."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from hushcast_testnet import testnet
from soak.bursts import VICTIMS, Burst, plan_bursts, watch_bursts

EPOCH = 60  # seconds
SEED = 10  # six bursts of every QoS, from both houses, in which each that there is is killed


def burst(*payloads: bytes) -> Burst:
    return Burst(0, 0, 1, payloads, None, 0.0, 0.0)


@pytest.mark.parametrize(
    ("came", "in_order", "lacking"),
    [
        ([b"1", b"2", b"3"], True, 0),
        ([b"1", b"3"], True, 1),
        ([b"1", b"2", b"1", b"2", b"3"], True, 0),
        ([b"2", b"1", b"3"], False, 0),
        ([], True, 3),
    ],
)
def test_a_burst_is_judged_by_what_came_first(came: Sequence[bytes], in_order: bool, lacking: int) -> None:
    one = burst(b"1", b"2", b"3")
    assert (one.is_in_order(came), one.lacks(came)) == (in_order, lacking)


def test_bursts_are_drawn_alike_from_a_seed_and_kill_all_that_may_be_killed() -> None:
    drawn = plan_bursts(200, 1)
    assert drawn == plan_bursts(200, 1)
    assert drawn != plan_bursts(200, 2)
    assert {one.victim for one in drawn} == {None, *VICTIMS}
    assert {one.qos for one in drawn} == {0, 1, 2}
    assert {min(len(one.payloads) for one in drawn), max(len(one.payloads) for one in drawn)} == {2, 50}
    few = plan_bursts(6, SEED)
    assert {one.victim for one in few} == {None, *VICTIMS}
    assert {one.qos for one in few} == {0, 1, 2}
    assert {one.house for one in few} == {0, 1}


@pytest.mark.processes
def test_order_and_what_is_retained_survive_kills(tmp_path: Path) -> None:
    directory = tmp_path / "net"
    testnet.up(directory, 3, 2, "tcp", EPOCH, with_gateways=True)
    try:
        figures = watch_bursts(directory, 6, SEED, print)
    finally:
        testnet.down(directory)
    assert figures["ok"], figures
    assert (figures["in_order"], figures["retained_equal"], figures["kills"]) == (6, 6, 4)
