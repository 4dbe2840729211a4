"""The trials that time what is acknowledged run, and find daemons that answer at once."""

from __future__ import annotations

import pytest

from benchmarks.answers.__main__ import later, line, measure

TRIALS = 40


@pytest.mark.processes
@pytest.mark.slow
async def test_a_client_that_answers_at_once_is_found() -> None:
    said: list[str] = []
    kinds = await measure("client", True, TRIALS, 1, 1, said.append)
    assert all(len(took) == TRIALS for took in kinds.values())
    [told] = said
    assert told.startswith("client, answers at once: ")
    assert told.endswith(": found")


@pytest.mark.processes
@pytest.mark.slow
@pytest.mark.parametrize("what", ["edge", "client", "user", "pseudonyms"])
async def test_the_others_run(what: str) -> None:
    said: list[str] = []
    kinds = await measure(what, False, 2, 1, 1, said.append)
    assert all(0 < took < 5 for of in kinds.values() for took in of)
    assert said[0].startswith(f"{what}, as it is: ")


def test_what_is_said_of_times() -> None:
    assert later([2.0, 2.0], [1.0, 1.0])[0] == 1.0
    assert later([1.0, 2.0], [1.0, 2.0])[0] == 0.5
    share, chance = later([3.0, 1.0] * 100, [2.0] * 200)
    assert share == 0.5
    assert 0.05 < chance < 0.06
    assert line("x", False, {"a": [1.0, 2.0] * 50, "b": [1.0, 2.0] * 50}).endswith("no better than chance")
    assert line("x", True, {"a": [2.0] * 50, "b": [1.0] * 50}).endswith("found")
