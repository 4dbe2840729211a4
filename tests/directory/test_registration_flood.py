"""A flood of names over links to a real authority: seats stay, renewals pass, the line is drawn, caps hold.

`python -m benchmarks.lab.registration_flood` is the same with 100,000 names (docs/authorities.md).
"""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.lab.registration_flood import Plan, play
from hushcast_directory.server.reachability_checks import REACH_WITHIN, WAIT_WITHIN
from hushcast_directory.server.roll import Roll

MOST = 150  # descriptors that are held, in place of `MAX_LISTED`
PLAN = Plan(names=1000, relays=6, newcomers=6, seats=8)


@pytest.mark.slow
async def test_of_a_flood_over_links_a_directory_is_neither_full_nor_slow(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(Roll, "most", MOST)
    out = await play(PLAN, tmp_path)
    assert (out.names, out.cut_short) == (PLAN.names, False)
    assert out.told.keys() <= {"taken", "in line", "turned away", "gave way"}
    assert out.told["in line"] > PLAN.names / 2
    assert out.told["turned away"] > 0, "there were more than are reached at once"
    # Who has a seat notices nothing.
    assert (out.heads_missed, out.seats_lost, out.renewals_refused) == (0, 0, 0)
    assert out.epochs > 40
    assert out.renewals > 40 * PLAN.relays
    assert out.slowest_renewal < REACH_WITHIN
    # Who comes is reached within a few tries, and is drawn as all who wait are.
    assert (out.most_new_seats, out.out_of_turn) == (PLAN.seats, 0)
    assert out.names_seated > 0
    assert max(out.reached_after, default=0) < 5 * WAIT_WITHIN
    assert out.newcomers_seated == PLAN.newcomers, "the day after, when the names have lapsed"
    # Memory and disk are bounded by what is held, not by what came.
    assert MOST <= out.most_held <= MOST + 1
    assert out.most_records <= MOST
    assert out.most_remembered < 5 * MOST
    assert out.most_disk < 10_000_000
