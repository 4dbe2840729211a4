"""The model of hosts' questions for single epochs, beside what can be reckoned."""

from __future__ import annotations

import random

from benchmarks.models.windows import play


def test_a_few_of_thousands_are_missed_where_three_keep_and_none_where_six_do() -> None:
    of = 4000
    missed = {}
    for keepers in (1, 3, 6):
        draws = random.Random(1)
        found = [play(draws, keepers) for _ in range(of)]
        missed[keepers] = sum(one.by_windows for one in found) / of
        assert all(one.by_windows for one in found if one.with_a_last_question)
    # One that has it is away at the question with 2 %, all day long with 3 %, and late on the day longer.
    assert 0.02 < missed[1] < 0.1
    assert missed[3] < missed[1] ** 2
    assert missed[6] == 0.0
