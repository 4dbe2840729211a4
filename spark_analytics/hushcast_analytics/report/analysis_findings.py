"""Findings: what an analysis found, as plain figures, none of which grows with the traces."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

Row = dict[str, Any]


@dataclass(frozen=True)
class SeenTree:
    """One tree, each relay with its next hop (none for the root), and which of its relays collude."""

    parents: dict[str, str | None]
    colluders: frozenset[str]
    profile: str

    @property
    def seen(self) -> frozenset[str]:
        """Those of the links' lower ends that a colluder is at one end of."""
        return frozenset(
            relay
            for relay, above in self.parents.items()
            if relay in self.colluders or above in self.colluders
        )

    @property
    def neighbours(self) -> frozenset[str]:
        """Honest relays that a colluder has a link with."""
        ends = {end for relay in self.seen for end in (relay, self.parents[relay]) if end is not None}
        return frozenset(ends & self.parents.keys()) - self.colluders

    @property
    def root_met(self) -> bool:
        """Whether a colluder stands directly below the root."""
        return any(self.parents.get(relay, relay) is None for relay in self.colluders)


@dataclass
class Findings:
    """What an analysis found."""

    MOST_DRAWN: ClassVar[int] = 600  # relays in a picture of a tree

    network: dict[str, float]
    latencies: list[Row]
    loads: list[Row]
    trees: list[SeenTree] = field(default_factory=list)
    attacks: list[Row] = field(default_factory=list)
    over_time: list[Row] = field(default_factory=list)
    central: list[Row] = field(default_factory=list)  # what parties of the central system learn
    brokers: list[Row] = field(default_factory=list)  # what colluders among brokers and clients read
    observers: list[Row] = field(default_factory=list)  # who learns what over brokers
    lines: list[Row] = field(default_factory=list)  # what an observer of daemons' lines learns
    unwatched: tuple[float, ...] = ()  # shares of the relays that are less than one of them
    draws: dict[str, int] = field(default_factory=dict)  # of who colludes, by carrier
    provenance: Row = field(default_factory=dict)  # what all of it was made from
