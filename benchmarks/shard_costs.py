"""What subscriptions cost by the number of relays: `python -m benchmarks.shard_costs PICTURE`.

Lines are what the protocol's own functions say, with shards of 500 relays and without. Marks are the rows of
`shard_costs.csv`, each with its source: *measured* where real daemons ran, *simulated* where Spark drew.
"""

from __future__ import annotations

import argparse
import csv
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from hushcast_protocol.base.epochs import EPOCHS_A_DAY
from hushcast_protocol.base.shard_count import MAX_BITS, SHARD_SIZE, bits_for
from hushcast_protocol.shards.cost import topic_day

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

ROWS = Path(__file__).with_name("shard_costs.csv")
SUBSCRIPTIONS = 0.01  # for each relay: a hundred at 10,000 relays, as in `docs/performance.md`
FEWEST, MOST = 100, 1_000_000  # relays
_STEPS = 24  # of the lines, beside the two ends of each jump
_MARKS = {"measured": "o", "simulated": "^"}
_COLOURS = ("#00798c", "#d1495b", "#edae49")


@dataclass(frozen=True)
class Row:
    """One figure of a network that ran, or was drawn."""

    figure: str
    """Which panel: a key of `FIGURES`."""
    relays: int
    shard_size: int
    """Relays of a shard in the mean that were asked for; 0: without shards."""
    kind: str
    """`measured` or `simulated`."""
    value: float
    source: str
    """What was run, or the page that says so."""


def _bytes(relays: float, bits: int) -> float:
    cost = topic_day(bits)
    if bits:
        return cost.bytes(_reached(relays, bits))
    # A network that is not cut has a roster of all relays each epoch, whatever is subscribed to.
    return EPOCHS_A_DAY * (cost.a_relay - EPOCHS_A_DAY) * relays


def _reached(relays: float, bits: int) -> float:
    return relays / (1 << bits)


def _leases(relays: float, bits: int) -> float:
    return SUBSCRIPTIONS * _reached(relays, bits)


def _links(relays: float, bits: int) -> float:
    """Return the expected peers: a lease has a hop above and is one below, each drawn among all reached."""
    reached = _reached(relays, bits)
    return reached * -math.expm1(2 * _leases(relays, bits) * math.log1p(-1 / reached))


FIGURES: dict[str, tuple[str, Callable[[float, int], float]]] = {
    "bytes": ("bytes of a client, a day and topic", _bytes),
    "leases": ("leases of a relay, a subscription for 100 relays", _leases),
    "links": ("links of a relay, a subscription for 100 relays", _links),
    "installs": ("relays that install a subscription", _reached),
}
"""By panel: what its axis says, and the value for so many relays in 2^k shards."""


def read(file: Path = ROWS) -> list[Row]:
    """Return the rows of a file; raise `ValueError` for one that no panel can show."""
    with file.open(newline="") as lines:
        rows = [
            Row(
                row["figure"],
                int(row["relays"]),
                int(row["shard_size"]),
                row["kind"],
                float(row["value"]),
                row["source"],
            )
            for row in csv.DictReader(lines)
        ]
    for row in rows:
        if row.figure not in FIGURES or row.kind not in _MARKS or not row.source or row.value <= 0:
            raise ValueError(f"{file.name}: no panel shows {row}")
    return rows


def curve(figure: str, shard_size: int) -> tuple[list[int], list[float]]:
    """Return numbers of relays, and what the figure is for each; a size of 0 is without shards."""
    evenly = {round(FEWEST * (MOST / FEWEST) ** (step / _STEPS)) for step in range(_STEPS + 1)}
    # Where one relay more doubles the shards.
    jumps = (
        {math.isqrt(shard_size**2 * 2 ** (2 * bits + 1)) for bits in range(MAX_BITS)} if shard_size else set()
    )
    jumps = {last for last in jumps if FEWEST <= last < MOST}
    relays = sorted(evenly | jumps | {last + 1 for last in jumps})
    value = FIGURES[figure][1]
    return relays, [value(n, bits_for(n, shard_size) if shard_size else 0) for n in relays]


def draw(rows: Sequence[Row], file: Path) -> None:
    """Draw the four panels as SVG."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "hushcast"  # the same picture has the same bytes
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.6, 5.6), layout="constrained")
    sizes = sorted({SHARD_SIZE, 0, *(row.shard_size for row in rows)}, key=lambda size: (size == 0, -size))
    colours = dict(zip(sorted(sizes, reverse=True), _COLOURS, strict=False))
    for axes, name in zip(figure.subplots(2, 2, sharex=True).flat, FIGURES, strict=True):
        _panel(axes, name, [row for row in rows if row.figure == name], colours)
    figure.supxlabel("relays of the network", fontsize=9)
    told: dict[str, Artist] = {}
    for axes in figure.axes:
        handles, labels = axes.get_legend_handles_labels()
        told |= dict(zip(labels, handles, strict=True))
    figure.legend(list(told.values()), list(told), fontsize=7, loc="outside upper center", ncols=3)
    figure.savefig(file, format="svg", metadata={"Date": None})


def _panel(axes: Axes, name: str, rows: Sequence[Row], colours: dict[int, str]) -> None:
    for size, line in ((SHARD_SIZE, "-"), (0, "--")):
        label = f"{_named(size)}, calculated"
        axes.plot(*curve(name, size), line, color=colours[size], linewidth=1.4, label=label)

    def family(row: Row) -> tuple[str, int]:
        return row.kind, row.shard_size

    for (kind, size), group in groupby(sorted(rows, key=family), family):
        some = list(group)
        axes.plot(
            [row.relays for row in some], [row.value for row in some], _MARKS[kind], markersize=5,
            color=colours[size], markerfacecolor="none", label=f"{_named(size)}, {kind}",
        )  # fmt: skip
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_title(FIGURES[name][0], fontsize=9)
    axes.minorticks_off()
    axes.tick_params(labelsize=8)
    axes.grid(visible=True, color="0.9", linewidth=0.6)


def _named(size: int) -> str:
    return f"shards of {size} relays" if size else "without shards"


def main() -> None:
    """Draw the picture."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.shard_costs", description=__doc__)
    parser.add_argument("picture", type=Path)
    parser.add_argument("--rows", type=Path, default=ROWS, metavar="FILE")
    asked = parser.parse_args()
    draw(read(asked.rows), asked.picture)


if __name__ == "__main__":
    main()
