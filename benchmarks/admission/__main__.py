"""Names that come over days: `python -m benchmarks.admission [--runs N]` (docs/attack-lab.md)."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

from pyspark.sql import SparkSession

from benchmarks.admission.asked import Asked
from benchmarks.admission.growth import by_day, days, honest_newcomers, reached
from hushcast_analytics.spark_session import open_session

SHARES = (0.1, 0.5)
NETWORK = Asked(runs=0, days=60, relays=1000, arriving=3.0, leaving=0.002)
CASES = {
    "no rules": replace(NETWORK, newcomers=0, age=False, names=1000),
    "cap alone": replace(NETWORK, age=False),
    "cap and age": NETWORK,
    "nobody floods": replace(NETWORK, names=0),
    "1,000 names": replace(NETWORK, names=1000),
    "100,000 names": replace(NETWORK, names=100_000),
    "work, 1 core": replace(NETWORK, work=20, cores=1.0),
    "work, 10 cores": replace(NETWORK, work=20, cores=10.0),
    "work, 50 cores": replace(NETWORK, work=20, cores=50.0),
    "nobody else comes or goes": replace(NETWORK, age=False, arriving=0.0, leaving=0.0),
}
DRAWN = ("no rules", "cap and age", "work, 50 cores", "work, 10 cores", "work, 1 core")
"""The cases in the picture."""


def table(spark: SparkSession, runs: int) -> tuple[list[str], dict[str, list[float]]]:
    """Return the lines of the page's table, and each case's mean share day by day."""
    cases = [replace(one, runs=runs) for one in CASES.values()]
    rows = days(spark, cases).cache()
    when = {share: {row["which"]: row for row in reached(rows, share).collect()} for share in SHARES}
    shares = {(row["which"], row["day"]): row for row in by_day(rows).collect()}
    honest = {row["which"]: row for row in honest_newcomers(rows).collect()}
    lines = []
    for which, (name, one) in enumerate(CASES.items()):
        moments = []
        for share in SHARES:
            row = when[share].get(which)
            moments.append("never" if row is None or row["runs"] < runs / 2 else f"{row['after']:.1f}")
        end = shares[which, one.days - 1]
        of = honest[which]
        delay = "–" if of["delay"] is None else f"{of['delay']:.1f}"
        lines.append(
            f"| {name} | {one.cap} | {' | '.join(moments)} | {end['share']:.1%} "
            f"({end['low']:.1%} to {end['high']:.1%}) | {of['seated']:.0f} of {one.arriving * one.days:.0f} "
            f"| {delay} |"
        )
    curves = {
        name: [shares[which, day]["share"] for day in range(one.days)]
        for which, (name, one) in enumerate(CASES.items())
    }
    return lines, curves


def draw(curves: dict[str, list[float]], file: Path) -> None:
    """Draw the shares over days as SVG."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "hushcast"  # the same picture has the same bytes
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.8, 3.2), layout="constrained")
    axes = figure.add_subplot()
    for name in DRAWN:
        curve = curves[name]
        axes.plot(range(1, len(curve) + 1), [100 * share for share in curve], label=name, linewidth=1.4)
    axes.axhline(10, color="0.78", linewidth=0.8)
    axes.axhline(50, color="0.78", linewidth=0.8)
    axes.set_xlabel("days")
    axes.set_ylabel("seats of one adversary, %")
    axes.legend(fontsize=7, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3)
    figure.savefig(file, format="svg", metadata={"Date": None})


def main() -> None:
    """Print the table, and draw the picture if it is asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.admission", description=__doc__)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--picture", type=Path)
    asked = parser.parse_args()
    lines, curves = table(open_session(asked.master, "admission"), asked.runs)
    sys.stdout.write("\n".join(lines) + "\n")
    if asked.picture is not None:
        draw(curves, asked.picture)


if __name__ == "__main__":
    main()
