"""A picture of the tree of brokers in text: who stands below whom, and who is seen connected."""

from __future__ import annotations

from collections import defaultdict

from hushcast_brokers.broker.summary import short
from hushcast_brokers.broker.tree_report import ReportedBroker, TreeReport
from hushcast_runtime.wording import counted

_SEEN = {"this": "this broker", "connected": "connected", "away": "away", "not seen": ""}


def draw(told: TreeReport) -> list[str]:
    """Return the lines of the picture, the network's first."""
    below: dict[str | None, list[ReportedBroker]] = defaultdict(list)
    for one in told.brokers:
        below[one.parent].append(one)
    version = "not signed: the root does not run" if told.version is None else f"version {told.version}"
    lines = [f"network {told.network}, {counted(len(told.brokers), 'broker')}, tree {version}"]
    for root in below[None]:
        lines += [_label(root, told), *_below(root, below, told, "")]
    return lines


def _below(
    place: ReportedBroker, below: dict[str | None, list[ReportedBroker]], told: TreeReport, before: str
) -> list[str]:
    lines = []
    for one in below[place.key]:
        is_last = one is below[place.key][-1]
        lines.append(f"{before}{'└── ' if is_last else '├── '}{_label(one, told)}")
        lines += _below(one, below, told, before + ("    " if is_last else "│   "))
    return lines


def _label(place: ReportedBroker, told: TreeReport) -> str:
    words: list[str] = [place.role]
    if place.key:
        words.append(short(place.key))
    if told.version is not None and _SEEN[place.seen]:
        words.append(_SEEN[place.seen])
    return " ".join(words)
