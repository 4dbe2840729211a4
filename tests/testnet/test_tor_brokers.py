"""Six brokers and six daemons over a private Tor network: what arrives, and what k lets out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import trio
from joining import joined

from hushcast_cli.main import run
from hushcast_testnet.demonstrations.carrier_demo import brokers_course
from hushcast_testnet.demonstrations.course import CourseOutcome, converse
from hushcast_testnet.demonstrations.levels_scene import faults, show_levels
from hushcast_testnet.inventory import load
from hushcast_testnet.layouts import BrokersLayout
from hushcast_testnet.tor.private_tor import TorNetwork

pytestmark = [pytest.mark.tor, pytest.mark.processes]


@dataclass(frozen=True)
class Shown:
    """A testnet in which the demonstration was had."""

    sockets: dict[str, Path]
    outcome: CourseOutcome
    levels: dict[str, Any]


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory, tor_network: TorNetwork) -> Iterator[Shown]:
    directory = tmp_path_factory.mktemp("brokers") / "net"
    with joined(directory, tor_network, BrokersLayout(6, 3)):
        sockets = {member.name: Path(member.socket or "") for member in load(directory).nodes}
        course = replace(brokers_course(), publications=8, between=0.2)
        outcome = trio.run(converse, course, sockets, 0.0, _silent, _silent)
        yield Shown(sockets, outcome, trio.run(show_levels, sockets, directory / "traces", _silent))


def _silent(line: str) -> None:
    pass


def test_three_topics_with_ranges_and_a_private_one_are_delivered_once(shown: Shown) -> None:
    outcome = shown.outcome
    assert outcome.published == 8
    assert len(outcome.delays) == 12
    assert None not in outcome.delays
    assert outcome.extra == 0


def test_k_is_reached_lost_when_one_leaves_and_reached_again_by_one_more(
    shown: Shown, capfd: pytest.CaptureFixture[str]
) -> None:
    steps = shown.levels["steps"]
    assert [step["subscribers"] for step in steps] == [1, 2, 3, 2, 3, 4]
    assert [step["outside"] for step in steps] == [0, 0, 1, 0, 0, 1]
    assert [len(step["came"]) for step in steps] == [0, 0, 3, 0, 0, 4]
    assert faults(shown.levels) == (0, 0)
    assert run(["--socket", str(shown.sockets["client-4"]), "subscriptions"]) == 0
    assert "shown outside among 3 or more" in capfd.readouterr().out
