"""Subscribers come and go at random at an edge broker; what it shows outside is recounted from the record.

    python tests/protocol/brokers/exposing.py [EVENTS] [SEED]

runs it for long, for each condition and each way out: 100,000 events of each unless told otherwise.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Set
from itertools import product
from random import Random
from typing import Any

from filter_examples import TOPICS, Brute, drawn

from hushcast_protocol.brokers.anonymity_conditions import AnonymityCondition, Fallback
from hushcast_protocol.brokers.bogus_filters import bogus_beside
from hushcast_protocol.brokers.edge_subscriptions import BogusMeans, ExposureChanges, SubscriptionKey
from hushcast_protocol.brokers.exposure import OPEN, Exposure
from hushcast_protocol.brokers.filters import Filter, Source, covers
from hushcast_protocol.brokers.frames import AnonymityTerms
from hushcast_protocol.brokers.network_crowd import SubscriptionGroup

WAYS: tuple[Fallback, ...] = ("refuse", "wait", "generalise", "bogus")
MOST = 24  # subscriptions at once
SUBSCRIBERS = 8


class Oracle:
    """Knows of some filters that they are anonymous, as long as it does. Implements `NetworkCrowd`."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self.known: dict[tuple[Filter, AnonymityCondition], int] = {}

    def says(self, shown: Filter, condition: AnonymityCondition, k: int, own: Set[Source]) -> bool:
        assert own
        return self.known.get((shown, condition), 0) >= k

    def has_sunk(self, group: SubscriptionGroup) -> bool:
        return self._random.random() < 0.5

    def wider(self, group: SubscriptionGroup, own: Set[Source]) -> Filter | None:
        found = [one for one, _ in self.known if covers(one, group.filter)]
        return self._random.choice(found) if found else None

    def turn(self, exposure: Exposure, known: list[Filter]) -> ExposureChanges:
        """Learn something about one filter, or forget everything."""
        if not known or self._random.random() < 0.2:
            self.known.clear()
        else:
            given, condition = self._random.choice(known), self._random.choice(list(AnonymityCondition))
            sides = tuple(one if self._random.random() < 0.8 else None for one in given.sides)
            self.known[Filter(given.topic, sides), condition] = self._random.randrange(6)
        list(exposure.wishes())
        return exposure.review(set(TOPICS))


class Outside:
    """What has left the broker, and by its own record of who is there, whether it may."""

    def __init__(self, minimum: AnonymityTerms, oracle: Oracle | None = None) -> None:
        self._minimum = minimum
        self._oracle = oracle
        self.there: dict[SubscriptionKey, tuple[Filter, AnonymityTerms]] = {}
        self.away: set[Source] = set()
        self.shown: set[Filter] = set()  # but for what something else outside covers
        self.covered: set[Filter] = set()  # these travel besides
        self.bogus: dict[SubscriptionKey, int] = {}
        self.counts: Counter[str] = Counter()

    def hear(self, changes: ExposureChanges) -> None:
        """Take what the broker says."""
        roots = changes.roots
        assert not roots.shown & roots.withdrawn
        assert not roots.shown & self.shown
        assert roots.withdrawn <= self.shown
        self.shown |= roots.shown
        self.shown -= roots.withdrawn
        assert not roots.covered & self.covered
        assert roots.uncovered <= self.covered
        self.covered = self.covered - roots.uncovered | roots.covered
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
        for (source, _), (one, terms) in self.there.items():
            if source not in self.away:
                brute.insert(one, (source, max(terms.k, self._minimum.k)))
        for shown in exposure.shown:
            assert any(
                self._may(brute, name, shown) for name, (one, _) in self.there.items() if covers(shown, one)
            ), "a filter below its k is shown outside"
        self._check_made_up(exposure)

    def _check_made_up(self, exposure: Exposure) -> None:
        """Fail if bogus filters and sources are not enough in the eyes of whoever is above and counts."""
        seen = Brute()
        seen.held = {
            one: {*sources, *(("nobody", at) for at in range(bogus))}
            for one, (sources, bogus) in exposure.behind_shown().items()
            if one in self.shown | self.covered
        }
        known = self._oracle.known if self._oracle is not None else {}
        covered = set[Filter]()
        for one, terms in self.there.values():
            demands = self._demands(terms)
            if not demands or self._otherwise(one, terms) != "bogus":
                continue
            beside = bogus_beside(one, [each.condition for each in demands])
            assert beside is not None
            covered |= set(beside.covered(one))
            for each in demands:
                enough = seen.level(one, each.condition) >= each.k
                is_own_seen = one in seen.held or each.condition is not AnonymityCondition.SOURCE
                assert enough or not is_own_seen or known.get((one, each.condition), 0) >= each.k
        assert covered == self.covered, "what travels though it is covered follows from who asks alone"

    def _may(self, brute: Brute, name: SubscriptionKey, shown: Filter) -> bool:
        """Tell whether one subscription's terms, and the broker's, allow it to be shown."""
        one, terms = self.there[name]
        demands = self._demands(terms)
        otherwise = self._otherwise(one, terms)
        if otherwise == "bogus" and demands:
            beside = bogus_beside(one, [each.condition for each in demands])
            return beside is not None and shown in (one, beside.wider)
        if shown != one and (otherwise != "generalise" or not demands):
            return False
        known = self._oracle.known if self._oracle is not None else {}
        most = max([each.k for each in demands], default=1)
        own = {
            source
            for (source, _), (other, asked) in self.there.items()
            if other == one and self._demands(asked) == demands and self._otherwise(one, asked) == otherwise
        }
        open_ones = among(brute, lambda at, asker: asker[1] == 1 or (at == one and asker[0] in own))
        hiding = among(brute, lambda at, asker: asker[1] <= most)

        def level(each: AnonymityTerms) -> int:
            there = behind_outside(hiding, one, shown, each.condition)
            hidden = len({source for source, k in there if k > 1})
            first = len(dict(behind_outside(open_ones, one, shown, each.condition)))
            return max(first, hidden if hidden >= most else 0)

        return all(
            level(each) >= each.k or known.get((shown, each.condition), 0) >= each.k for each in demands
        )

    def _demands(self, terms: AnonymityTerms) -> set[AnonymityTerms]:
        return {AnonymityTerms(one.k, one.condition, "wait") for one in (terms, self._minimum) if one.k > 1}

    def _otherwise(self, one: Filter, terms: AnonymityTerms) -> Fallback:
        found = (terms if terms.k > 1 else self._minimum).otherwise
        is_bogus = found == "bogus" and bogus_beside(one, [each.condition for each in self._demands(terms)])
        return "wait" if found == "bogus" and not is_bogus else found


