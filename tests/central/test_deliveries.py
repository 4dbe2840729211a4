"""Deliveries: whatever is lost, forged or late, all that waits is heard, and nothing else is deleted."""

from __future__ import annotations

from random import Random

import pytest
from deliveries_world import play


@pytest.mark.parametrize("seed", range(12))
async def test_all_that_waits_is_heard_in_the_end(seed: int) -> None:
    left = iter(range(150))
    await play(Random(seed).randrange, lambda: next(left, None) is not None)
