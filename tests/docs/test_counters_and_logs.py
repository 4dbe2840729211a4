"""docs/metrics.md names every gauge and counter, docs/logging.md every log event with its level."""

from __future__ import annotations

import ast
import functools

from pages import PACKAGES, ROOT, rows

from hushcast_brokers.broker.gauges import BROKER_GAUGES
from hushcast_brokers.counters import BROKER_COUNTERS
from hushcast_brokers.tomography.counters import TOMOGRAPHY_COUNTERS, TOMOGRAPHY_GAUGES
from hushcast_central.counters import PROXY_COUNTERS, SERVER_COUNTERS
from hushcast_central.gauges import CENTRAL_GAUGES
from hushcast_directory.server.counters import DIRECTORY_COUNTERS
from hushcast_gateway.counters import GATEWAY_COUNTERS, GATEWAY_GAUGES
from hushcast_located.owner_service.counters import OWNER_COUNTERS, OWNER_GAUGES
from hushcast_located.service.counters import PROVIDER_COUNTERS, PROVIDER_GAUGES
from hushcast_node.counters import COUNTERS
from hushcast_runtime.processes.metrics import GAUGES

_LEVELS = {"debug", "info", "warning", "error", "exception"}


@functools.cache
def _events() -> set[tuple[str, str]]:
    """Return (event, level) of every call of a logger in the packages."""
    found = set()
    for package in PACKAGES:
        for file in (ROOT / package).rglob("*.py"):
            for node in ast.walk(ast.parse(file.read_text())):
                if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
                    continue
                logger = node.func.value
                if not (isinstance(logger, ast.Name) and logger.id in ("log", "_log")):
                    continue
                if node.func.attr not in _LEVELS:  # a file that is called `log`
                    continue
                event = node.args[0]
                assert isinstance(event, ast.Constant), f"{file}:{node.lineno}: an event is a plain text"
                level = "error" if node.func.attr == "exception" else node.func.attr
                found.add((event.value, level))
    return found


def test_every_metric_is_explained() -> None:
    table = [cells for cells in rows((ROOT / "docs" / "metrics.md").read_text()) if cells[0].startswith("`")]
    names = [*GAUGES, *COUNTERS, *DIRECTORY_COUNTERS, *GATEWAY_GAUGES, *GATEWAY_COUNTERS]
    names += [*CENTRAL_GAUGES, *SERVER_COUNTERS, *PROXY_COUNTERS]
    names += [*BROKER_GAUGES, *BROKER_COUNTERS, *TOMOGRAPHY_GAUGES, *TOMOGRAPHY_COUNTERS]
    names += [*PROVIDER_GAUGES, *PROVIDER_COUNTERS, *OWNER_GAUGES, *OWNER_COUNTERS]
    assert [cells[0].strip("`") for cells in table] == names
    assert all(len(cells) == 3 and all(cells) for cells in table)


def test_every_log_event_is_listed() -> None:
    page = (ROOT / "docs" / "logging.md").read_text().partition("## Events")[2]
    table = [cells for cells in rows(page) if cells[0].startswith("`")]
    listed = [(cells[0].strip("`"), cells[1]) for cells in table]
    assert len(listed) == len(set(listed))
    assert set(listed) == _events()
    for event, level, _, advice in (cells[:4] for cells in table):
        assert level not in ("warning", "error") or advice != "–", f"{event}: what is to be done?"


def test_events_are_plain_words() -> None:
    for event, _ in _events():
        assert event[0].islower(), event
        assert not event.endswith((".", "!")), event
        assert not set(event) & set("_{}%\n"), event
