"""Located feeds at random: matches beside brute force, honest answers, and a provider that cheats.

    python tests/protocol/spatial/locating.py [CASES] [ATTEMPTS] [SEED]

tells how many there were, how long they took, and by which name each means of cheating was caught: 10,000
cases and 100,000 attempts unless told otherwise.
"""

from __future__ import annotations

import sys
import time
from collections import Counter as Tally
from random import Random

from cheating import MEANS, Means, Scene
from spatial_world import OWNER, World, entries

from hushcast_protocol.base.wire import encode
from hushcast_protocol.spatial.answer_problems import AnswerProblem, InvalidAnswer
from hushcast_protocol.spatial.matching import MatchingCost, plain, pruned
from hushcast_protocol.spatial.verifier import verify

A_WORLD = 100  # attempts in one world


def try_case(random: Random) -> tuple[int, int, int]:
    """Hold one batch and its subscriptions against brute force; return answers, messages and bytes."""
    world = World.draw(random, most=random.choice((0, 1, 5, 30, 60)), intervals=1)
    feed = world.feeds[0]
    asked = [feed.table.asked(one) for one in world.subscriptions]
    by_tree, by_lists = MatchingCost(), MatchingCost()
    found = sorted((number, one.message.id) for number, one in pruned(feed.root, asked, by_tree))
    assert found == sorted(
        (number, one.message.id) for number, one in plain(entries(feed.root), asked, by_lists)
    )
    assert by_tree.accessed <= by_lists.accessed
    assert by_tree.candidates <= by_lists.candidates
    messages = size = 0
    for number, (one, answer) in enumerate(zip(world.subscriptions, world.answers[0], strict=True)):
        expected = world.wanted(0, number)
        data = encode(answer)
        said = verify(OWNER.public(), one, data)
        assert sorted(message.id for message in said.messages) == expected
        assert [name for found_by, name in found if found_by == number] == expected
        messages += len(expected)
        size += len(data)
    return len(asked), messages, size


def try_attempt(world: World, means: Means) -> AnswerProblem | None:
    """Cheat once; return the name it was caught by, `None` where this means cannot be tried."""
    scene = Scene(world, world.random.randrange(3), world.random.randrange(len(world.subscriptions)))
    cheat = means(scene)
    if cheat is None:
        return None
    try:
        verify(OWNER.public(), cheat.subscription, cheat.data, cheat.before)
    except InvalidAnswer as error:
        if error.problem not in cheat.problems:
            raise AssertionError(f"{means.__name__} is called {error.problem}") from error
        return error.problem
    raise AssertionError(f"{means.__name__} is not caught")


def main(cases: int, attempts: int, seed: int) -> None:
    random = Random(seed)
    began = time.perf_counter()
    answers = messages = size = 0
    for _ in range(cases):
        some = try_case(random)
        answers, messages, size = answers + some[0], messages + some[1], size + some[2]
    print(
        f"{cases:,} cases: {answers:,} answers with {messages:,} messages hold and are those of brute force,"
        f" {size / max(answers, 1):,.0f} bytes each, {time.perf_counter() - began:.0f} s"
    )
    began = time.perf_counter()
    caught: dict[str, Tally[str]] = {means.__name__: Tally() for means in MEANS}
    made = 0
    while made < attempts:
        world = World.draw(random)
        for _ in range(A_WORLD):
            means = random.choice(MEANS)
            if (found := try_attempt(world, means)) is not None:
                made += 1
                caught[means.__name__][found] += 1
    print(f"{made:,} attempts, {time.perf_counter() - began:.0f} s")
    for name, names in caught.items():
        told = ", ".join(f"{what} {count:,}" for what, count in names.most_common())
        print(f"  {name.replace('_', ' ')}: {told}")


if __name__ == "__main__":
    given = [int(one) for one in sys.argv[1:]]
    main(*given, *(10_000, 100_000, 1)[len(given) :])
