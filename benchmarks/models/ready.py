"""What ready connections show: attacks of relays that collude, played on the slots themselves.

`age`: whether an author subscribes, from how long the connections of 100 of its drops had been open.
`probe`: whether a drop is of a probe, and not of somebody who publishes once a day, from that of one.
`holders`: whether an author is one of those who hold slots, where others hold none.
`survivors`: how often both origins collude where others' idle connections are ended by a flood.
`start`: how sure they are which of 200 boxes is the author's, by messages half an hour after starts at most.
"""

from __future__ import annotations

import argparse
import bisect
import math
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise

from hushcast_protocol.base.versions.manner import NEWEST
from hushcast_protocol.overlay.ready_slots import NONE_READY, ReadyRule, ReadySlot, ReadySlots

HOUR = 3600.0
RELAYS = [number.to_bytes(2, "big") for number in range(500)]
DIAL = 3.0  # seconds of a first contact
FRESH = -1.0  # the age of a connection that was dialled for the drop
BINS = [FRESH + 0.5, *(minutes * 60.0 for minutes in (2, 5, 10, 15, 20, 25, 30, 40, 50, 60, 75, 90, 120))]
DROPS = 100
PROBES = NEWEST.probes_a_day / 24  # an hour
TAKEN = 2 * PROBES / HOUR  # slots a second that probes would take
BOXES, RETURNS_A_DAY = 200, 2
STARTS = (1, 2, 3, 5)  # after each of which a message is seen
SETTINGS = (ReadyRule(2, 7200.0), ReadyRule(4, 7200.0), ReadyRule(8, 7200.0), ReadyRule(8))


class Slot(ReadySlot):
    """A slot whose connection nobody ends."""

    def __init__(self, relay: bytes, opened: float, ends: float) -> None:
        super().__init__(relay, ends)
        self.opened = opened


class NeverRests(ReadyRule):
    """As a rule would be that takes slots from the start on."""

    def rest(self, share: float) -> float:
        """Return 0."""
        return 0.0


def ages(
    rule: ReadyRule, uses: Sequence[tuple[float, bool]], draw: random.Random
) -> Iterator[tuple[float, ...]]:
    """Play uses of two slots each, in order of their moments; yield the ages of those that are looked at."""
    slots: ReadySlots[Slot] = ReadySlots()
    opens, turns = rule.pause(draw.random()) if rule.slots else math.inf, rule.rest(draw.random())
    for moment, is_seen in uses:
        while turns <= moment:
            slots.rests = not slots.rests
            turns += (rule.rest if slots.rests else rule.work)(draw.random())
        while opens <= moment:
            slots.open(Slot(draw.choice(RELAYS), opens, opens + rule.stay(draw.random())))
            slots.lapse(opens)
            opens += rule.pause(draw.random())
        left, seen = set(RELAYS), []
        for _ in range(2):
            taken = slots.take(left, moment, draw.randrange)
            if taken is not None:
                left.discard(taken.relay)
            age = FRESH if taken is None else moment - taken.opened - DIAL
            seen.append(max(0.0, age) if taken is not None else FRESH)
        if is_seen:
            yield tuple(seen)


def moments(an_hour: float, hours: float, draw: random.Random) -> list[float]:
    """Return random moments (seconds)."""
    return sorted(draw.uniform(0, hours * HOUR) for _ in range(round(an_hour * hours)))


def binned(age: float) -> int:
    """Return in which bin an age is; that of a fresh connection has one of its own."""
    return bisect.bisect(BINS, age)


def accuracy(one: Sequence[float], other: Sequence[float]) -> float:
    """Return how likely a score of `one` is above one of `other`: half of it is chance (AUC)."""
    ordered = sorted(other)
    below = sum(bisect.bisect_left(ordered, each) + bisect.bisect_right(ordered, each) for each in one)
    return below / (2 * len(one) * len(other))


