"""What cache, transitivity and silence each save, on questions among subscribers who come and go.

Every broker's table is what the brokers below it show, by covering. Two ways to know it: the service asks the
brokers on the way at each question, for all they hold on a topic; or brokers state by themselves, and it
never asks. Bytes are those of the signed structures.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from typing import Any

from benchmarks.tomography.world import CALENDAR, NOW, World, asked, question
from hushcast_protocol.base.crypto.signatures import Signed
from hushcast_protocol.base.wire import PublicKey, encode
from hushcast_protocol.brokers.anonymity_conditions import AnonymityCondition
from hushcast_protocol.brokers.filters import Filter, covers
from hushcast_protocol.brokers.poset import Poset
from hushcast_protocol.brokers.tomography.answer_cache import AnswerCache
from hushcast_protocol.brokers.tomography.broker_statements import BrokerStatements
from hushcast_protocol.brokers.tomography.inference import ComparableQuestion
from hushcast_protocol.brokers.tomography.questions import read_answer
from hushcast_protocol.brokers.tomography.stated_filters import StatedFilters
from hushcast_protocol.brokers.tomography.statements import MAX_CROWD
from hushcast_protocol.brokers.tomography.tomography_service import AnswerTimes, TomographyService
from hushcast_protocol.content.topics import Topic

EVERY = 0.36  # seconds from a question to the next: ten thousand in an hour
VALID = 300.0  # seconds for which an answer is valid
LIFE = 1800.0  # seconds for which a statement is
CAP = 64
KS = (2, 3, 5, 8)


class _Brokers:
    """Tables kept by covering: what an edge broker shows of its clients', an inner one of its children's."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.tables = {key: Poset() for key in world.tree.brokers}
        self.changed: dict[PublicKey, set[Filter]] = {key: set() for key in world.tree.brokers}

    def insert(self, broker: PublicKey, given: Filter, source: Hashable) -> None:
        if source not in self.tables[broker].sources(given):
            self.tables[broker].insert(given, source)
            self._pass_on(broker, given)

    def remove(self, broker: PublicKey, given: Filter, source: Hashable) -> None:
        self.tables[broker].remove(given, source)
        self._pass_on(broker, given)

    def clients(self, edge: PublicKey, given: Filter) -> list[Hashable]:
        """Those behind a filter that an edge broker shows: theirs may be narrower."""
        table = self.tables[edge]
        found = set(table.sources(given)).union(*map(table.sources, table.successors(given)))
        return sorted(found, key=repr)

    def held(self, broker: PublicKey) -> Iterable[Filter]:
        """What it states: an edge broker what it shows, others what is shown to them."""
        return self.tables[broker].roots() if broker in self._world.edges else self.tables[broker]

    def _pass_on(self, broker: PublicKey, given: Filter) -> None:
        changes = self.tables[broker].take_changes()
        parent = self._world.parent.get(broker)
        if broker in self._world.edges:
            shown = [root for root in self.tables[broker].roots() if covers(root, given)]
            self.changed[broker].update(shown, changes.shown, changes.withdrawn)
        else:
            self.changed[broker].add(given)
        if parent is not None:
            for root in changes.shown:
                self.insert(parent, root, broker)
            for root in changes.withdrawn:
                self.remove(parent, root, broker)


class _Speaking:
    """What all brokers state; silent above the largest k asked for, or of all they have."""

    def __init__(self, world: World, brokers: _Brokers, largest_k: int) -> None:
        self._world, self._brokers = world, brokers
        self._of = {
            key: BrokerStatements(world.key_of(key), world.random.randbytes, 0, cap=CAP, life=LIFE)
            for key in world.tree.brokers
        }
        for stating in self._of.values():
            stating.largest_k = largest_k
        self._shown: dict[PublicKey, set[Filter]] = {key: set() for key in self._of}
        self.statements = self.bytes = 0

    def due(
        self, now: float, changed: dict[PublicKey, set[Filter]], *, all_of_them: bool, renews: bool
    ) -> list[_Said]:
        made = []
        for key, stating in self._of.items():
            for given in self._brokers.held(key) if all_of_them else changed[key]:
                self._tell(key, stating, given)
            if all_of_them or changed[key] or (renews and stating.deadline() <= now):
                made += [(key, signed) for signed in stating.due(CALENDAR.epoch(now), now)]
        self.statements += len(made)
        self.bytes += sum(len(encode(signed)) for _, signed in made)
        return made

    def _tell(self, key: PublicKey, stating: BrokerStatements, given: Filter) -> None:
        is_edge = key in self._world.edges
        table = self._brokers.tables[key]
        is_there = given in (table.roots() if is_edge else table)
        if is_there:
            stating.hold(given, self._brokers.clients(key, given) if is_edge else ())
            self._shown[key].add(given)
        elif given in self._shown[key]:
            stating.drop(given)
            self._shown[key].discard(given)


_Said = tuple[PublicKey, Signed]


@dataclass
class _Way:
    """One way to answer: how far each question goes, and what it weighs."""

    cache: dict[PublicKey, AnswerCache] | None = None
    keeps: bool = False
    """The service keeps what it heard of a topic from a broker while an answer is valid."""
    heard: dict[tuple[PublicKey, Topic], float] = field(default_factory=dict)
    told: Counter[str] = field(default_factory=Counter)


