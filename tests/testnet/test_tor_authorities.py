"""Five directories of which two lie, over a private Tor network: a head each epoch, and nothing is lost."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio.testing

from hushcast_testnet.tor.private_tor import TorNetwork
from soak.directories.figures import Figures, play
from soak.directories.place import in_memory, over_tor
from soak.directories.scene import Plan


def assert_nothing_came_of_lies(figures: Figures) -> None:
    assert figures.heads == figures.rosters == figures.epochs
    assert figures.forks == figures.wrong == figures.internal_errors == 0
    assert (figures.lost, figures.twice, figures.gaps, figures.refused) == (0, 0, 0, 0)
    assert figures.published > 0
    assert figures.deliveries == 5 * figures.published
    assert figures.evidence > 0
    assert figures.accused > 0


@pytest.mark.tor
async def test_over_tor(tor_network: TorNetwork, tmp_path: Path) -> None:
    """A day of epochs of 60 s is one of `make soak`; docs/authorities.md has its figures.

    In epochs of 60 s a round takes 2.4 s, here 4.8: beside other lanes on a slow machine an exchange over Tor
    may take longer than that, and took longer than 3.6 once in some whole runs.
    """
    plan = Plan(epoch=120, epochs=2, pause=5.0, before=1.9)
    assert_nothing_came_of_lies(await play(plan, over_tor(tor_network, tmp_path, plan.begin)))


@pytest.mark.slow
def test_a_day_in_memory_with_a_beacon_though_one_withholds() -> None:
    plan = Plan(epochs=13, pause=60.0)
    clock = trio.testing.MockClock(autojump_threshold=0)
    figures = trio.run(_in_memory, plan, clock=clock)
    assert_nothing_came_of_lies(figures)
    assert figures.beacon == 12
    assert figures.named == 1
    assert figures.accused == 2
    lies = {"SILENT", "OLD", "MADE_UP", "LESS", "ALONE", "NOTHING", "TAKEN", "REFUSED"}
    assert figures.answers.keys() == lies
    assert figures.heads_refused > 0


async def _in_memory(plan: Plan) -> Figures:
    return await play(plan, in_memory(plan.seed, plan.begin))