def told_apart(one: Sequence[float], other: Sequence[float], drops: int = DROPS) -> float:
    """Return how well authors are told apart by so many ages each, by odds learnt from half of them."""
    half = len(one) // 2
    known = [Counter(map(binned, ages[:half])) for ages in (one, other)]
    odds = [
        math.log((known[0][place] + 1) / (known[1][place] + 1) * (known[1].total() / known[0].total()))
        for place in range(len(BINS) + 1)
    ]

    def scores(ages: Sequence[float]) -> list[float]:
        rest = ages[half:]
        groups = range(0, len(rest) - drops + 1, drops)
        return [sum(odds[binned(age)] for age in rest[start : start + drops]) for start in groups]

    return accuracy(scores(one), scores(other))


def age(rule: ReadyRule, shared: bool, hours: float, draw: random.Random) -> float:
    """Return how well an author that subscribes is told from one that does not; both publish once an hour."""
    published = [(moment, True) for moment in moments(1.0, hours, draw)]
    probes = [(moment, False) for moment in moments(1.0, hours, draw)] if shared else []
    alone = [one for pair in ages(rule, published, draw) for one in pair]
    beside = [one for pair in ages(rule, sorted(published + probes), draw) for one in pair]
    return told_apart(beside, alone)


def probe(rule: ReadyRule, of_probes: ReadyRule, times: int, draw: random.Random) -> float:
    """Return how well drops of probes are told from those of somebody who publishes once a day."""
    alike = []
    for each, an_hour in ((rule, 1 / 24), (of_probes, PROBES)):
        uses = [(moment, True) for moment in moments(an_hour, times / an_hour, draw)]
        alike.append([age for pair in ages(each, uses, draw) for age in pair])
    return told_apart(alike[0], alike[1], 1)


def holders(rule: ReadyRule, drops: int, times: int, draw: random.Random) -> float:
    """Return how well authors who publish once an hour are told by some drops from those without slots."""
    uses = [(moment, True) for moment in moments(1.0, times, draw)]
    held = [age for pair in ages(rule, uses, draw) for age in pair]
    return told_apart(held, [FRESH] * len(held), drops)


def contacts(rule: ReadyRule, of_probes: ReadyRule, times: int, draw: random.Random) -> float:
    """Return how many connections a day more a client opens that probes one topic and never publishes."""
    uses = [(moment, True) for moment in moments(PROBES, times / PROBES, draw)]
    fresh = sum(age == FRESH for pair in ages(of_probes, uses, draw) for age in pair) / len(uses)
    return 24 * (HOUR * (rule.slots / rule.stays + of_probes.slots / of_probes.stays) - PROBES * (2 - fresh))


def survivors(
    rule: ReadyRule,
    colluding: float,
    flood: float,
    live_first: bool,
    draw: random.Random,
    times: int = 40_000,
) -> float:
    """Return how often both origins collude, where honest relays' rooms of 1,024 get `flood` a second."""
    bad = set(RELAYS[: round(colluding * len(RELAYS))])
    both = 0
    for _ in range(times):
        slots: ReadySlots[Slot] = ReadySlots()
        slots.rests = False
        moment = opened = -2 * rule.stays
        live: set[bytes] = set()
        while (opened := opened + rule.pause(draw.random())) < 0:
            slot = Slot(draw.choice(RELAYS), opened, opened + rule.stay(draw.random()))
            slots.open(slot)
            if slot.ends > 0 and (slot.relay in bad or draw.expovariate(flood / 1024) > -opened):
                live.add(slot.relay)
        moment, left = 0.0, set(RELAYS)
        origins = []
        for _ in range(2):
            taken = slots.take(left & live, moment, draw.randrange) if live_first else None
            taken = taken or (None if live_first else slots.take(left, moment, draw.randrange))
            relay = draw.choice(sorted(left)) if taken is None else taken.relay
            left.discard(relay)
            origins.append(relay)
        both += origins[0] in bad and origins[1] in bad
    return both / times


