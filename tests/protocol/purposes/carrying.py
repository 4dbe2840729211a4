"""Two houses by plain sets: what one reserved narrows for the readers of the other, and nothing else does.

By hand, a million decisions over drawn reservations of both houses, vocabularies that differ, and messages
with purposes of their own:

    python tests/protocol/purposes/carrying.py --decisions 1000000
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from random import Random

from purposing import OWNERS, Drawn, Oracle, Path, Sets, named, texts

from hushcast_protocol.purposes.carried_reservations import (
    CarriedContent,
    read_carried,
    write_carried,
)
from hushcast_protocol.purposes.clauses import reserve
from hushcast_protocol.purposes.message_judge import MessageJudge
from hushcast_protocol.purposes.message_purposes import reserved_under, unmarked
from hushcast_protocol.purposes.reservations import ReservationTree
from hushcast_protocol.purposes.vocabulary import Vocabulary

A_WORLD = 24  # decisions by reservations that stay, until all is drawn anew


class DrawnHouse:
    """Reservations of a house, as an oracle has them and as its judge does."""

    def __init__(self, random: Random, drawn: Drawn, vocabulary: Vocabulary, purposes: list[Path]) -> None:
        self.strict = random.random() < 0.25
        self.oracle = Oracle()
        store = ReservationTree()
        for _ in range(random.randint(0, 6)):
            owner, wanted, sets = random.choice(OWNERS), drawn.wanted(), drawn.sets()
            sets = sets[0] & frozenset(purposes), sets[1] & frozenset(purposes)
            self.oracle.held[owner, wanted] = sets
            store.put(reserve(owner, "/".join(wanted), *map(texts, sets), vocabulary))
        self.judge = MessageJudge(store, vocabulary, self.strict)


class TwoHouses:
    """A house that publishes, and one that reads; the second may know fewer purposes."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.drawn = drawn = Drawn(random)
        self.known = drawn.purposes
        if random.random() < 0.5:
            cut = {random.choice(drawn.purposes) for _ in range(random.randint(1, 3))}
            self.known = [one for one in drawn.purposes if not any(one[: len(each)] == each for each in cut)]
            self.known = self.known or [drawn.purposes[0][:1]]
        here = Vocabulary("/".join(one) for one in self.known)
        self.publishing = DrawnHouse(random, drawn, drawn.vocabulary, drawn.purposes)
        self.reading = DrawnHouse(random, drawn, here, self.known)

    def ask(self, wrong: Counter[str]) -> bool:
        """Publish a message, and decide for one reader; return whether it may have it."""
        topic, own = self.drawn.topic(), self.drawn.sets() if self.random.random() < 0.4 else None
        purpose = self.random.choice((*self.known, None))
        name = "/".join(topic)
        given = [] if own is None else [("aip", ",".join(texts(own[0]))), ("pip", ",".join(texts(own[1])))]
        given = [pair for pair in given if pair[1] or pair[0] == "aip"]
        written = self.publishing.judge.carried(name, given, False)
        assert written is not None
        if written:
            came = read_carried(write_carried(CarriedContent(written, b"payload")))
            assert came == (written, b"payload", False)
        travels = self.known == self.drawn.purposes  # else properties are left at home, as they can be
        came_with = reserved_under(unmarked(given) if travels else [], written)
        found = self.reading.judge.may_be_used(name, came_with, named(purpose), None, False)
        right = self._right(topic, own, purpose)
        if found != right:
            wrong[f"false {'accept' if found else 'reject'}"] += 1
        if found and not self.publishing.oracle.allowed(topic, purpose, self.publishing.strict, own):
            wrong["wider than at home"] += 1
        return found

    def _right(self, topic: Path, own: Sets | None, purpose: Path | None) -> bool:
        """Both houses' rules hold; what either reserved is reserved."""
        home, strict = self._lifted(), self.publishing.strict
        own = None if own is None else self._sets(own)
        closed_or_reserved = strict or own is not None or home.is_reserved(topic)
        if not closed_or_reserved and not self.reading.oracle.is_reserved(topic):
            return not self.reading.strict
        return (
            purpose is not None
            and (not closed_or_reserved or home.allowed(topic, purpose, strict, own))
            and self.reading.oracle.allowed(topic, purpose, False)
        )

    def _lifted(self) -> Oracle:
        held = {place: self._sets(sets) for place, sets in self.publishing.oracle.held.items()}
        return Oracle(held)

    def _sets(self, sets: Sets) -> Sets:
        """Prohibit what the reader's house does not know with the next above it that it does."""
        known = set(self.known)
        lifted = (
            next((one[:count] for count in range(len(one), 0, -1) if one[:count] in known), None)
            for one in sets[1]
        )
        return sets[0], frozenset(one for one in lifted if one is not None)


def carried(decisions: int, seed: int) -> tuple[Counter[str], int]:
    """Return what was wrong of so many decisions, and how many were allowed."""
    random, wrong, allowed = Random(seed), Counter[str](), 0
    for number in range(decisions):
        if number % A_WORLD == 0:
            houses = TwoHouses(random)
        allowed += houses.ask(wrong)
    return wrong, allowed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--decisions", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    wrong, allowed = carried(options.decisions, options.seed)
    print(
        f"{options.decisions:,} decisions ({allowed:,} allowed) in another house: {dict(+wrong) or '0 wrong'}"
    )
    return bool(+wrong)


if __name__ == "__main__":
    sys.exit(main())
