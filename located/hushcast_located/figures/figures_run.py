"""Measures figures 6 to 9 and writes them into a folder."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from hushcast_located.batch_folder import make_folder, write_whole
from hushcast_located.figures.figures_page import PAGE, files
from hushcast_located.figures.matching_costs import WorkloadSize, measure

DATA = "figures.json"


def run(out: Path, size: tuple[int, int, int], tell: Callable[[str], None]) -> Path:
    """Measure with so many subscriptions and messages and this seed; return the page. Raises `UsageError`."""
    make_folder(out)
    chosen = WorkloadSize(*size)
    points = list(measure(chosen, tell))
    told = {"size": asdict(chosen), "points": [asdict(point) for point in points]}
    for name, text in {DATA: json.dumps(told, indent=1) + "\n", **files(chosen, points)}.items():
        write_whole(out / name, text.encode(), replace=True)
    return out / PAGE
