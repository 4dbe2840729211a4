"""Who waits for daemons: a few trials of what `make soak` does for long, and how guesses are counted."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from hushcast_testnet import testnet
from soak.guesses import Trial, told
from soak.waiting import watch_waiting

EPOCH = 6  # seconds: the adversary's relays are listed in the next but one


def made(trials: int, later: float) -> list[Trial]:
    """Trials among two whose answers scatter by 20 ms, that of the target so many ms later."""
    chance = random.Random(trials)
    late = [(chance.gauss(0.0, 0.02), chance.gauss(0.0, 0.02)) for _ in range(trials)]
    return [Trial("a", {"a": a + later / 1000, "b": b}) for a, b in late]


def test_who_is_as_late_as_others_is_guessed_by_chance() -> None:
    figures = told(made(200, 0.0), 2)
    low, high = figures["99 % of it"]
    assert figures["ok"]
    assert low < 0 < high


def test_who_is_later_by_as_much_as_answers_scatter_is_guessed() -> None:
    figures = told(made(100, 20.0), 2)
    low, high = figures["99 % of it"]
    assert not figures["ok"]
    assert low > 0
    assert low < 20 < high


def test_one_trial_tells_nothing() -> None:
    figures = told([Trial("a", {"a": 1.0, "b": 0.0, "c": 0.5})], 3)
    assert figures["ok"]
    assert (figures["right"], figures["median delay, ms"], figures["99 % of it"]) == (1, 750, [750, 750])


@pytest.mark.processes
def test_trials_of_each_kind_on_real_daemons(tmp_path: Path) -> None:
    directory = tmp_path / "net"
    testnet.up(directory, 3, 2, "tcp", EPOCH, root="mailbox")
    try:
        figures = watch_waiting(directory, 3, 1, print)
    finally:
        testnet.down(directory)
    assert figures["ok"]  # of three guesses all may be right by chance
    cells = {name: cell["trials"] for name, cell in figures.items() if name != "ok"}
    assert cells == {"who hosts": 3, "who published": 3, "who published to who is honest": 3}
