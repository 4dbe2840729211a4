"""What the rule says, by plain sets: an oracle that shares no code with what it judges, and drawn worlds.

By hand, a million decisions over reservations that come, change and go, in all three stores:

    python tests/protocol/purposes/purposing.py --decisions 1000000
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from random import Random

from hushcast_protocol.purposes.cached_reservations import CachedReservationTree
from hushcast_protocol.purposes.clauses import of_message, reserve
from hushcast_protocol.purposes.filter_reach import FilterReach, effective
from hushcast_protocol.purposes.purpose_decision import decide
from hushcast_protocol.purposes.purpose_names import Purpose
from hushcast_protocol.purposes.reservations import ReservationList, ReservationTree
from hushcast_protocol.purposes.vocabulary import Vocabulary

Path = tuple[str, ...]  # levels of a purpose, of a topic, of a filter
Sets = tuple[frozenset[Path], frozenset[Path]]  # allowed and prohibited

OWNERS = ("alice", "bob", "carol", "mallory")
LEVELS = ("a", "b", "", "$s", "a.c", "a(")
ELSE = "something else"  # that no reservation names
STRANGER = "stranger"


def covers(wanted: Path, topic: Path) -> bool:
    """Section 4.7 of MQTT, word by word."""
    if topic[0][:1] == "$" and wanted[0] in ("#", "+"):
        return False
    return _covers(wanted, topic)


def _covers(wanted: Path, topic: Path) -> bool:
    if not wanted or wanted == ("#",):
        return wanted == ("#",) or not topic
    if not topic:
        return False
    return wanted[0] in ("+", topic[0]) and _covers(wanted[1:], topic[1:])


def below(purpose: Path, some: frozenset[Path]) -> bool:
    """Tell whether a purpose is one of some, or below one."""
    return any(purpose[: len(one)] == one for one in some)


@dataclass
class Oracle:
    """Reservations by owner and filter, and the rule in its own words."""

    held: dict[tuple[str, Path], Sets] = field(default_factory=dict)

    def allowed(self, topic: Path, purpose: Path | None, strict: bool, own: Sets | None = None) -> bool:
        """`own`: what the message itself allows and prohibits."""
        there: dict[object, list[Sets]] = {}
        for (owner, wanted), sets in self.held.items():
            if covers(wanted, topic):
                there.setdefault(owner, []).append(sets)
        if own is not None:
            there[None] = [own]
        if not there:
            return not strict
        if purpose is None:
            return False
        prohibited = any(not aip or below(purpose, pip) for clauses in there.values() for aip, pip in clauses)
        return not prohibited and all(
            any(below(purpose, aip) for aip, _ in clauses) for clauses in there.values()
        )

    def is_reserved(self, topic: Path) -> bool:
        return any(covers(wanted, topic) for _, wanted in self.held)


class Drawn:
    """A vocabulary, and filters, topics and purposes of it, drawn from a seed."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.purposes = self._purposes(random.randint(2, 24))
        self.vocabulary = Vocabulary("/".join(one) for one in self.purposes)

    def _purposes(self, count: int) -> list[Path]:
        found: list[Path] = [()]
        for number in range(count):
            above = self.random.choice([one for one in found if len(one) < 5])
            found.append((*above, f"p{number}"))
        return found[1:]

    def some(self, most: int) -> frozenset[Path]:
        return frozenset(self.random.choices(self.purposes, k=self.random.randint(0, most)))

    def wanted(self) -> Path:
        levels = [self.random.choice((*LEVELS, "+", "+")) for _ in range(self.random.randint(1, 4))]
        if self.random.random() < 0.4:
            levels[-1:] = ["#"] if self.random.random() < 0.5 else [levels[-1], "#"]
        return tuple(levels) if levels != [""] else ("a",)

    def topic(self) -> Path:
        levels = self.random.choices((*LEVELS, ELSE), k=self.random.randint(1, 5))
        return tuple(levels) if levels != [""] else ("a",)

    def purpose(self) -> Path | None:
        return self.random.choice((*self.purposes, None))

    def sets(self) -> Sets:
        return self.some(4), self.some(2) if self.random.random() < 0.5 else frozenset()


def texts(some: frozenset[Path]) -> list[str]:
    return ["/".join(one) for one in some]


def named(purpose: Path | None) -> Purpose | None:
    return None if purpose is None else Purpose("/".join(purpose))


