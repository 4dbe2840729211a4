"""What Tor takes, as measured on a private Tor: delays, and the CPU of a daemon's tor.

`benchmarks.tor.tor_costs` measured it on one machine of two cores that did little else. Circuits are real,
lines are loopback: through the public network delays are longer by what lies between its relays. So they were
measured where a proxy keeps tors apart, too.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean, linear_regression, median, median_high
from typing import Any

CELL = 514  # bytes on the line
CELL_HOLDS = 498  # bytes of a stream
DELAYS = ("connect_seconds", "one_way_seconds", "publish_seconds")


@dataclass(frozen=True)
class LinearCost:
    """A cost that grows with a number: `first` + `each` times it."""

    first: float
    each: float

    def __call__(self, count: int) -> float:
        """Return the cost."""
        return self.first + self.each * count


@dataclass(frozen=True)
class DelaysApart:
    """The same delays as `TorWork` has, where tors were so many milliseconds apart, one way."""

    ms: int
    connect_seconds: tuple[float, ...]
    one_way_seconds: tuple[float, ...]
    publish_seconds: tuple[float, ...]


@dataclass(frozen=True)
class TorWork:
    """Delays to draw from, in seconds, and CPU seconds of a tor."""

    connect_seconds: tuple[float, ...]
    """To open a connection to an onion service, with nothing else going on."""
    one_way_seconds: tuple[float, ...]
    """Half of a round trip over an open one."""
    publish_seconds: tuple[float, ...]
    """From a new onion service to its descriptor being there."""
    open_cpu: LinearCost
    """Of the tor that connects, by the circuits that it opened before and holds: it looks through them.

    Those that it accepted do not matter.
    """
    accept_cpu: float
    """Of the service's tor."""
    alone_cpu: float
    """Of both for a connection that is alone: it is within `connect_seconds`."""
    publish_cpu: float
    send_cpu: LinearCost
    """Of the tor that sends, by the cells of one write."""
    receive_cpu: LinearCost
    apart: DelaysApart

    def at(self, ms: int) -> TorWork:
        """Return the same at a distance between tors, in milliseconds one way.

        What the measured distance adds to the median here grows with the distance: it is waiting for ways.
        """
        if ms == 0:
            return self

        def stretched(name: str) -> tuple[float, ...]:
            near = median(getattr(self, name))
            return tuple(
                near + (seconds - near) * ms / self.apart.ms for seconds in getattr(self.apart, name)
            )

        delays: dict[str, Any] = {name: stretched(name) for name in DELAYS}
        return replace(self, **delays)

    def describe(self) -> dict[str, Any]:
        """Return the figures for people and programs, in seconds."""
        return {
            "open_cpu": self.open_cpu(0),
            "open_cpu_for_each_circuit_held": self.open_cpu.each,
            "accept_cpu": self.accept_cpu,
            "publish_cpu": self.publish_cpu,
            "send_cpu_a_write": self.send_cpu.first,
            "send_cpu_a_cell": self.send_cpu.each,
            "receive_cpu_a_write": self.receive_cpu.first,
            "receive_cpu_a_cell": self.receive_cpu.each,
            "connect_median": median_high(self.connect_seconds),
            "one_way_median": median_high(self.one_way_seconds),
            "publish_median": median_high(self.publish_seconds),
        }


def measured() -> TorWork:
    """Return what was measured for this version."""
    return read_work(json.loads(Path(__file__).with_suffix(".json").read_text()))


def read_work(found: dict[str, Any]) -> TorWork:
    """Read what `benchmarks.tor.tor_costs` wrote."""
    held = [int(count) for count in found["together_cpu"]]
    # Those opened while so many were held: on average as many as half way.
    middles = [(before + count) / 2 for before, count in zip([0, *held], held, strict=False)]
    each = list(found["together_cpu"].values())
    sizes = [-(-int(size) // CELL_HOLDS) for size in found["frame_cpu"]]
    frames = list(found["frame_cpu"].values())
    return TorWork(
        tuple(found["connect_seconds"]),
        tuple(found["one_way_seconds"]),
        tuple(found["publish_seconds"]),
        _fitted(middles, [connecting for _, connecting in each]),
        fmean(serving for serving, _ in each),
        sum(each[0]),
        found["publish_cpu"],
        _fitted(sizes, [connecting for _, connecting in frames]),
        _fitted(sizes, [serving for serving, _ in frames]),
        DelaysApart(found["apart"]["ms"], *(tuple(found["apart"][name]) for name in DELAYS)),
    )


def _fitted(x: list[float] | list[int], y: list[float]) -> LinearCost:
    """Return the line of least squares, flat where it would fall."""
    slope, first = linear_regression(x, y)
    return LinearCost(max(0.0, first), slope) if slope > 0 else LinearCost(fmean(y), 0.0)
