"""The plan of a chaos run: the same from the same seed, and never more than the network is to bear."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushcast_testnet.chaos.fault_plan import BROKEN_SHARE, DELAY, KINDS, LOSS, REST, SKEW_SHARE, Fault, plan

SECONDS = st.floats(20, 300)
EVERY = st.floats(1, 30)
LONGEST = st.floats(0.5, 40)
TARGETS = st.integers(1, 25).map(lambda count: [f"daemon-{number}" for number in range(count)])
SOME_KINDS = st.lists(st.sampled_from(KINDS), min_size=1, unique=True)


@pytest.mark.slow
@given(st.integers(), SECONDS, TARGETS, SOME_KINDS, EVERY, LONGEST)
def test_a_plan_replays_and_keeps_to_its_bounds(seed, seconds, targets, kinds, every, longest) -> None:
    faults = plan(seed, seconds, targets, kinds, every, longest, epoch=60)
    assert faults == plan(seed, seconds, targets, kinds, every, longest, epoch=60)
    assert [fault.begin for fault in faults] == sorted(fault.begin for fault in faults)
    for fault in faults:
        assert fault.target in targets
        assert fault.kind in kinds
        assert 0 <= fault.begin <= fault.end <= seconds
        assert fault.end - fault.begin <= longest + 1e-6
        assert _amount_fits(fault)


def _amount_fits(fault: Fault) -> bool:
    match fault.kind:
        case "delay":
            return DELAY[0] <= fault.amount <= DELAY[1]
        case "lose":
            return LOSS[0] <= fault.amount <= LOSS[1]
        case "skew":
            return abs(fault.amount) <= SKEW_SHARE * 60
        case _:
            return fault.amount == 0


@given(st.integers(), SECONDS, TARGETS, EVERY, LONGEST)
def test_no_daemon_breaks_while_broken_and_few_break_at_once(seed, seconds, targets, every, longest) -> None:
    faults = plan(seed, seconds, targets, KINDS, every, longest)
    for target in targets:
        own = [fault for fault in faults if fault.target == target]
        assert all(earlier.end + REST <= later.begin for earlier, later in pairwise(own))
    at_once = max(1, int(len(targets) * BROKEN_SHARE))
    for number, fault in enumerate(faults):
        assert sum(fault.begin < earlier.end for earlier in faults[:number]) < at_once


def test_every_kind_comes_as_often_as_any_other() -> None:
    faults = plan(1, 600, [f"daemon-{number}" for number in range(10)])
    counts = [sum(fault.kind == kind for fault in faults) for kind in KINDS]
    assert max(counts) - min(counts) <= 1
    assert min(counts) > 5


def test_two_hundred_moments_are_two_hundred_faults() -> None:
    targets = [f"daemon-{number}" for number in range(20)]
    for seed in range(20):
        faults = plan(seed, 600, targets, ["kill"], every=3, longest=3)
        assert len(faults) == 200
        assert {fault.target for fault in faults} == set(targets)


def test_another_seed_is_another_plan() -> None:
    assert plan(1, 60, ["a", "b"]) != plan(2, 60, ["a", "b"])
