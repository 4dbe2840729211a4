"""Relays that lose half of all probes make it dear to judge them, so that a subscriber's daemon stands still.

A week of probes of one subscription, half of them lost on thousands of paths, took seconds in one step.
"""

from __future__ import annotations

import random

import pytest
import trio

from hushcast_overlay.routes.coverage import OverlayCoverage
from hushcast_protocol.overlay.coverage import MessageForm, ProbePath

pytestmark = pytest.mark.slow

RELAYS, PROBES = 600, 1200


async def test_a_judgement_keeps_nobody_waiting() -> None:
    rng = random.Random(1)
    names = [rng.randbytes(32) for _ in range(RELAYS)]
    coverage = OverlayCoverage()
    for number in range(PROBES):
        origin, top = rng.sample(names, 2)
        message = number.to_bytes(32, "big")
        probe = coverage.begin(message, 0.0, MessageForm(1167, 8))
        probe.note_try(origin)
        probe.note_receipt(origin)
        coverage.settle(message, {origin: ProbePath((origin, top), frozenset([top]))})
        if rng.random() < 0.5:
            coverage.arrived(message)
            coverage.came_by(message, top)
    coverage.give_up(1.0)
    turns = 0
    async with trio.open_nursery() as nursery:

        async def others() -> None:
            nonlocal turns
            while True:
                turns += 1
                await trio.lowlevel.checkpoint()

        nursery.start_soon(others)
        await coverage.judge()
        told = coverage.describe()
        nursery.cancel_scope.cancel()
    assert turns > 100
    assert told["probes"] == PROBES
    assert told["suspects"] == [relay.hex() for relay in coverage.suspects()]
