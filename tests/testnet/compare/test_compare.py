"""A small comparison of all systems, with real daemons on modelled machines."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hushcast_protocol.base.errors import UsageError
from hushcast_runtime.files import write_private
from hushcast_testnet.compare import comparison
from hushcast_testnet.compare.comparison import compare, jobs, settings
from hushcast_testnet.compare.experiments import ExperimentPlan, ExperimentPoint, Keep, measure
from hushcast_testnet.compare.modelled_network import NetworkScene
from hushcast_testnet.compare.tor_work import measured

SMALL = settings(8, (2, 8), (1, 3), 1)


class Pressed(Exception):
    """Somebody pressed Ctrl-C."""


@pytest.mark.slow
def test_a_comparison_measures_all_systems_and_goes_on_where_it_was_interrupted(tmp_path: Path) -> None:
    said: list[str] = []

    def interrupt(text: str) -> None:
        said.append(text)
        if text == "network 2 of 5 (central, hardened, seed 1): 8 participants subscribe":
            raise Pressed

    with pytest.RaisesGroup(Pressed, flatten_subgroups=True, allow_unwrapped=True):
        compare(SMALL, tmp_path, interrupt)
    assert not (tmp_path / "compare.json").exists()
    del said[:]
    found = compare(SMALL, tmp_path, said.append)
    assert said[0] == "network 2 of 5 (central, hardened, seed 1): starting"
    assert not any(text.endswith("hardened, seed 1): 2 participants subscribe") for text in said[:6])
    assert json.loads((tmp_path / "compare.json").read_text()) == found
    for profile in ("paper", "hardened"):
        for figure, numbers in (("figure3", [2, 8]), ("figure4", [2, 8]), ("figure5", [1, 3])):
            for system in ("central", "tree", "brokers"):
                points = found[profile][figure][system]
                assert [x for x, _ in points] == numbers
                assert all(0 < seconds < 60 for _, seconds in points)
        # A mailbox is an onion service that others must find first: each had one to spare.
        assert max(seconds for _, seconds in found["hardened"]["figure3"]["tree"]) < min(
            measured().publish_seconds
        )
    lines = list(csv.DictReader((tmp_path / "measurements.csv").read_text().splitlines()))
    assert {line["system"] for line in lines} == {"central", "tree", "brokers"}
    names = {path.name for path in tmp_path.iterdir()}
    assert {"index.html", "figure3-paper.svg", "figure5-hardened.svg", "model.json"} <= names
    del said[:]
    assert compare(SMALL, tmp_path, said.append) == found
    assert said == []
    with pytest.raises(UsageError, match="other settings"):
        compare(settings(8, (3, 8), (1, 3), 1), tmp_path, said.append)


def test_a_wave_of_which_half_was_written_is_in_the_figures_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load = {part: {"most": "one", "seconds": 1.0, "mean": 0.5} for part in ("processor", "tor")}
    kept = 0

    def measure_at_once(
        scene: NetworkScene, plan: ExperimentPlan, progress: Callable[[str], None], keep: Keep
    ) -> None:
        for count in plan.subscribers:
            points = [ExperimentPoint(figure, count, scene.seed + count / 100) for figure in (3, 4, 4, 5)]
            keep(count, points, load | {"sent": {}})

    def write(path: Path, data: bytes) -> None:
        nonlocal kept
        if path.name == "model.json":
            kept += 1
            if kept == 4:
                raise Pressed
        write_private(path, data)

    monkeypatch.setattr(comparison, "measure", measure_at_once)
    monkeypatch.setattr(comparison, "write_private", write)
    with pytest.raises(Pressed):
        compare(SMALL, tmp_path, lambda text: None)
    compare(SMALL, tmp_path, lambda text: None)
    lines = csv.DictReader((tmp_path / "measurements.csv").read_text().splitlines())
    waves = Counter((one["profile"], one["system"], one["x"]) for one in lines)
    assert len(waves) == 10
    assert set(waves.values()) == {4}


def test_files_of_somebody_else_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "model.json").write_text("[1, 2]")
    (tmp_path / "measurements.csv").write_text("a,b\n")
    with pytest.raises(UsageError, match="no comparison wrote"):
        compare(SMALL, tmp_path, lambda text: None)
    assert (tmp_path / "model.json").read_text() == "[1, 2]"


def test_what_is_not_given_follows_the_number_of_participants() -> None:
    full = settings(500, None, None, 2)
    assert full.subscribers == (25, 50, 100, 250, 500)
    assert full.publishers == (1, 10, 25, 50)
    small = settings(10, None, None, 1)
    assert small.subscribers == (1, 2, 5, 10)  # half of one participant counts as one
    assert small.publishers == (1, 10)
    assert {(job.plan.steady, job.plan.publishers) for job in jobs(small)} == {(10, (1, 10))}
    assert {job.plan.subscribers for job in jobs(settings(500, (3,), None, 1))} == {(3, 50)}


@pytest.mark.slow
@pytest.mark.parametrize("system", ["central", "tree", "brokers"])
def test_who_publishes_without_subscribing_is_only_part_of_the_load(system: str) -> None:
    kept: list[tuple[int, list[tuple[int, int]]]] = []
    loads: list[dict[str, Any]] = []

    def keep(subscribers: int, points: list[ExperimentPoint], load: dict[str, Any]) -> None:
        kept.append((subscribers, [(point.figure, point.x) for point in points]))
        loads.append(load)

    scene = NetworkScene(system, "hardened", 6, 1, measured(), 20e6)
    measure(scene, ExperimentPlan((1, 2), 1, 2, (1, 5)), lambda text: None, keep)
    assert kept == [(1, [(3, 1), (4, 1)]), (2, [(3, 2), (4, 2), (5, 1), (5, 5)])]
    for load in loads:
        for part in ("processor", "tor"):
            assert load[part]["seconds"] >= load[part]["mean"] > 0


@pytest.mark.slow
def test_relays_of_a_network_in_use_are_linked() -> None:
    opened: dict[bool, int] = {}

    for linked in (True, False):

        def keep(_: int, __: list[ExperimentPoint], load: dict[str, Any], linked: bool = linked) -> None:
            opened[linked] = load["sent"]["connections"]

        scene = NetworkScene("tree", "paper", 8, 1, measured(), 20e6, linked=linked)
        measure(scene, ExperimentPlan((4,), 1), lambda _: None, keep)
    # Drops of parcels are connections, one at least for each subscription; each tree goes over seven links.
    assert 4 <= opened[True] <= 4 * 3
    assert opened[True] + 7 < opened[False]


def test_each_wave_of_a_cold_comparison_has_a_network_that_nobody_has_used() -> None:
    warm, cold = (
        [job.plan.subscribers for job in jobs(settings(12, (3, 12), (1, 4), 1, links=links))]
        for links in ("warm", "cold")
    )
    assert warm == [(3, 12)] * 5
    assert cold == [(3,), (12,)] * 5


@pytest.mark.slow
def test_tors_may_be_apart() -> None:
    took: dict[int, list[float]] = {}

    for apart in (0, 80):

        def keep(_: int, points: list[ExperimentPoint], __: dict[str, Any], apart: int = apart) -> None:
            took[apart] = [point.seconds for point in points]

        scene = NetworkScene("tree", "hardened", 6, 1, measured().at(apart), 20e6)
        measure(scene, ExperimentPlan((3,), 1), lambda _: None, keep)
    assert all(after > before + 3 * 0.08 for before, after in zip(took[0], took[80], strict=True))
