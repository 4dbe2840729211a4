"""The trials that time owners while their daemons are kept busy run, and find daemons that can be stalled."""

from __future__ import annotations

import pytest

from benchmarks.stalls import __main__ as stalls

TRIALS, STALL = 3, 1.0


@pytest.mark.processes
@pytest.mark.slow
@pytest.mark.parametrize("what", ["reads", "published"])
async def test_an_old_fault_is_found(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stalls, "WATCHED", 2.0)  # on a busy machine strangers come to their junk late
    said: list[str] = []
    found = await stalls.measure(what, False, [(STALL, TRIALS), (0.0, 1)], 1, said.append)
    assert all(guess["latest"] for guess in found[STALL])
    assert len(found[0.0]) == 1
    told = f"who {what}, tcp, a loop held for {STALL} s, by the latest: {TRIALS} of {TRIALS}"
    assert any(line.startswith(told) for line in said)


def test_what_is_said_of_guesses() -> None:
    guesses = [dict.fromkeys(stalls.LATENESS, number < 33) for number in range(100)]
    assert list(stalls.lines("x", guesses, 1 / 3)) == [
        f"x, by the {name}: 33 of 100, 25% to 43%, chance 33%: no better than chance"
        for name in stalls.LATENESS
    ]
    found = stalls.lines("x", [dict.fromkeys(stalls.LATENESS, True)] * 10, 0.5)
    assert all(line.endswith("found") for line in found)
