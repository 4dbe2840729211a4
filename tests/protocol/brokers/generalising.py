"""Small cases of the search for a filter to show, beside trying every filter that there is.

    python tests/protocol/brokers/generalising.py [CASES] [SEED]

tells how much volume is added, as a multiple of the least possible: 1,000 cases unless told otherwise.
"""

from __future__ import annotations

import sys
from random import Random

from filter_examples import Brute, drawn, everything

from hushcast_protocol.brokers.anonymity_conditions import AnonymityCondition
from hushcast_protocol.brokers.anonymity_levels import Levels
from hushcast_protocol.brokers.filters import Filter, covers
from hushcast_protocol.brokers.generalisation import Generalisation, generalise
from hushcast_protocol.content.topics import make_topic

CASES = [
    make_topic("one", ["a:0..15"]),
    make_topic("two", ["a:0..5", "kind"]),
    make_topic("three", ["a:0..3", "b:0..4", "kind"]),
]
ALL = {topic: sorted(everything(topic), key=lambda one: one.volume) for topic in CASES}


def case(random: Random) -> tuple[Filter, AnonymityCondition, int, Brute]:
    """Draw some subscriptions, and what is asked of one of them."""
    topic, brute = random.choice(CASES), Brute()
    for _ in range(random.randint(2, 10)):
        brute.insert(drawn(random, [topic]), random.randrange(6))
    asked = random.choice(list(brute.held))
    return asked, random.choice(list(AnonymityCondition)), random.randint(2, 4), brute


def holds(brute: Brute, given: Filter, shown: Filter, condition: AnonymityCondition, k: int) -> bool:
    """Tell by the definitions whether a filter may be shown in place of another."""
    if not covers(shown, given):
        return False
    if condition is AnonymityCondition.SOURCE and shown != given:
        return len(brute.sources(one for one in brute.held if covers(shown, one))) >= k
    beside = Brute()
    beside.held = {one: set(sources) for one, sources in brute.held.items()}
    beside.held.setdefault(shown, set()).update(brute.held[given])
    return beside.level(shown, condition) >= k


def compared(random: Random) -> tuple[Generalisation | None, float | None, bool]:
    """Return what is shown in one case, the volume of the best there is, and whether it may be shown."""
    given, condition, k, brute = case(random)
    levels = Levels()
    for one, sources in brute.held.items():
        for source in sources:
            levels.insert(one, source)
    shown = generalise(levels, given, condition, k)
    best = next((one.volume for one in ALL[given.topic] if holds(brute, given, one, condition, k)), None)
    may = shown is not None and holds(brute, given, shown.filter, condition, k)
    return shown, None if best is None else best - given.volume, may


def ratios(seed: int, cases: int) -> tuple[list[float], int, int]:
    """Return added volume over the least, how often nothing can be shown, and how often it was missed."""
    random, found, nothing, missed = Random(seed), [], 0, 0
    for _ in range(cases):
        shown, best, may = compared(random)
        if shown is None or best is None:
            assert shown is None, "it shows what may not be shown"
            nothing += best is None
            missed += best is not None
            continue
        assert may, "it shows what may not be shown"
        assert shown.added >= best - 1e-9
        found.append((shown.added + 1e-9) / (best + 1e-9))
    return found, nothing, missed


if __name__ == "__main__":
    COUNT, SEED = (int(sys.argv[at]) if len(sys.argv) > at else than for at, than in ((1, 1000), (2, 1)))
    FOUND, NOTHING, MISSED = ratios(SEED, COUNT)
    print(
        f"{COUNT:,} cases: {len(FOUND):,} shown, {NOTHING} with nothing to show, {MISSED} missed;"
        f" added volume over the least: mean {sum(FOUND) / len(FOUND):.3f}, most {max(FOUND):.3f}"
    )
