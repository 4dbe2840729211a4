"""`hushcast lab cover`."""

from __future__ import annotations

import json

from running import hushcast

SMALL = ("lab", "cover", "--users", "100", "--relays", "60", "--width", "4", "--draws", "1")


async def test_it_prints_each_figure_beside_its_bar() -> None:
    outcome = await hushcast(*SMALL, "--json")
    figures = {one["figure"]: one for one in json.loads(outcome.stdout)["figures"]}
    assert len(figures) == 91
    controls = [one["holds"] for name, one in figures.items() if name.startswith("control: ")]
    assert len(controls) == 21
    assert figures["lines: busy and idle told apart (AUC)"]["value"] == 0.5
    assert figures["messages lost, 1 % of letters lost on each stretch"]["holds"] is True
    assert figures["an empty box told from a full one by its second (AUC)"]["value"] == 0.5
    assert figures["items lacking after a week, a fifth of blocks lost, nobody asks"]["holds"] is True
