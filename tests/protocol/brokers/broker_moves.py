"""Random coming and going beside comparing all pairs: after each step everything must be equal.

    python tests/protocol/brokers/broker_moves.py [STEPS] [SEED]

runs it for long: 100,000 steps unless told otherwise.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from random import Random

from filter_examples import FUNCTIONS, TOPICS, Brute, Table, drawn

from hushcast_protocol.brokers.anonymity_conditions import AnonymityCondition
from hushcast_protocol.brokers.anonymity_levels import Levels
from hushcast_protocol.content.topics import Topic

MOST = 24  # subscriptions at once: beside each step all of them are compared with all
SUBSCRIBERS = 8


def play(
    random: Random, steps: int, topics: list[Topic], progress: Callable[[str], None] | None = None
) -> Levels:
    """Make that many steps; fail at the first after which any function or level of any filter differs."""
    levels, brute = Levels(), Brute()
    for step in range(steps):
        held = [(one, source) for one, sources in brute.held.items() for source in sources]
        if held and random.random() < len(held) / MOST / 2:
            one, source = random.choice(held)
            assert levels.remove(one, source) is brute.remove(one, source)
        else:
            one = random.choice(held)[0] if held and random.random() < 0.25 else drawn(random, topics)
            source = random.randrange(SUBSCRIBERS)
            assert levels.insert(one, source) is brute.insert(one, source)
        compare(levels, brute)
        if progress is not None and step % 1000 == 999:
            progress(f"{step + 1:,} steps")
    return levels


def compare(levels: Levels, brute: Brute) -> None:
    """Compare everything that is asked of any filter."""
    poset, table = levels.poset, Table(brute.held)
    assert set(poset) == set(brute.held)
    assert poset.roots() == table.roots()
    for one in brute.held:
        assert poset.sources(one) == table.sources([one])
        for name in FUNCTIONS:
            assert getattr(poset, name)(one) == getattr(table, name)(one), name
        for condition in AnonymityCondition:
            assert levels.level(one, condition) == table.level(one, condition), condition


if __name__ == "__main__":
    STEPS, SEED = (int(sys.argv[at]) if len(sys.argv) > at else than for at, than in ((1, 100_000), (2, 1)))
    for topic in TOPICS:
        print(f"{topic.name}: {STEPS // len(TOPICS):,} steps, seed {SEED}", flush=True)
        play(Random(f"{SEED} {topic.name}"), STEPS // len(TOPICS), [topic], lambda line: print(" ", line))
    print("all equal at every step")
