"""Measures figures 6 to 9 and writes them into a folder."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path

from hushcast_located.batch_folder import BatchFolder, make_folder, write_whole
from hushcast_located.figures.figures_page import PAGE, files
from hushcast_located.figures.matching_costs import FigurePoint, WorkloadSize, measure, measure_given
from hushcast_located.input_lines import read_subscriptions
from hushcast_protocol.base.errors import UsageError

DATA = "figures.json"


def run(out: Path, size: tuple[int, int, int], tell: Callable[[str], None]) -> Path:
    """Measure with so many subscriptions and messages and this seed; return the page. Raises `UsageError`."""
    make_folder(out)
    chosen = WorkloadSize(*size)
    return _write(out, chosen, measure(chosen, tell))


def run_given(out: Path, batches: Path, subscriptions: Path, tell: Callable[[str], None]) -> Path:
    """Measure with the newest batch of a folder and a file of subscriptions, as `run`."""
    make_folder(out)
    folder = BatchFolder(batches)
    _, feed = folder.read(folder.chosen(None))
    asked = list(read_subscriptions(subscriptions, feed.table.body.rule).values())
    if not asked or not feed.batch.body.count:
        raise UsageError("there is nothing to measure: neither the batch nor the subscriptions may be none")
    size = WorkloadSize(len(asked), feed.batch.body.count, None)
    return _write(out, size, measure_given(feed, asked, tell))


def _write(out: Path, size: WorkloadSize, measured: Iterable[FigurePoint]) -> Path:
    points = list(measured)
    told = {"size": asdict(size), "points": [asdict(point) for point in points]}
    for name, text in {DATA: json.dumps(told, indent=1) + "\n", **files(size, points)}.items():
        write_whole(out / name, text.encode(), replace=True)
    return out / PAGE
