"""Clients of three edge brokers come and go; what these show by the service's answers is recounted.

    python tests/protocol/brokers/network_levels.py [EVENTS] [SEED]

runs it for long, for each condition: 2,000 events of each unless told otherwise. No message travels here:
what is said arrives at once, so that all that is late is what brokers and service are late by themselves.
"""

from __future__ import annotations

import sys
from collections import Counter
from random import Random

from filter_examples import Brute
from tomography_examples import CAP, KEYS, NETWORK, NOW, SEEDS, SERVICE, WHOLE, drawn_sides, tree

from hushcast_protocol.base.errors import Refusal
from hushcast_protocol.brokers.anonymity_conditions import AnonymityCondition, Fallback
from hushcast_protocol.brokers.exposure import Exposure
from hushcast_protocol.brokers.filters import Filter, Source, covers
from hushcast_protocol.brokers.frames import AnonymityTerms
from hushcast_protocol.brokers.network_crowd import SubscriptionGroup
from hushcast_protocol.brokers.tomography.broker_statements import BogusSource, BrokerStatements, Client
from hushcast_protocol.brokers.tomography.crowd_watch import CrowdWatch
from hushcast_protocol.brokers.tomography.frames import AskReply, Unwatch
from hushcast_protocol.brokers.tomography.stated_filters import StatedFilters
from hushcast_protocol.brokers.tomography.tomography_service import AnswerTimes, TomographyService
from hushcast_protocol.brokers.tomography.tree_paths import between

EVERY = 5.0  # seconds between the moments at which all speak
LATE = 3  # such moments after which what others' leaving made wrong is right again: one for each edge broker
EDGES, SUBSCRIBERS, MOST = "abe", 5, 24


class EdgeBroker:
    """An edge broker without its network. Implements `NetworkCrowd`."""

    def __init__(self, name: str, random: Random, now: float) -> None:
        self.name, self.key, self.now = name, KEYS[name], now
        self.watching = CrowdWatch(SERVICE.public(), 1)
        self.watching.use(between(tree(), self.key, KEYS["root"]) or ())
        self.exposure = Exposure(beyond=self)
        self.stating = BrokerStatements(SEEDS[name], random.randbytes, int(now * 1000), cap=CAP, life=1800)

    def says(self, shown: Filter, condition: AnonymityCondition, k: int, own: set[Source]) -> bool:  # type: ignore[override]
        return self.watching.says(shown, condition, k, own, self.now)

    def has_sunk(self, group: SubscriptionGroup) -> bool:
        return self.watching.has_sunk(group)

    def wider(self, group: SubscriptionGroup, own: set[Source]) -> Filter | None:  # type: ignore[override]
        return self.watching.wider(group, own, self.now)

    def look(self, topics: bool = True) -> None:
        """Take up what is known now."""
        if topics:
            self.exposure.review({WHOLE.topic})
        while self.exposure.is_waiting:
            self.exposure.advance()

    def held(self) -> dict[Filter, list[Client]]:
        shown = self.exposure.behind_shown()
        return {one: [*sources, *map(BogusSource, range(bogus))] for one, (sources, bogus) in shown.items()}

    def roots(self) -> set[Filter]:
        shown = self.exposure.shown
        return {one for one in shown if not any(other != one and covers(other, one) for other in shown)}


