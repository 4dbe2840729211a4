"""What hosts miss that ask keepers for whole epochs, once each, where relays come and go.

    python -m benchmarks.models.windows

A message that no tree brings is dropped at two origins that are up, and handed in to each keeper as soon as
it and one of them are there, until the day is over. A keeper shows it among those of the epoch in which it
took it. The host asks all keepers for each epoch once, in the next: a message is missed if all that took it
are away when that is asked for.
"""

from __future__ import annotations

import argparse
import random
from typing import NamedTuple

UP, DOWN = 48.0, 8.0  # epochs in the mean that a relay is up, and away, as in the models of presence
FIRST, LAST = 0.05, 0.75  # shares of an epoch between which the one before is asked for
DAY = 24  # epochs
OF = 10_000  # messages, of which it is told how many are missed


class Spans:
    """When one relay is up, in epochs from the beginning of a day."""

    def __init__(self, draws: random.Random, is_up: bool) -> None:
        """Begin at the moment 0 as said; exponential times remember nothing."""
        self.changes: list[float] = []
        self.is_up = is_up
        moment, up = 0.0, is_up
        while moment < DAY + 3:
            moment += draws.expovariate(1 / (UP if up else DOWN))
            self.changes.append(moment)
            up = not up

    def at(self, moment: float) -> bool:
        """Whether it is up."""
        return self.is_up == (sum(change <= moment for change in self.changes) % 2 == 0)

    def through(self, epoch: int) -> bool:
        """Whether it is up for all of an epoch."""
        return self.at(epoch) and not any(epoch < change < epoch + 1 for change in self.changes)


class Missed(NamedTuple):
    """Of one message."""

    by_windows: bool
    """No question for an epoch brings it."""
    all_away: bool
    """All that answered about the epoch of its publication said that they were away in it."""
    with_a_last_question: bool
    """Nor does one for the whole day, once it is over."""


def play(draws: random.Random, keepers: int) -> Missed:
    """Publish one message at a random moment of a day."""
    share = UP / (UP + DOWN)
    dropped = draws.uniform(0.0, DAY)
    origins = [_up_at(draws, dropped) for _ in range(2)]
    kept = [Spans(draws, draws.random() < share) for _ in range(keepers)]
    taken = [_first_together(one, origins, dropped) for one in kept]
    asked = [epoch + 1 + draws.uniform(FIRST, LAST) for epoch in range(DAY + 1)]
    came = any(
        moment is not None and one.at(asked[int(moment)]) for one, moment in zip(kept, taken, strict=True)
    )
    last = DAY + 1 + draws.uniform(FIRST, LAST)
    at_last = any(moment is not None and one.at(last) for one, moment in zip(kept, taken, strict=True))
    answering = [one for one in kept if one.at(asked[int(dropped)])]
    all_away = bool(answering) and not any(one.through(int(dropped)) for one in answering)
    return Missed(not came, all_away, not (came or at_last))


def _up_at(draws: random.Random, moment: float) -> Spans:
    while True:
        spans = Spans(draws, draws.random() < UP / (UP + DOWN))
        if spans.at(moment):
            return spans


def _first_together(keeper: Spans, origins: list[Spans], dropped: float) -> float | None:
    """Return when a keeper is first up with one of the origins, before the day is over."""
    changes = {change for one in (keeper, *origins) for change in one.changes if change > dropped}
    for moment in sorted({dropped, *changes}):
        if moment < DAY and keeper.at(moment) and any(origin.at(moment) for origin in origins):
            return moment
    return None


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    print(f"of {OF:,} messages that keepers alone bring, by how many of them there are:")
    for keepers in (1, 2, 3, 6):
        draws = random.Random(options.seed)  # noqa: S311 - a model
        found = [play(draws, keepers) for _ in range(options.messages)]
        missed, away, at_last = (OF * sum(column) / len(found) for column in zip(*found, strict=True))
        print(
            f"{keepers}: {missed:.2f} missed; {at_last:.2f} with a question for the whole day at its end;"
            f" of {away:.1f} all that answered were away"
        )


if __name__ == "__main__":
    main()
