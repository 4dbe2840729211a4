"""A comparison: its networks one after the other, what they measured on disk, and a run that can go on.

`measurements.csv` grows by each network. A run that was interrupted takes up what is there, if it was made
with the same settings.
"""

from __future__ import annotations

import csv
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Any

from nacl.bindings import crypto_scalarmult_base

from hushcast_protocol.base.errors import UsageError
from hushcast_runtime.files import write_private
from hushcast_testnet.compare import comparison_page
from hushcast_testnet.compare.curves import CLEAR, STEADY, SYSTEMS, Measurement, tabulated
from hushcast_testnet.compare.experiments import ExperimentPlan, ExperimentPoint, measure
from hushcast_testnet.compare.modelled_network import NetworkScene
from hushcast_testnet.compare.tor_work import measured

PROFILES = ("paper", "hardened")
SHARES = (0.05, 0.1, 0.2, 0.5, 1.0)  # of the participants that subscribe, in figures 3 and 4
PUBLISHERS = (1, 10, 25, 50)
PUBLICATIONS = 10  # on each network, one after the other
FLOODS = 4  # publications where each goes over all links, 24,000 for 50 subscribers: trees as published
BITS_A_SECOND = (
    20e6  # of every machine's line, each way: an ordinary line at home is slower up, a server faster
)
MEASUREMENTS, TABLE, MODEL, PAGE = "measurements.csv", "compare.json", "model.json", "index.html"

_AGREEMENTS = 500  # that are timed after each wave
_COLUMNS = [field.name for field in fields(Measurement)]


@dataclass(frozen=True)
class ComparisonSettings:
    """What to compare."""

    nodes: int
    subscribers: tuple[int, ...]
    publishers: tuple[int, ...]
    seeds: int
    links: str = "warm"
    """`warm`: links are open, and what can be ready is; `cold`: each network has never been used."""
    distance: int = 0
    """Milliseconds between tors, one way."""


def settings(
    nodes: int,
    subscribers: tuple[int, ...] | None,
    publishers: tuple[int, ...] | None,
    seeds: int,
    **conditions: Any,
) -> ComparisonSettings:
    """Return settings; for what is not given, the same shares of the participants at any size.

    `conditions` are the last fields of `ComparisonSettings`.
    """
    if subscribers is None:
        subscribers = tuple(sorted({max(1, round(share * nodes)) for share in SHARES}))
    if publishers is None:
        publishers = tuple(sorted({min(count, nodes) for count in PUBLISHERS}))
    return ComparisonSettings(nodes, subscribers, publishers, seeds, **conditions)


@dataclass(frozen=True)
class ComparisonJob:
    """One network and what is measured on it."""

    system: str
    profile: str
    seed: int
    plan: ExperimentPlan

    def wave(self, subscribers: int) -> str:
        """Return what one wave of it is called."""
        return f"{self.system}, {self.profile}, {subscribers} subscribers, seed {self.seed}"


def jobs(settings: ComparisonSettings) -> Iterator[ComparisonJob]:
    """Yield the networks, so that after each seed there is something of everything."""
    steady = min(STEADY, settings.nodes)
    # The one with many publications comes last: as published they flood, and take longer than all else.
    waves = (*sorted({*settings.subscribers} - {steady}), steady)
    for seed in range(1, settings.seeds + 1):
        for system in SYSTEMS:
            for profile in PROFILES if system != "brokers" else (CLEAR,):
                floods = (system, profile) == ("tree", "paper")
                plan = ExperimentPlan(waves, FLOODS if floods else PUBLICATIONS, steady, settings.publishers)
                # The first wave opens links: where each is to find none, each has a network.
                for part in [waves] if settings.links == "warm" else [(count,) for count in waves]:
                    yield ComparisonJob(system, profile, seed, replace(plan, subscribers=part))


