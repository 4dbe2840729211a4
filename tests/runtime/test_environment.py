"""The injected world: draws are uniform, and a seed replays them."""

from __future__ import annotations

import threading
import time
from collections import Counter
from itertools import permutations
from pathlib import Path

import pytest
import trio
import trio.testing

from hushcast_runtime.environment import simulated_environment, system_environment

DRAWS = 20_000


def critical(degrees: int) -> float:
    """The chi-square value that chance passes once in 10,000 (Wilson and Hilferty's approximation)."""
    spread = 2 / (9 * degrees)
    return degrees * (1 - spread + 3.719 * spread**0.5) ** 3


def chi_square(counts: Counter[object], cells: int, total: int) -> float:
    expected = total / cells
    absent = cells - len(counts)
    return sum((count - expected) ** 2 / expected for count in counts.values()) + absent * expected


@pytest.mark.parametrize("bound", [2, 3, 7, 10, 100, 255, 257])
def test_below_is_uniform(bound: int) -> None:
    env = simulated_environment(f"below {bound}")
    counts: Counter[object] = Counter(env.below(bound) for _ in range(DRAWS))
    assert set(counts) == set(range(bound))
    assert chi_square(counts, bound, DRAWS) < critical(bound - 1)


def test_below_one_is_zero() -> None:
    env = simulated_environment(1)
    assert {env.below(1) for _ in range(20)} == {0}


def test_below_has_no_bias_even_where_the_bound_is_large() -> None:
    """A remainder of too few bits would make the lower third of 3·2^62 twice as likely as the rest."""
    env = simulated_environment("large")
    bound = 3 * 2**62
    counts: Counter[object] = Counter(env.below(bound) // 2**62 for _ in range(DRAWS))
    assert chi_square(counts, 3, DRAWS) < critical(2)


def test_uniform_is_uniform_and_stays_within() -> None:
    env = simulated_environment("uniform")
    drawn = [env.uniform(-2.0, 3.0) for _ in range(DRAWS)]
    assert min(drawn) >= -2.0
    assert max(drawn) <= 3.0
    counts: Counter[object] = Counter(int((value + 2.0) * 10) for value in drawn)
    assert chi_square(counts, 50, DRAWS) < critical(49)


def test_samples_are_uniform_in_members_and_order() -> None:
    env = simulated_environment("sample")
    counts: Counter[object] = Counter(tuple(env.sample(["a", "b", "c", "d"], 2)) for _ in range(DRAWS))
    assert set(counts) == set(permutations("abcd", 2))
    assert chi_square(counts, 12, DRAWS) < critical(11)


def test_a_sample_of_all_is_a_uniform_shuffle() -> None:
    env = simulated_environment("shuffle")
    counts: Counter[object] = Counter(tuple(env.sample([1, 2, 3, 4], 4)) for _ in range(DRAWS))
    assert chi_square(counts, 24, DRAWS) < critical(23)


def test_a_sample_is_no_larger_than_what_there_is() -> None:
    env = simulated_environment(1)
    items = [1, 2, 3]
    assert sorted(env.sample(items, 10)) == items
    assert items == [1, 2, 3]
    assert env.sample([], 2) == []
    assert env.sample(items, 0) == []


def test_a_seed_replays_and_another_does_not() -> None:
    def some(seed: int | str) -> tuple[object, ...]:
        env = simulated_environment(seed)
        return env.randomness(32), env.below(10**9), env.uniform(0, 1), env.sample(list(range(50)), 9)

    assert some(1) == some(1)
    assert some("a name") == some("a name")
    assert some(1) != some(2)


def test_paths_of_their_own_have_names_of_their_own() -> None:
    env = system_environment()
    names = {env.isolation() for _ in range(1000)}
    assert len(names) == 1000
    assert all(1 <= len(name) <= 64 and name.isalnum() for name in names)


async def test_simulated_time_is_the_clock_of_the_run(autojump_clock: trio.testing.MockClock) -> None:
    env = simulated_environment(1, start=1000.0)
    begin = env.now()
    await trio.sleep(3600)
    assert env.now() - begin == 3600
    assert begin >= 1000.0
    assert await env.compute(lambda number: number + 1, 1) == 2


async def test_a_real_daemon_computes_in_a_thread() -> None:
    env = system_environment()
    assert await env.compute(threading.get_ident) != threading.get_ident()
    assert abs(env.now() - time.time()) < 5
    assert env.randomness(16) != env.randomness(16)


def test_a_clock_is_as_wrong_as_its_file_says(tmp_path: Path) -> None:
    file = tmp_path / "clock"
    env = system_environment(file)
    assert abs(env.now() - time.time()) < 60
    file.write_text("-3600.5")
    assert abs(env.now() + 3600.5 - time.time()) < 60
    file.write_text("86400")
    assert abs(env.now() - 86400 - time.time()) < 60
    file.write_text("half a li")
    assert abs(env.now() - time.time()) < 60
