"""How many boxes ever have a colluding host: `python -m benchmarks.lab.host_lists [--boxes B] [--life DAYS]`.

Each owner goes by the daemons' own `HostList`, through the rosters of a network whose honest relays live for
some time and are followed by others; colluders stay. Attacked, no owner ever reaches an honest host.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator
from dataclasses import dataclass

from hushcast_protocol.base.intervals import wilson
from hushcast_protocol.overlay.host_list import Draw, HostList

PATIENCE = 7200.0  # seconds that the first host is away before the second is used: two epochs
SHARES = (0.1, 0.2)
LOOKED_AT = (14, 60)  # days


@dataclass(frozen=True)
class ListScenario:
    """Boxes in a network of relays, of which a share collude; each other lives `life` days in the mean."""

    boxes: int
    relays: int = 500
    share: float = 0.1
    life: float = 60.0
    hosts: int = 2
    is_attacked: bool = False
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


def met(asked: ListScenario, days: int) -> list[int | None]:
    """Return for each box the day from which on a colluding host was in use, `None` where none ever was."""
    rosters = [(list(roster), frozenset(roster)) for roster in asked.rosters(days)]
    draws = (random.Random(f"{asked.seed} {box}") for box in range(asked.boxes))  # noqa: S311
    return [_first_met(asked, rosters, rng) for rng in draws]


def _first_met(
    asked: ListScenario, rosters: list[tuple[list[bytes], frozenset[bytes]]], rng: random.Random
) -> int | None:
    draw: Draw = lambda relays, count: rng.sample(relays, min(count, len(relays)))  # noqa: E731
    hosts = HostList.drawn(rosters[0][0], 0, draw)
    hosts = HostList(hosts.hosts[: asked.hosts])
    for day, (_, listed) in enumerate(rosters):
        if asked.hosts > 1:
            hosts = hosts.look(listed, day, draw)
        elif hosts.relays[0] not in listed:
            hosts = HostList(HostList.drawn(listed, day, draw).hosts[:1])
        reached = {
            relay
            for relay in hosts.relays
            if relay in listed and (asked.is_bad(relay) or not asked.is_attacked)
        }
        first, second = hosts.relays[0], hosts.relays[-1]
        for now in (0.0, PATIENCE):
            moment = day * 86400.0 + now
            if first in reached:
                hosts = hosts.answered(first)
            else:
                hosts = hosts.failed(first, moment, PATIENCE, second != first and second in reached)
        if hosts.current in reached and asked.is_bad(hosts.current):
            return day
    return None


def main() -> None:
    """Print a line for each kind of list and share of colluders."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--boxes", type=int, default=4000)
    parser.add_argument("--relays", type=int, default=500)
    parser.add_argument("--life", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=1)
    given = vars(parser.parse_args())
    for hosts in (1, 2):
        for is_attacked in (False, True):
            for share in SHARES:
                asked = ListScenario(**given, share=share, hosts=hosts, is_attacked=is_attacked)
                found = met(asked, max(LOOKED_AT))
                figures = []
                for end in LOOKED_AT:
                    bad = sum(day is not None and day < end for day in found)
                    low, high = wilson(bad / asked.boxes, asked.boxes)
                    figures.append(f"{end} days {bad / asked.boxes:.1%} ({low:.1%} to {high:.1%})")
                words = "kept away" if is_attacked else "nobody attacks"
                print(f"{hosts} host(s), {words}, {share:.0%} collude: {', '.join(figures)}", flush=True)


if __name__ == "__main__":
    main()