def compare(settings: ComparisonSettings, directory: Path, progress: Callable[[str], None]) -> dict[str, Any]:
    """Measure what is not there yet, write all files, and return what `compare.json` holds."""
    directory.mkdir(parents=True, exist_ok=True)
    record = _Record(directory, settings)
    work, wanted = measured().at(settings.distance), list(jobs(settings))
    warm = settings.links == "warm"
    for number, job in enumerate(wanted, 1):
        left = tuple(count for count in job.plan.subscribers if job.wave(count) not in record.loads)
        if not left:
            continue
        scene = NetworkScene(
            job.system,
            job.profile,
            settings.nodes,
            job.seed,
            work,
            BITS_A_SECOND,
            attached=warm,
            linked=warm,
        )
        about = f"network {number} of {len(wanted)} ({job.system}, {job.profile}, seed {job.seed})"
        measure(
            scene,
            replace(job.plan, subscribers=left),
            lambda what, about=about: progress(f"{about}: {what}"),  # type: ignore[misc]
            partial(record.add, job),
        )
    record.close(work.describe())
    return tabulated(record.measurements)


def _pace() -> float:
    """Return the milliseconds of CPU that a key agreement takes now: other programs slow this machine."""
    scalar = bytes(range(32))
    began = time.thread_time()
    for _ in range(_AGREEMENTS):
        scalar = crypto_scalarmult_base(scalar)
    return round(1000 * (time.thread_time() - began) / _AGREEMENTS, 5)


class _Record:
    """What was measured so far, on disk."""

    def __init__(self, directory: Path, settings: ComparisonSettings) -> None:
        self._directory = directory
        self._settings = json.loads(json.dumps(asdict(settings)))
        self.measurements: list[Measurement] = []
        self.loads: dict[str, Any] = {}
        try:
            before = json.loads((directory / MODEL).read_text())
            lines = list(csv.DictReader((directory / MEASUREMENTS).read_text().splitlines()))
            if before["settings"] != self._settings:
                raise UsageError(
                    f"{directory} holds a comparison with other settings: give the same, or another --out"
                )
            self.loads = before["networks"]
            self.measurements = [_read(line) for line in lines]
        except FileNotFoundError:
            pass
        except (ValueError, KeyError, TypeError):
            raise UsageError(
                f"{directory} holds files that no comparison wrote: give another --out"
            ) from None

    def add(
        self, job: ComparisonJob, subscribers: int, points: list[ExperimentPoint], load: dict[str, Any]
    ) -> None:
        """Add a wave's, in place of what an interruption left of it."""
        fresh = [
            Measurement(job.profile, point.figure, job.system, point.x, job.seed, point.seconds)
            for point in points
        ]
        measured_anew = {replace(one, seconds=0.0) for one in fresh}
        left = [one for one in self.measurements if replace(one, seconds=0.0) not in measured_anew]
        self.measurements = [*left, *fresh]
        self.loads[job.wave(subscribers)] = load | {"pace": _pace()}
        self._write_measurements()
        self._write_json(MODEL, {"settings": self._settings, "networks": self.loads})

    def close(self, tor: dict[str, Any]) -> None:
        """Write what is made of it."""
        model = {
            "settings": self._settings,
            "tor": tor,
            "bits_a_second": BITS_A_SECOND,
            "networks": self.loads,
        }
        self._write_json(MODEL, model)
        self._write_json(TABLE, tabulated(self.measurements))
        for name, text in comparison_page.files(self.measurements, model).items():
            write_private(self._directory / name, text.encode())

    def _write_json(self, name: str, value: Any) -> None:
        write_private(self._directory / name, (json.dumps(value, indent=1) + "\n").encode())

    def _write_measurements(self) -> None:
        lines = [",".join(_COLUMNS)]
        lines += [",".join(str(value) for value in asdict(one).values()) for one in self.measurements]
        write_private(self._directory / MEASUREMENTS, ("\n".join(lines) + "\n").encode())


def _read(line: dict[str, str]) -> Measurement:
    one = Measurement(line["profile"], 0, line["system"], 0, 0, float(line["seconds"]))
    return replace(one, figure=int(line["figure"]), x=int(line["x"]), seed=int(line["seed"]))
