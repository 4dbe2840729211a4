"""Changes: what an analysis says that the one before it did not, in words; pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hushcast_analytics.report.phrases import GOALS, percent

Summary = dict[str, Any]

MUCH = 0.1  # by which a figure of the network has to differ, of what it was: less is chance, or the machine's
NOTHING = "Nothing changed but what chance explains."
_FIGURES = {
    "completeness": "completeness",
    "excess": "excess",
    "to_ideal": "transmissions against the ideal",
    "gini": "inequality of load",
    "latency_p50": "seconds until half is delivered",
    "latency_p99": "seconds until 99 % is delivered",
    "rejected_lines": "lines that are no records",
}
"""Of `network`; its counts grow with the traces, and say nothing."""


def changes(before: Summary, now: Summary) -> list[str]:
    """Return a line for each verdict, attack and figure of the network that is another, `NOTHING` if none is.

    Both are as `summary.json` has them. An attack is another if the intervals of its accuracy do not meet.
    """
    return [*_verdicts(before, now), *_attacks(before, now), *_network(before, now)] or [NOTHING]


def _verdicts(before: Summary, now: Summary) -> Iterator[str]:
    old, new = (
        {(each["profile"], each["goal"]): each["standing"] for each in summary["verdict"]}
        for summary in (before, now)
    )
    for key in sorted(old | new):
        was, is_ = old.get(key), new.get(key)
        if was != is_:
            profile, goal = key
            said = f"was {was or 'not asked'}, is {is_ or 'not asked'}"
            yield f"{profile.capitalize()}, {GOALS.get(goal, goal)}: {said}."


def _attacks(before: Summary, now: Summary) -> Iterator[str]:
    old, new = (
        {(each["profile"], each["attack"], each["colluding"]): each for each in summary["attacks"]}
        for summary in (before, now)
    )
    for key in sorted(old.keys() & new.keys()):
        was, is_ = old[key], new[key]
        if was["accuracy_high"] < is_["accuracy_low"] or is_["accuracy_high"] < was["accuracy_low"]:
            profile, attack, share = key
            who = f"{profile.capitalize()}, {attack}, {percent(share)} collude"
            yield f"{who}: {_right(was)}, {_right(is_)} now."


def _right(row: dict[str, Any]) -> str:
    low, high = percent(row["accuracy_low"]), percent(row["accuracy_high"])
    return f"right in {percent(row['accuracy'])} ({low} to {high})"


def _network(before: Summary, now: Summary) -> Iterator[str]:
    old, new = before["network"], now["network"]
    for name, said in _FIGURES.items():
        was, is_ = old.get(name), new.get(name)
        if was is None or is_ is None:
            continue
        if abs(is_ - was) > MUCH * abs(was):
            yield f"{said.capitalize()}: {was:.4g}, {is_:.4g} now."