class World:
    """An oracle and the three stores, which see the same changes."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.drawn = Drawn(random)
        self.oracle = Oracle()
        self.stores = {
            "flat": ReservationList(),
            "tree": ReservationTree(),
            "cached": CachedReservationTree(),
        }
        self.wrong: Counter[str] = Counter()
        self.decisions = 0
        self.right = 0

    def change(self) -> None:
        held = list(self.oracle.held)
        if held and (self.random.random() < 0.35 or len(held) > 12):
            owner, wanted = self.random.choice(held)
            if self.random.random() < 0.6:
                del self.oracle.held[owner, wanted]
                for store in self.stores.values():
                    assert store.remove(owner, "/".join(wanted))
                    assert not store.remove(owner, "/".join(wanted))
                return
        else:
            owner, wanted = self.random.choice(OWNERS), self.drawn.wanted()
        self.put(owner, wanted, self.drawn.sets())

    def put(self, owner: str, wanted: Path, sets: Sets) -> None:
        self.oracle.held[owner, wanted] = sets
        aip, pip = map(texts, sets)
        clause = reserve(owner, "/".join(wanted), aip, pip, self.drawn.vocabulary)
        for store in self.stores.values():
            store.put(clause)

    def ask(self) -> None:
        """Compare one decision, and what does not depend on the order of clauses."""
        topic, purpose, strict = self.drawn.topic(), self.drawn.purpose(), self.random.random() < 0.2
        text, asked = "/".join(topic), named(purpose)
        right = self.oracle.allowed(topic, purpose, strict)
        self.right += right
        reasons = set()
        for name, store in self.stores.items():
            decision = store.decide(text, asked, strict)
            self._compare(name, decision.allowed, right)
            reasons.add(decision)
        clauses = list(self.stores["tree"].covering(text))
        self.random.shuffle(clauses)
        reasons.add(decide(clauses, asked, strict))
        self.wrong["order mattered"] += len(reasons) - 1
        self.decisions += 1
        if self.random.random() < 0.1:
            self._with_its_own(topic, purpose, strict, right)

    def _with_its_own(self, topic: Path, purpose: Path | None, strict: bool, before: bool) -> None:
        """Compare a message that brings a clause, which widens nothing that is reserved."""
        own = self.drawn.sets()
        text = "/".join(topic)
        owner = self.random.choice(OWNERS)
        clause = of_message(owner, text, texts(own[0]), texts(own[1]), self.drawn.vocabulary)
        found = decide([*self.stores["tree"].covering(text), clause], named(purpose), strict).allowed
        if not decide([clause], named(purpose)).allowed:  # whatever the others say
            self._compare("message alone", found, False)
        self._compare("message", found, self.oracle.allowed(topic, purpose, strict, own))
        if self.oracle.is_reserved(topic) or not strict:
            self.wrong["a message widened"] += found and not before

    def stranger(self) -> None:
        """A reservation of somebody else allows nothing that was not allowed before."""
        asked = [(self.drawn.topic(), self.drawn.purpose()) for _ in range(8)]
        tree = self.stores["tree"]
        strict = self.random.random() < 0.2
        before = [
            (tree.decide("/".join(topic), named(purpose), strict).allowed, self.oracle.is_reserved(topic))
            for topic, purpose in asked
        ]
        wanted, (aip, pip) = self.drawn.wanted(), self.drawn.sets()
        clause = reserve(STRANGER, "/".join(wanted), texts(aip), texts(pip), self.drawn.vocabulary)
        tree.put(clause)
        for (topic, purpose), (was, is_reserved) in zip(asked, before, strict=True):
            now = tree.decide("/".join(topic), named(purpose), strict).allowed
            # What nobody has reserved, the strict rule keeps from all until somebody does.
            self.wrong["a stranger widened"] += now and not was and (is_reserved or not strict)
        assert tree.remove(STRANGER, clause.filter)

    def _compare(self, name: str, found: bool, right: bool) -> None:
        if found != right:
            self.wrong[f"{name}: false {'accept' if found else 'reject'}"] += 1


def judged(decisions: int, seed: int) -> tuple[Counter[str], int]:
    """Draw worlds until so many decisions are compared; return what was wrong, and how many were allowed."""
    random = Random(seed)
    wrong: Counter[str] = Counter()
    allowed = 0
    while decisions > 0:
        world = World(random)
        for _ in range(min(decisions, 400)):
            if random.random() < 0.15:
                world.change()
            if random.random() < 0.02:
                world.stranger()
            world.ask()
        decisions -= world.decisions
        wrong += world.wrong
        allowed += world.right
    return wrong, allowed


ALPHABET = ("a", "b", "", "$s", ELSE)
TOPICS: list[Path] = [
    topic for count in range(1, 5) for topic in product(ALPHABET, repeat=count) if topic != ("",)
]
"""All topics that filters of up to three levels of these can tell apart."""


def subscriptions(count: int, seed: int) -> Iterator[tuple[bool, bool, bool, bool]]:
    """Yield for drawn subscriptions whether all and some of their topics are allowed: found, and in truth."""
    random = Random(seed)
    matched: dict[Path, frozenset[Path]] = {}

    def filter_of(drawn: Drawn) -> Path:
        levels = [random.choice((*ALPHABET[:4], "+", "+")) for _ in range(random.randint(1, 3))]
        if random.random() < 0.5:
            levels[-1] = "#"
        wanted = tuple(levels) if levels != [""] else ("a",)
        if wanted not in matched:
            matched[wanted] = frozenset(topic for topic in TOPICS if covers(wanted, topic))
        return wanted

    for _ in range(count):
        world = World(random)
        for _ in range(random.randint(0, 5)):
            world.put(random.choice(OWNERS[:2]), filter_of(world.drawn), world.drawn.sets())
        wanted, strict = filter_of(world.drawn), random.random() < 0.3
        purpose = world.drawn.purpose()
        truth = {world.oracle.allowed(topic, purpose, strict) for topic in matched[wanted]}
        text = "/".join(wanted)
        clauses = world.stores["tree"].intersecting(text)
        found = FilterReach(text, clauses, named(purpose), strict)
        assert (purpose is not None and found.everywhere) == (
            named(purpose) in effective(text, clauses, world.drawn.vocabulary, strict)
        )
        yield found.everywhere, truth == {True}, found.somewhere, True in truth


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--decisions", type=int, default=1_000_000)
    parser.add_argument("--subscriptions", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    began = time.perf_counter()
    wrong, allowed = judged(options.decisions, options.seed)
    told = dict(+wrong) or "0 wrong"
    print(f"{options.decisions:,} decisions ({allowed:,} allowed) in each of three stores: {told}")
    off = sum(
        all_ != every or some != any_
        for all_, every, some, any_ in subscriptions(options.subscriptions, options.seed)
    )
    print(f"{options.subscriptions:,} subscriptions with wildcards: {off} wrong")
    print(f"({time.perf_counter() - began:.0f} s)")
    return bool(+wrong) or bool(off)


if __name__ == "__main__":
    sys.exit(main())
