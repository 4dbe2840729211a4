"""Pictures of levels, of what generalising costs, and of what colluding edge brokers achieve."""

from __future__ import annotations

from collections.abc import Sequence

from hushcast_analytics.report.analysis_findings import Row
from hushcast_analytics.report.charts import blank, legend, percents, svg

_COLOURS = {
    "source": "#444444",
    "immediate-successor": "#edae49",
    "successor": "#d1495b",
    "immediate-predecessor-successor": "#7b5ea7",
    "immediate-predecessor": "#00798c",
}


def levels(rows: Sequence[Row]) -> str:
    """Draw which share of the filters has a level or more."""
    figure, axes = blank(3.8)
    for row in rows:
        points = [(int(level), share) for level, share in row["at_least"].items()]
        axes.plot(
            [level for level, _ in points], [share for _, share in points], marker=".",
            color=_COLOURS[row["condition"]], label=row["condition"],
        )  # fmt: skip
    axes.set(title="Filters by level", xlabel="level", ylabel="filters with it or more", ylim=(0, 1.03))
    axes.set_xscale("log")
    percents(axes, "y")
    legend(figure, axes)
    return svg(figure)


def reached(rows: Sequence[Row]) -> str:
    """Draw of how many subscribers all filters reach k."""
    figure, axes = blank(3.8)
    for condition, line in _by_condition(rows).items():
        axes.plot(
            [row["k"] for row in line], [row["subscribers"] for row in line], marker="o",
            color=_COLOURS[condition], label=condition,
        )  # fmt: skip
    axes.set(
        title="Subscribers all of whose filters reach k", xlabel="k", ylabel="subscribers", ylim=(0, 1.03)
    )
    percents(axes, "y")
    legend(figure, axes)
    return svg(figure)


def costs(rows: Sequence[Row]) -> str:
    """Draw the median of what generalising adds, and up to what it adds for nine of ten."""
    figure, axes = blank(3.8)
    for condition, line in _by_condition(rows).items():
        some = [row for row in line if row["added_median"] is not None]
        if some:
            middle = [row["added_median"] for row in some]
            above = [row["added_p90"] - row["added_median"] for row in some]
            axes.errorbar(
                [row["k"] for row in some], middle, yerr=[[0.0] * len(some), above], marker="o", capsize=2,
                color=_COLOURS[condition], label=condition,
            )  # fmt: skip
    axes.set(
        title="Messages in excess (median, to 90 %)", xlabel="k", ylabel="of the topic's", ylim=(0, None)
    )
    percents(axes, "y")
    legend(figure, axes)
    return svg(figure)


def wrongly(rows: Sequence[Row], condition: str) -> str:
    """Draw for one condition and k how many of the filters said to be anonymous are not, by who colludes."""
    figure, axes = blank(3.2)
    ours = [row for row in rows if row["condition"] == condition]
    for style, (cap, spread) in zip(
        "os^D", dict.fromkeys((r["cap"], r["spread"]) for r in ours), strict=False
    ):
        line = [row for row in ours if (row["cap"], row["spread"]) == (cap, spread)]
        some = [row for row in line if row["wrongly"] is not None]
        axes.plot(
            [row["colluding"] for row in some], [row["wrongly"] for row in some], marker=style,
            label=_rules(cap, spread),
        )  # fmt: skip
    axes.set(
        title=condition, xlabel="edge brokers that collude", ylabel="said to be, but not", ylim=(0, 1.03)
    )
    percents(axes, "x")
    percents(axes, "y")
    legend(figure, axes)
    return svg(figure)


def _rules(cap: int | None, spread: int | None) -> str:
    named = [f"cap {cap}"] * (cap is not None) + [f"spread {spread}"] * (spread is not None)
    return ", ".join(named) or "no rule"


def _by_condition(rows: Sequence[Row]) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(row["condition"], []).append(row)
    return found