def behind_outside(brute: Brute, one: Filter, shown: Filter, condition: AnonymityCondition) -> set[Any]:
    """The sources of what is shown in place of a filter, as the paper defines them."""
    if shown == one:
        return brute.behind(one, condition)
    if condition is AnonymityCondition.SOURCE:
        return brute.sources(each for each in brute.held if covers(shown, each))
    beside = Brute()
    beside.held = {each: set(sources) for each, sources in brute.held.items()}
    beside.held.setdefault(shown, set()).update(brute.held.get(one, ()))
    return beside.behind(shown, condition)


def among(brute: Brute, is_there: Callable[[Filter, Any], bool]) -> Brute:
    """Some of the filters that are there, with some of their sources."""
    found = Brute()
    for one, sources in brute.held.items():
        for source in sources:
            if is_there(one, source):
                found.insert(one, source)
    return found


def play(
    random: Random,
    events: int,
    condition: AnonymityCondition,
    way: Fallback,
    minimum: AnonymityTerms = OPEN,
    is_told: bool = False,
) -> Counter[str]:
    """Let subscribers come and go; fail at the first event after which too much is outside.

    `is_told`: something is known of the whole network, now this and now that.
    """
    oracle = Oracle(random) if is_told else None
    exposure = Exposure(minimum, oracle, BogusMeans(sources=True))
    outside = Outside(minimum, oracle)
    topics = TOPICS[:3]
    for event in range(events):
        if outside.there and random.random() < len(outside.there) / MOST / 2:
            name = random.choice(list(outside.there))
            if random.random() < 0.1:
                changes = exposure.forget(name[0])
                outside.away.discard(name[0])
                outside.there = {each: value for each, value in outside.there.items() if each[0] != name[0]}
            else:
                changes = exposure.unsubscribe(*name)
                del outside.there[name]
        elif random.random() < 0.1:
            source = random.randrange(SUBSCRIBERS)
            changes = exposure.note_there(source, source in outside.away)
            outside.away ^= {source}
        else:
            known = [one for one, _ in outside.there.values()]
            one = random.choice(known) if known and random.random() < 0.4 else drawn(random, topics)
            terms = AnonymityTerms(random.choice((1, 2, 3, 3, 5)), condition, way)
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
        if oracle is not None:
            outside.hear(oracle.turn(exposure, [one for one, _ in outside.there.values()]))
            outside.check(exposure)
        outside.hear(exposure.advance())
        outside.check(exposure)
        assert len(exposure) == len(outside.there)
    return outside.counts


if __name__ == "__main__":
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    for condition, way in product(AnonymityCondition, WAYS):
        for is_told in (False, True):
            counts = play(Random(seed), count, condition, way, is_told=is_told)
            known = ", with what is known of the whole network" if is_told else ""
            print(f"{condition}, {way}{known}: {count:,} events, {dict(counts)}", flush=True)
