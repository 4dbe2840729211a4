"""Subscribers come and go at random at an edge broker; what it shows outside is recounted from the record.

    python tests/protocol/exposing.py [EVENTS] [SEED]

runs it for long, for each condition and each way out: 100,000 events of each unless told otherwise.
"""

from __future__ import annotations

import sys
from collections import Counter
from itertools import product
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).parent))

from filter_examples import TOPICS, Brute, drawn

from hushcast_protocol.brokers.conditions import Condition, Otherwise
from hushcast_protocol.brokers.exposure import OPEN, Changes, Exposure, Name
from hushcast_protocol.brokers.filters import Filter, covers
from hushcast_protocol.brokers.frames import Terms

WAYS: tuple[Otherwise, ...] = ("refuse", "wait", "generalise", "bogus")
MOST = 24  # subscriptions at once
SUBSCRIBERS = 8
LOOKED_AT = 4  # that wait, after each event


class Outside:
    """What has left the broker, and by its own record of who is there, whether it may."""

    def __init__(self, minimum: Terms) -> None:
        self._minimum = minimum
        self.there: dict[Name, tuple[Filter, Terms]] = {}
        self.shown: set[Filter] = set()  # but for what something else outside covers
        self.bogus: dict[Name, int] = {}
        self.counts: Counter[str] = Counter()

    def hear(self, changes: Changes) -> None:
        """Take what the broker says."""
        roots = changes.roots
        assert not roots.shown & roots.withdrawn
        assert not roots.shown & self.shown
        assert roots.withdrawn <= self.shown
        self.shown |= roots.shown
        self.shown -= roots.withdrawn
        self.bogus |= changes.bogus
        self.counts["shown"] += len(roots.shown)
        self.counts["withdrawn"] += len(roots.withdrawn)

    def check(self, exposure: Exposure) -> None:
        """Fail if a filter is outside that nobody's terms allow."""
        assert self.shown == {
            one for one in exposure.shown if not any(covers(other, one) for other in exposure.shown - {one})
        }
        assert {name: bogus for name, bogus in self.bogus.items() if bogus} == {
            name: standing.bogus
            for name in self.there
            if (standing := exposure.standing(*name)) is not None and standing.bogus
        }
        brute = Brute()
        for (source, _), (one, _) in self.there.items():
            brute.insert(one, source)
        for shown in exposure.shown:
            assert any(
                self._may(brute, name, shown) for name, (one, _) in self.there.items() if covers(shown, one)
            ), "a filter below its k is shown outside"

    def _may(self, brute: Brute, name: Name, shown: Filter) -> bool:
        """Tell whether one subscription's terms, and the broker's, allow it to be shown."""
        one, terms = self.there[name]
        demands = [each for each in (terms, self._minimum) if each.k > 1]
        otherwise = (terms if terms.k > 1 else self._minimum).otherwise
        if shown != one and (otherwise != "generalise" or not demands):
            return False
        bogus = self.bogus.get(name, 0) if otherwise == "bogus" else 0
        return all(level_outside(brute, one, shown, each.condition) + bogus >= each.k for each in demands)


def level_outside(brute: Brute, one: Filter, shown: Filter, condition: Condition) -> int:
    """The level of what is shown in place of a filter, as the paper defines it."""
    if shown == one:
        return brute.level(one, condition)
    if condition is Condition.SOURCE:
        return len(brute.sources(each for each in brute.held if covers(shown, each)))
    beside = Brute()
    beside.held = {each: set(sources) for each, sources in brute.held.items()}
    beside.held.setdefault(shown, set()).update(brute.held[one])
    return beside.level(shown, condition)


def play(
    random: Random, events: int, condition: Condition, way: Otherwise, minimum: Terms = OPEN
) -> Counter[str]:
    """Let subscribers come and go; fail at the first event after which too much is outside."""
    exposure, outside = Exposure(minimum), Outside(minimum)
    topics = TOPICS[:3]
    for event in range(events):
        if outside.there and random.random() < len(outside.there) / MOST / 2:
            name = random.choice(list(outside.there))
            if random.random() < 0.1:
                changes = exposure.forget(name[0])
                outside.there = {each: value for each, value in outside.there.items() if each[0] != name[0]}
            else:
                changes = exposure.unsubscribe(*name)
                del outside.there[name]
        else:
            known = [one for one, _ in outside.there.values()]
            one = random.choice(known) if known and random.random() < 0.4 else drawn(random, topics)
            terms = Terms(random.choice((1, 2, 3, 3, 5)), condition, way)
            name = (random.randrange(SUBSCRIBERS), event.to_bytes(16, "big"))
            if outside.there and random.random() < 0.1:
                name = random.choice(list(outside.there))
            changes = exposure.subscribe(*name, one, terms)
            outside.there.pop(name, None)
            if exposure.standing(*name) is None:
                outside.counts["refused"] += 1
            else:
                outside.there[name] = (one, terms)
        outside.hear(changes)
        outside.check(exposure)
        outside.hear(exposure.advance(LOOKED_AT))
        outside.check(exposure)
        assert len(exposure) == len(outside.there)
    return outside.counts


if __name__ == "__main__":
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    for condition, way in product(Condition, WAYS):
        counts = play(Random(seed), count, condition, way)
        print(f"{condition}, {way}: {count:,} events, {dict(counts)}", flush=True)
