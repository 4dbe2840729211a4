"""Coverage of one subscription: its probes and their outcome, and what it received and missed lately."""

from __future__ import annotations

from collections import OrderedDict, deque
from dataclasses import dataclass, field
from typing import Any

from hushcast_protocol.attributes import Values
from hushcast_protocol.coverage import Probe, interval, suspects
from hushcast_protocol.reports import Heard
from hushcast_protocol.wire import RelayId

MAX_PROBES = 8192  # outcomes remembered for one subscription: four for each relay of a full roster; 2 MB
MAX_SHUNNED = 0.25  # share of the relays; no network with more bad ones would work anyway
MAX_RECENT = 256  # messages received lately, of which reports name some
MAX_GAPS = 4096  # missed messages remembered, so that each is told once; 0.5 MB


@dataclass(frozen=True)
class _UnderWay:
    way: tuple[RelayId, ...]
    sent: float


@dataclass(frozen=True)
class _Recent:
    id: bytes
    time: float
    values: Values


@dataclass(eq=False)
class Coverage:
    """What one subscriber knows of how much of the network reaches it."""

    whole_since: float | None = None
    """Unix seconds since which the subscription is ready without a break."""
    _under_way: dict[bytes, _UnderWay] = field(default_factory=dict)
    _outcomes: deque[Probe] = field(default_factory=lambda: deque(maxlen=MAX_PROBES))
    _recent: deque[_Recent] = field(default_factory=lambda: deque(maxlen=MAX_RECENT))
    _gaps: OrderedDict[bytes, None] = field(default_factory=OrderedDict)
    _tree_since: float = 0.0
    _suspects: list[RelayId] | None = None

    def sent(self, message: bytes, way: tuple[RelayId, ...], now: float) -> None:
        """Note a probe that is being dropped."""
        self._under_way[message] = _UnderWay(way, now)

    def withdraw(self, message: bytes) -> None:
        """Forget a probe for which its origin gave no receipt."""
        self._under_way.pop(message, None)

    def arrived(self, message: bytes) -> None:
        """Note that a probe came; those of others, and late ones, do not count."""
        if (probe := self._under_way.pop(message, None)) is not None:
            self._conclude(Probe(probe.way, True, probe.sent))

    def give_up(self, before: float) -> None:
        """Count the probes as lost that were sent before a moment and are still not there."""
        for message in [name for name, probe in self._under_way.items() if probe.sent < before]:
            probe = self._under_way.pop(message)
            self._conclude(Probe(probe.way, False, probe.sent))

    def _conclude(self, probe: Probe) -> None:
        self._outcomes.append(probe)
        self._suspects = None

    def tree_changed(self, now: float) -> None:
        """Note that ways changed: from now on the share is that of the new tree."""
        self._tree_since = now

    def suspects(self) -> list[RelayId]:
        """Return the relays that seem to lose messages, the surest first."""
        if self._suspects is None:
            self._suspects = suspects(self._outcomes)
        return self._suspects

    def shunned(self, relays: int) -> list[RelayId]:
        """Return the suspects among so many relays that trees and publications avoid.

        Where they are many, nobody: it is then more likely that this daemon's own end is at fault.
        """
        found = self.suspects()
        return found if len(found) <= MAX_SHUNNED * relays else []

    def describe(self) -> dict[str, Any]:
        """Return the share of origins that reach the subscription, its 95 % interval, and the suspects."""
        counted = [probe.arrived for probe in self._outcomes if probe.sent >= self._tree_since]
        arrived, probes = sum(counted), len(counted)
        low, high = interval(arrived, probes)
        return {
            "probes": probes,
            "share": round(arrived / probes, 4) if probes else None,
            "low": round(low, 4),
            "high": round(high, 4),
            "suspects": [relay.hex() for relay in self.suspects()],
        }

    def received(self, message: bytes, now: float, values: Values) -> None:
        """Note a message, to report it to other subscribers."""
        self._recent.append(_Recent(message, now, values))

    def heard(self, now: float, settled: float) -> list[Heard]:
        """Return the messages received at least `settled` seconds ago, the newest first."""
        return [
            Heard(recent.id, int(now - recent.time), dict(recent.values))
            for recent in reversed(self._recent)
            if now - recent.time >= settled
        ]

    def new_gaps(self, ids: list[bytes]) -> list[bytes]:
        """Return those of some missed messages that were not told yet, and remember them."""
        new = [message for message in ids if message not in self._gaps]
        for message in new:
            self._gaps[message] = None
            if len(self._gaps) > MAX_GAPS:
                self._gaps.popitem(last=False)
        return new
