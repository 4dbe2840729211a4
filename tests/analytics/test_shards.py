"""Shards drawn on Spark: as the protocol assigns them, whatever does the work, and spread as they should."""

from __future__ import annotations

from collections import Counter
from math import comb

import pytest

from hushcast_analytics.errors import TracesError
from hushcast_analytics.generator.presence import presence
from hushcast_analytics.generator.scenario import GeneratorScenario
from hushcast_analytics.shards import shard_draws
from hushcast_analytics.shards.presence_suspects import ChurnModel, named
from hushcast_analytics.shards.shard_draws import ShardScenario, shard_days
from hushcast_analytics.shards.shard_figures import figures
from hushcast_protocol.shards.assignment import shard_of_relay

SMALL = ShardScenario(relays=2_000, shards=4, days=3, colluding=0.1, seed=7)


def recounted(asked: ShardScenario) -> Counter[tuple[int, int, bool]]:
    return Counter(
        (day, shard_of_relay(asked.beacon(day), asked.relay(number), asked.bits), number < asked.colluders)
        for day in range(asked.days)
        for number in range(asked.relays)
    )


@pytest.mark.spark
def test_shards_are_the_protocols_in_any_number_of_pieces(spark, monkeypatch):
    expected = recounted(SMALL)
    for piece in (shard_draws.RELAYS_A_PIECE, 77):
        monkeypatch.setattr(shard_draws, "RELAYS_A_PIECE", piece)
        rows = shard_days(spark, SMALL).collect()
        assert len(rows) == 12
        for row in rows:
            colluders = expected[row.day, row.shard, True]
            assert row.colluders == colluders
            assert row.relays == colluders + expected[row.day, row.shard, False]


@pytest.mark.spark
def test_figures_are_of_all_shard_days(spark):
    rows = [(0, 0, 100, 15), (0, 1, 100, 16), (1, 0, 120, 30), (1, 1, 80, 0)]
    made = figures(
        spark.createDataFrame(rows, "day long, shard long, relays long, colluders long"), 1000, 300
    )
    assert (made.shard_days, made.above_15, made.above_20) == (4, 2, 1)
    assert (made.smallest, made.largest, made.client_bytes) == (80, 120, 31_000)


@pytest.mark.spark
def test_a_shard_may_have_no_relay(spark):
    made = figures(shard_days(spark, ShardScenario(relays=3, shards=16)), 1000, 300)
    assert (made.shard_days, made.smallest) == (16, 0)


@pytest.mark.slow
def test_colluders_come_together_as_seldom_as_draws_say():
    # Of 50 relays in one of 8 shards 5 of 40 colluders are expected: against the hypergeometric tail.
    asked = ShardScenario(relays=400, shards=8, days=400, colluding=0.1)
    shards = recounted(asked)
    many = sum(shards[day, shard, True] >= 10 for day in range(asked.days) for shard in range(8))
    chance = sum(comb(40, hits) * (1 / 8) ** hits * (7 / 8) ** (40 - hits) for hits in range(10, 41))
    expected = chance * asked.days * 8  # 93
    assert abs(many - expected) < 5 * expected**0.5


@pytest.mark.parametrize("shards", [3, 0, 8192])
def test_impossible_numbers_of_shards_are_refused(shards):
    with pytest.raises(TracesError, match="power of two"):
        ShardScenario(relays=10, shards=shards)


def by_hand(asked: ShardScenario, moving: ChurnModel) -> list[list[bool]]:
    """Return whether each relay is there, epoch by epoch: the generator's presence of as many relays."""
    wanted = GeneratorScenario(
        nodes=asked.relays,
        subscribers=1,
        publications=0,
        epochs=24 * asked.days,
        clients=0,
        up=moving.up,
        down=moving.down,
        seed=asked.seed,
    )
    return presence(wanted).tolist()


@pytest.mark.spark
def test_who_is_there_like_nobody_else_is_named(spark, monkeypatch):
    asked, moving = ShardScenario(relays=300, shards=1, days=3, seed=5), ChurnModel(up=20, down=8)
    monkeypatch.setattr(shard_draws, "RELAYS_A_PIECE", 77)
    there = by_hand(asked, moving)
    days = [[tuple(row[24 * day : 24 * day + 24]) for row in there] for day in range(asked.days)]
    counts = [Counter(patterns) for patterns in days]
    fresh = sum(
        any(counts[day][days[day][relay]] == 1 for day in range(asked.days)) for relay in range(asked.relays)
    )
    whole = Counter(map(tuple, there))
    made = named(spark, asked, moving)
    assert made.named_fresh == fresh / asked.relays
    assert made.named_staying == sum(count for count in whole.values() if count == 1) / asked.relays
    assert 0 < made.named_fresh < made.named_staying


@pytest.mark.parametrize(("up", "down"), [(0.5, 2), (2, 0.5)])
def test_nobody_comes_and_goes_within_an_epoch(up, down):
    with pytest.raises(TracesError, match="1 at least"):
        ChurnModel(up, down)