class Play:
    """The brokers, the service, and what they say."""

    def __init__(self, seed: str, condition: AnonymityCondition, ways: tuple[Fallback, ...]) -> None:
        self.random = Random(seed)
        self.condition, self.ways = condition, ways
        self.now = NOW
        self.service = TomographyService(SERVICE, StatedFilters(tree(), CAP), NETWORK.calendar, AnswerTimes())
        self.edges = {name: EdgeBroker(name, self.random, self.now) for name in EDGES}
        draw = self.random.randbytes
        self.inner = {
            name: BrokerStatements(SEEDS[name], draw, 1, cap=CAP, life=1800) for name in ("c", "d", "root")
        }
        self.there: dict[tuple[str, Source, bytes], tuple[Filter, AnonymityTerms]] = {}
        self.quiet = 0
        self.counts: Counter[str] = Counter()

    def event(self, number: int) -> None:
        """Somebody comes or goes, or an edge broker's link or the broker itself begins anew."""
        draw = self.random.random()
        self.quiet = 0
        if draw < 0.03:
            self.lose_link(self.random.choice(EDGES))
        elif draw < 0.05:
            self.restart(self.random.choice(EDGES))
        elif self.there and draw < 0.05 + 0.9 * len(self.there) / MOST / 2:
            name, source, key = self.random.choice(list(self.there))
            self.edges[name].exposure.unsubscribe(source, key)
            del self.there[name, source, key]
        else:
            self.come(self.random.choice(EDGES), number.to_bytes(16, "big"))

    def come(self, name: str, key: bytes) -> None:
        edge, source = self.edges[name], self.random.randrange(SUBSCRIBERS).to_bytes(32, "big")
        given = Filter(WHOLE.topic, (*drawn_sides(self.random)[:1], None, None))
        terms = AnonymityTerms(
            self.random.choice((1, 1, 2, 2, 3, 4)), self.condition, self.random.choice(self.ways)
        )
        edge.exposure.subscribe(source, key, given, terms)
        if edge.exposure.standing(source, key) is not None:
            self.there[name, source, key] = given, terms

    def lose_link(self, name: str) -> None:
        self.service.leave(KEYS[name])
        edge = self.edges[name]
        edge.stating.again()
        edge.watching.reopened()

    def restart(self, name: str) -> None:
        """A broker that starts again knows no more what it stated, and has other names for its clients."""
        self.service.leave(KEYS[name])
        self.edges[name] = edge = EdgeBroker(name, self.random, self.now)
        for at, (other, source, key) in enumerate(list(self.there)):
            if other == name and at % 2:
                del self.there[other, source, key]
            elif other == name:
                edge.exposure.load(source, key, *self.there[other, source, key])
        edge.look()
        self.service.forget(edge.key)

    def state(self, stating: BrokerStatements, key: bytes, held: dict[Filter, list[Client]]) -> None:
        for given in stating.filters() - held.keys():
            stating.drop(given)
        for given, clients in held.items():
            stating.hold(given, clients)
        for signed in stating.due(NETWORK.calendar.epoch(self.now), self.now):
            self.service.hear(key, signed, self.now)

    def turn(self) -> None:
        """All brokers speak, then the service does, and what it says is done."""
        self.now += EVERY
        above: dict[str, set[Filter]] = {"c": set(), "d": set(), "root": set()}
        for name, edge in self.edges.items():
            edge.now = self.now
            edge.watching.expire(self.now)
            edge.look()
            above["d" if name == "e" else "c"] |= edge.roots()
        above["root"] = above["c"] | above["d"]
        for name, held in above.items():
            self.state(self.inner[name], KEYS[name], {given: [] for given in held})
        for edge in self.edges.values():
            self.state(edge.stating, edge.key, edge.held())
            self.ask(edge)
        before = {name: self.by_network(name) for name in EDGES}
        for news in self.service.advance(self.now):
            edge = next(one for one in self.edges.values() if one.key == news.asker)
            edge.watching.hear(AskReply(news.number, news.answer, None, 0), self.now)
        for edge in self.edges.values():
            edge.look()
        self.quiet += 1
        self.check(before)

    def ask(self, edge: EdgeBroker) -> None:
        epoch = NETWORK.calendar.epoch(self.now)
        said, _ = edge.watching.ask(edge.exposure.wishes(), edge.stating, epoch, self.now)
        for frame in said:
            if isinstance(frame, Unwatch):
                self.service.unwatch(edge.key, frame.number)
                continue
            self.counts["asked"] += 1
            try:
                answer = self.service.watch(edge.key, frame.number, frame.question, self.now)
            except Refusal:  # its cap
                edge.watching.hear(AskReply(frame.number, None, "cap", 0), self.now)
            else:
                edge.watching.hear(AskReply(frame.number, answer, None, 0), self.now)

    def by_network(self, name: str) -> dict[tuple[Source, bytes], tuple[Filter, AnonymityTerms]]:
        """What an edge broker shows of subscriptions because the network has enough."""
        found = {}
        for (other, source, key), (_, terms) in self.there.items():
            standing = self.edges[name].exposure.standing(source, key) if other == name else None
            if standing is not None and standing.crowd == "network":
                assert standing.shown is not None
                found[source, key] = standing.shown, terms
        return found

    def check(self, before: dict[str, dict[tuple[Source, bytes], tuple[Filter, AnonymityTerms]]]) -> None:
        """Fail where what is shown has too few behind it, unless somebody has just left.

        What is shown anew has to have them at once where nobody has left; all else, when all are told.
        """
        for name in EDGES:
            for shown, terms in self.by_network(name).values():
                self.counts["shown"] += 1
                is_new = shown not in {one for one, _ in before[name].values()}
                is_enough = all(
                    self.level(at, name, shown) >= terms.k for at in ("d" if name == "e" else "c", "root")
                )
                self.counts["new"] += is_new
                self.counts["late"] += not is_enough
                is_due = self.quiet > LATE or (is_new and self.quiet > 1 and self.ways == ("wait",))
                assert is_enough or not is_due, f"{name} shows {shown.sides} for {terms}: too few are there"

    def level(self, at: str, own: str, given: Filter) -> int:
        """Return the level of a filter at a broker above: nobody counts who is bogus."""
        below = {"c": "ab", "d": "e", "root": "abe"}[at]
        held = set().union(*(self.edges[name].roots() for name in below)) | {given}
        brute = Brute()
        for name in below:
            for shown, (sources, _) in self.edges[name].exposure.behind_shown().items():
                for source in sources if shown in held else ():
                    brute.insert(shown, (name, source))
        return brute.level(given, self.condition)


def play(
    seed: str, events: int, condition: AnonymityCondition, ways: tuple[Fallback, ...] = ("wait",)
) -> Counter[str]:
    """Let subscribers come and go, with pauses; fail where too few stand behind what is shown."""
    game = Play(seed, condition, ways)
    for number in range(events):
        game.event(number)
        for _ in range(game.random.choice((0, 1, 1, 2, 10))):
            game.turn()
    return game.counts


if __name__ == "__main__":
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 2_000
    seed = sys.argv[2] if len(sys.argv) > 2 else "1"
    for condition in AnonymityCondition:
        for ways in (("wait",), ("wait", "generalise", "bogus", "refuse")):
            found = play(seed, count, condition, ways)  # type: ignore[arg-type]
            print(f"{condition}, {', '.join(ways)}: {count:,} events, {dict(found)}", flush=True)
