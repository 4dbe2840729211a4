"""Carriers run under virtual time."""

from __future__ import annotations

import functools
from pathlib import Path

import pytest
from virtual_time import give_virtual_time, run_hostile
from worlds import brokers_over_tcp, central_over_tcp, overlay_over_tcp

QUIET = 0.002  # real seconds without a byte from any socket after which nothing more is on its way


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    give_virtual_time(items, Path(__file__).parent, run_hostile)
    for item in items:
        parameters = item.callspec.params if hasattr(item, "callspec") else {}
        if parameters.get("opened") in (overlay_over_tcp, central_over_tcp, brokers_over_tcp):
            run = functools.partial(run_hostile, quiet=QUIET)
            item.add_marker(pytest.mark.trio(run=run), append=False)