def start(
    rule: ReadyRule, an_hour: float, times: int, draw: random.Random, starts: Sequence[int] = (1,)
) -> list[float]:
    """Return how sure of the author's box both ages and the times of returns make the two, in the mean.

    By one message soon after each of so many starts: boxes come back by themselves.
    """
    ends = [*range(300, 1801, 300), 3600, 7200, 14_400]  # seconds since a return, and any that are more

    def seen(up: float) -> tuple[int, int]:
        before = [(moment, False) for moment in moments(an_hour, up / HOUR, draw)]
        *_, (one, other) = ages(rule, [*before, (up, True)], draw)
        first, second = sorted((binned(one), binned(other)))
        return first, second

    lasting = [0, *ends, 8 * HOUR]
    known = [Counter(seen(draw.uniform(low, high)) for _ in range(times)) for low, high in pairwise(lasting)]
    right = dict.fromkeys(starts, 0.0)
    for _ in range(times):
        odds = [1.0] * BOXES
        for number in range(1, max(starts) + 1):
            up = draw.uniform(60.0, 1800.0)
            pair = seen(up)
            since = [up, *(draw.expovariate(RETURNS_A_DAY / 86_400) for _ in range(BOXES - 1))]
            odds = [
                odd * (known[bisect.bisect_left(ends, one)][pair] + 0.5)
                for odd, one in zip(odds, since, strict=True)
            ]
            if number in right:
                right[number] += odds[0] / sum(odds)
    return [sure / times for sure in right.values()]


def print_start(slots: str, rule: ReadyRule, times: int, draw: random.Random) -> None:
    """Print how well the start of an author is seen, who publishes each hour, and once a day."""
    (daily,) = start(rule, 1 / 24, times, draw)
    pooled = zip(STARTS, start(rule, 1.0, times, draw, STARTS), strict=True)
    hourly = ", ".join(f"{sure:.1%} after {starts}" for starts, sure in pooled)
    print(f"{slots}, start: sure at one a day {daily:.1%}, at one an hour {hourly} (chance 0.5 %)")


def main() -> None:
    """Print what each attack gets."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hours", type=float, default=20_000, help="that each author publishes for")
    parser.add_argument("--times", type=int, default=4000, help="starts that are played")
    options = parser.parse_args()
    draw = random.Random(1)  # noqa: S311 - it is to be repeated
    for rule in SETTINGS:
        slots = f"{rule.slots:g} slots of {rule.stays / 60:g} minutes"
        uses = [(moment, True) for moment in moments(1.0, options.hours, draw)]
        none = sum(pair == (FRESH, FRESH) for pair in ages(rule, uses, draw)) / len(uses)
        seldom = [(moment, True) for moment in moments(1 / 24, 24 * options.times, draw)]
        once = sum(pair == (FRESH, FRESH) for pair in ages(rule, seldom, draw)) / len(seldom)
        print(f"{slots}: none ready at one publication an hour {none:.1%}, at one a day {once:.1%}")
        for shared in (False, True):
            what = "with those of probes" if shared else "apart from those of probes"
            print(f"{slots}, age, {what}: {age(rule, shared, options.hours, draw):.3f} (chance 0.5)")
        for what, of_probes in (("as many", rule), ("as many left", rule.beside(TAKEN))):
            told = probe(rule, of_probes, options.times, draw)
            more = contacts(rule, of_probes, options.times, draw)
            print(f"{slots}, {what} for probes: told {told:.3f} (chance 0.5), {more:.0f} contacts a day more")
        for drops in (1, DROPS):
            told = holders(rule, drops, options.times, draw)
            print(f"{slots}, where others hold none: told by {drops} drops {told:.3f} (chance 0.5)")
        print_start(slots, rule, options.times, draw)
    print_start("8 slots that never rest", NeverRests(8), options.times, draw)
    print_start("none ready", NONE_READY, options.times, draw)
    for colluding in (0.1, 0.2):
        for live_first in (False, True):
            what = "those that live first" if live_first else "as drawn"
            share = survivors(ReadyRule(8), colluding, 10.0, live_first, draw)
            print(f"both origins of {colluding:.0%} collude, 10 handshakes a second, {what}: {share:.2%}")


if __name__ == "__main__":
    main()
