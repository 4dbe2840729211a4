"""The dashboard and the alert rules ask for metrics that the daemons have, and show what operators need."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest
import yaml
from pages import ROOT

from hushcast_brokers.broker.gauges import BROKER_GAUGES
from hushcast_brokers.counters import BROKER_COUNTERS
from hushcast_brokers.tomography.counters import TOMOGRAPHY_COUNTERS, TOMOGRAPHY_GAUGES
from hushcast_central.counters import PROXY_COUNTERS, SERVER_COUNTERS
from hushcast_central.gauges import CENTRAL_GAUGES
from hushcast_directory.server.counters import DIRECTORY_COUNTERS
from hushcast_node.counters import COUNTERS
from hushcast_runtime.processes.exposition import PREFIX
from hushcast_runtime.processes.metrics import GAUGES

FOLDER = ROOT / "docs" / "monitoring"
DASHBOARD = json.loads((FOLDER / "hushcast-dashboard.json").read_text())
ALERTS = yaml.safe_load((FOLDER / "hushcast-alerts.yml").read_text())
RULES = [rule for group in ALERTS["groups"] for rule in group["rules"]]
COUNTED = [*COUNTERS, *DIRECTORY_COUNTERS, *SERVER_COUNTERS, *PROXY_COUNTERS, *BROKER_COUNTERS]
COUNTED += TOMOGRAPHY_COUNTERS
SERVED = {PREFIX + name for name in [*GAUGES, *CENTRAL_GAUGES, *BROKER_GAUGES, *TOMOGRAPHY_GAUGES]} | {
    f"{PREFIX}{name}_total" for name in COUNTED
}


def asked(expression: str) -> set[str]:
    return set(re.findall(rf"\b{PREFIX}\w+", expression))


def expressions() -> Iterator[str]:
    for panel in DASHBOARD["panels"]:
        for target in panel["targets"]:
            yield target["expr"]
    for variable in DASHBOARD["templating"]["list"]:
        if variable["type"] == "query":
            yield variable["query"]
    for rule in RULES:
        yield rule["expr"]


@pytest.mark.parametrize("expression", sorted(set(expressions())))
def test_only_metrics_that_are_served_are_asked_for(expression: str) -> None:
    assert asked(expression) <= SERVED
    assert asked(expression) or expression.startswith("up{")
    for name in asked(expression):
        assert name.endswith("_total") == bool(re.search(rf"(rate|increase)\({name}", expression)), name


def test_the_dashboard_shows_every_metric() -> None:
    shown = {name for panel in DASHBOARD["panels"] for t in panel["targets"] for name in asked(t["expr"])}
    assert shown == SERVED - {"hushcast_tor_bootstrap_percent"}  # `ready` says the same sooner


def test_panels_do_not_overlap() -> None:
    taken = [
        (x, y)
        for panel in DASHBOARD["panels"]
        for at in [panel["gridPos"]]
        for x in range(at["x"], at["x"] + at["w"])
        for y in range(at["y"], at["y"] + at["h"])
    ]
    assert len(taken) == len(set(taken))
    assert max(x for x, _ in taken) < 24, "Grafana has 24 columns"
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_every_alert_says_what_to_do(rule: dict) -> None:
    assert rule["labels"]["severity"] in ("warning", "critical")
    assert rule["annotations"].keys() == {"summary", "action"}


def test_alerts_have_names_of_their_own() -> None:
    assert len({rule["alert"] for rule in RULES}) == len(RULES)
