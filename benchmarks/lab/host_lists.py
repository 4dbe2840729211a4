"""How many boxes ever have a colluding host: `python -m benchmarks.lab.host_lists [--boxes B] [--life DAYS]`.

Each owner goes by the daemons' own `HostList`, through the rosters of a network whose honest relays live for
some time and are followed by others; colluders stay. Attempts at an honest host fail by a chance: never,
in a flood of handshakes at all of them, or always.
"""

from __future__ import annotations

import argparse
import math
import random
from collections.abc import Iterator
from dataclasses import dataclass

from hushcast_protocol.base.intervals import wilson
from hushcast_protocol.overlay.host_list import Draw, HostList

PATIENCE = 7200.0  # seconds that the first host is away before the second is used: two epochs
SHARES = (0.1, 0.2)
LOOKED_AT = (14, 60)  # days
DIAL = 3.0  # seconds of a first contact, over which an owner's connection has said nothing yet
FLOOD = 10.0  # handshakes a second at each honest relay, whose room for the silent has 1,024 places
FAILURES = {"nobody attacks": 0.0, "in a flood": 1 - math.exp(-FLOOD * DIAL / 1024), "kept away": 1.0}


@dataclass(frozen=True)
class ListScenario:
    """Boxes in a network of relays, of which a share collude; each other lives `life` days in the mean."""

    boxes: int
    relays: int = 500
    share: float = 0.1
    life: float = 60.0
    hosts: int = 2
    fails: float = 0.0
    """The chance that an attempt to reach an honest host fails."""
    seed: int = 1

    def is_bad(self, relay: bytes) -> bool:
        """Tell whether a relay colludes, by its name."""
        return int.from_bytes(relay) < round(self.share * self.relays)

    def rosters(self, days: int) -> Iterator[list[bytes]]:
        """Yield the relays of each day; who goes is followed by another, which colludes no more than it."""
        rng = random.Random(self.seed)  # noqa: S311
        listed = list(range(self.relays))
        named = self.relays
        for _ in range(days):
            yield [number.to_bytes(32) for number in listed]
            for place in range(round(self.share * self.relays), self.relays):
                if rng.random() < 1 / self.life:
                    listed[place], named = named, named + 1


def days_at_colluders(asked: ListScenario, days: int) -> list[list[bool]]:
    """Return for each box of each day whether a colluding host was in use on it."""
    rosters = [(list(roster), frozenset(roster)) for roster in asked.rosters(days)]
    draws = (random.Random(f"{asked.seed} {box}") for box in range(asked.boxes))  # noqa: S311
    return [list(_at_colluders(asked, rosters, rng)) for rng in draws]


def _at_colluders(
    asked: ListScenario, rosters: list[tuple[list[bytes], frozenset[bytes]]], rng: random.Random
) -> Iterator[bool]:
    draw: Draw = lambda relays, count: rng.sample(relays, min(count, len(relays)))  # noqa: E731
    hosts = HostList.drawn(rosters[0][0], 0, draw)
    hosts = HostList(hosts.hosts[: asked.hosts])
    for day, (_, listed) in enumerate(rosters):
        if asked.hosts > 1:
            hosts = hosts.look(listed, day, draw)
        elif hosts.relays[0] not in listed:
            hosts = HostList(HostList.drawn(listed, day, draw).hosts[:1])
        first, second = hosts.relays[0], hosts.relays[-1]
        was_bad = False
        for now in (0.0, PATIENCE):
            reached = {
                relay
                for relay in hosts.relays
                if relay in listed and (asked.is_bad(relay) or rng.random() >= asked.fails)
            }
            if first in reached:
                hosts = hosts.answered(first)
            else:
                moment = day * 86400.0 + now
                hosts = hosts.failed(first, moment, PATIENCE, second != first and second in reached)
            was_bad |= hosts.current in reached and asked.is_bad(hosts.current)
        yield was_bad


def main() -> None:
    """Print a line for each kind of list, share of colluders, and chance that attempts fail."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--boxes", type=int, default=4000)
    parser.add_argument("--relays", type=int, default=500)
    parser.add_argument("--life", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=1)
    given = vars(parser.parse_args())
    for hosts in (1, 2):
        for words, fails in FAILURES.items():
            for share in SHARES:
                asked = ListScenario(**given, share=share, hosts=hosts, fails=fails)
                found = days_at_colluders(asked, max(LOOKED_AT))
                figures = []
                for end in LOOKED_AT:
                    bad = sum(any(days[:end]) for days in found)
                    low, high = wilson(bad / asked.boxes, asked.boxes)
                    figures.append(f"{end} days {bad / asked.boxes:.1%} ({low:.1%} to {high:.1%})")
                used = sum(map(sum, found)) / asked.boxes / max(LOOKED_AT)
                print(
                    f"{hosts} host(s), {words}, {share:.0%} collude: {', '.join(figures)},"
                    f" in use on {used:.1%} of all days",
                    flush=True,
                )


if __name__ == "__main__":
    main()
