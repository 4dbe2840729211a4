"""The outcome of a simulation for people; pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from hushcast_runtime.wording import counted

_FOUND = {"told": "coverage", "companions": "companions", "conditions": "conditions", "hidden": "hidden"}


def rows(result: Mapping[str, Any], nodes: str = "relays") -> Iterator[tuple[str, str]]:
    """Yield the label and the text of each line; what the scenario did not ask for is left out.

    `nodes` is what the network's nodes are called.
    """
    sent, ideal, repaired = result["transmissions"], result["ideal"], result["repaired"]
    lost = counted(result["lost_with_receipt"], "delivery", "deliveries")
    why = "lost in spite of one" if not result["hidden"] else "not made: what lacks its k brings nothing"
    ratio = f" ({sent / ideal:.2f} times that)" if ideal else ""
    yield nodes, f"{result['nodes']:,}"
    yield "deliveries", f"{result['delivered']:,} of {result['pairs']:,}"
    yield "shown twice", f"{result['duplicates']:,}"
    yield "receipts", f"{result['receipts']:,}; {lost} {why}"
    yield "transmissions", f"{sent:,}; the paths add up to {ideal:,}{ratio}"
    yield "time", f"{result['virtual_seconds']:,.0f} s in the network, {result['seconds']:,.1f} s here"
    costs = result["costs"]
    if costs.get("shards", 1) > 1:
        yield "machine", f"{result['cpu_seconds']:,.1f} s of CPU, {result['megabytes']:,.0f} MB at most"
        yield "shards", f"{costs['shards']:,}"
        for name in ("leases", "links"):
            yield f"{name} a relay", _spread(costs[name])
        yield "installed", f"{counted(costs['installed'], 'parcel')} opened by relays"
        for role, spread in costs["bytes_fetched"].items():
            if spread:
                yield f"bytes a {role} fetched", _spread(spread)
    if result["gaps_reported"]:
        yield "gaps", f"{counted(result['gaps_reported'], 'message')} reported missing"
    if repaired["pairs"]:
        yield "after repair", f"{repaired['delivered']:,} of {repaired['pairs']:,} deliveries"
    for name, label in _FOUND.items():
        for key, value in result[name].items():
            yield f"{label}: {key.replace('_', ' ')}", _shown(value)


def _spread(spread: Mapping[str, float]) -> str:
    return f"{spread['mean']:,.0f} in the mean, {spread['least']:,} to {spread['most']:,}" if spread else "-"


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {part:g}" for name, part in value.items())
    return f"{value:g}"