def run(world: World) -> dict[str, Any]:
    """Ask all questions; return counts for each way to answer."""
    brokers = _Brokers(world)
    for client, filters in enumerate(world.wanted):
        for given in filters:
            brokers.insert(world.home[client], given, client)
    gathered = StatedFilters(world.tree, CAP)
    service = TomographyService(world.key_of(world.root), gathered, CALENDAR, AnswerTimes(valid=VALID))
    silent, plain = _Speaking(world, brokers, max(KS)), _Speaking(world, brokers, MAX_CROWD)
    last: dict[_Row, int] = {}
    found = {
        condition: _ways(world)
        for condition in (AnonymityCondition.SUCCESSOR, AnonymityCondition.IMMEDIATE_SUCCESSOR)
    }
    for at in range(world.size.questions):
        now = NOW + at * EVERY
        epochs = range(CALENDAR.epoch(now), CALENDAR.epoch(now) + 1)
        if at:
            _come_and_go(world, brokers)
        for speaking in (silent, plain):
            for key, signed in speaking.due(now, brokers.changed, all_of_them=not at, renews=not at % 100):
                if speaking is plain:
                    given = gathered.hear(key, signed, epochs, now)
                    last[key, given] = len(encode(signed))
        for changed in brokers.changed.values():
            changed.clear()
        gathered.expire(now)
        origin, given, k = world.random.choice(world.edges), world.draw(1), world.random.choice(KS)
        asking = _Asking(service, last, now)
        for condition, ways in found.items():
            one = question(origin, world.root, given, k, condition)
            _answer(asking, asked(gathered, one), ways)
    rows = {
        str(condition): {name: dict(way.told) for name, way in ways.items()}
        for condition, ways in found.items()
    }
    return {
        "questions": world.size.questions,
        "rows stated": gathered.rows,
        "by asking brokers": rows,
        "by statements": {
            "all": {"statements": plain.statements, "bytes": plain.bytes},
            f"silent above {max(KS)}": {"statements": silent.statements, "bytes": silent.bytes},
        },
    }


_Row = tuple[PublicKey, Filter]


@dataclass(frozen=True)
class _Asking:
    service: TomographyService
    last: dict[_Row, int]
    """Bytes of the last statement about each."""
    now: float
    known: dict[tuple[PublicKey, Topic], int] = field(default_factory=dict)

    def weighed(self, at: PublicKey, topic: Topic) -> int:
        """Return the bytes of all that a broker holds on a topic, and of what vouches for it."""
        if (at, topic) not in self.known:
            gathered = self.service.gathered
            order = gathered.crowd(at).poset.order(topic)
            filters = [order.filter(slot) for slot in order.slots.values()] if order is not None else []
            rows = (
                (key, given)
                for given in filters
                for key in {at, *(source[0] for source in gathered.behind(at, given))}  # type: ignore[index]
            )
            self.known[at, topic] = sum(self.last.get(row, 0) for row in rows)
        return self.known[at, topic]


def _ways(world: World) -> dict[str, _Way]:
    def caches(transitive: bool) -> dict[PublicKey, AnswerCache]:
        return {edge: AnswerCache(transitive) for edge in world.edges}

    return {
        "nothing kept": _Way(),
        "service keeps": _Way(keeps=True),
        "cache at brokers": _Way(caches(False)),
        "cache and transitivity": _Way(caches(True)),
        "all three": _Way(caches(True), keeps=True),
    }


def _answer(asking: _Asking, one: ComparableQuestion, ways: dict[str, _Way]) -> None:
    signed = asking.service.ask(one.question.origin, one.question, asking.now)
    answer = read_answer(signed, asking.service.public, one.question, asking.now)
    for way in ways.values():
        said = answer.is_anonymous
        known = way.cache[one.question.origin].find(one, asking.now) if way.cache is not None else None
        if known is not None:
            said = known.is_anonymous
            way.told["from cache"] += 1
            way.told["by covering, k or way"] += known.is_derived
        else:
            way.told["reach the service"] += 1
            way.told["bytes of questions"] += len(encode(one.question)) + len(encode(signed))
            _collect(asking, one, way)
            if way.cache is not None:
                way.cache[one.question.origin].put(one, answer.is_anonymous, answer.until)
        way.told["yes"] += said
        way.told["yes, no longer so"] += said and not answer.is_anonymous
        way.told["no, no longer so"] += answer.is_anonymous and not said


def _collect(asking: _Asking, one: ComparableQuestion, way: _Way) -> None:
    """Ask the brokers on the way, and those who vouch for what they hold."""
    topic = one.filter.topic
    for at in one.way[1:]:
        if way.keeps and way.heard.get((at, topic), 0.0) > asking.now:
            continue
        way.heard[at, topic] = asking.now + VALID
        way.told["reach a broker"] += 1
        way.told["bytes of statements"] += asking.weighed(at, topic)


def _come_and_go(world: World, brokers: _Brokers) -> None:
    """One client takes another filter in place of one of its own."""
    client = world.random.randrange(world.size.clients)
    wanted, edge = world.wanted[client], world.home[client]
    old, new = wanted.pop(0), world.draw()
    if old not in wanted:
        brokers.remove(edge, old, client)
    wanted.append(new)
    brokers.insert(edge, new, client)
