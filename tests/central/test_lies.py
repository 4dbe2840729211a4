"""A user believes of the server what it proved, whatever it and its proxies say (`user_world`)."""

from __future__ import annotations

import random

import pytest
from user_world import play


@pytest.mark.parametrize("seed", range(12))
async def test_a_user_believes_what_was_proven(seed: int) -> None:
    moves = random.Random(seed)
    left = [300]

    def choose(most: int) -> int:
        left[0] -= 1
        return moves.randrange(most)

    await play(choose, lambda: left[0] > 0)
