"""A broker below one, under layers with aggregation, has many items under one path, then one under another.

All its items were compared anew in one step once the factors of their path came: a multiplication of 0.15 ms
each, for as many as 65,536.
"""

from __future__ import annotations

import pytest
from full_world import DAY, FIGURE_2, World
from steps import one_step

from hushcast_protocol.brokers.full.group_action import GROUP

ITEMS = 1000


@pytest.mark.slow
def test_rows_of_a_long_path_become_one_with_others_in_short_steps() -> None:
    world = World(FIGURE_2, GROUP, 2)
    for name, words in (("A1", range(ITEMS)), ("A2", range(0, ITEMS, 10))):
        for number in words:
            world.want(name, number.to_bytes(16, "big"))
            world.hear(name)
    rows = world.nodes["B1"].rows
    assert len(rows.rows(DAY)) == ITEMS + ITEMS // 10
    for day, path in rows.missing():
        pieces, is_over = rows.learn(day, path, world.factors("B1", day, path)), False
        while not is_over:
            with one_step():
                is_over = next(pieces, True) is True
    assert len(rows.rows(DAY)) == ITEMS
