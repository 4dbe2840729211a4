"""Names against admission: the model's figures, the authorities' own count beside it, and Spark's."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from pyspark.sql import SparkSession

from benchmarks.admission.asked import DAY, TRY, VALID, Asked
from benchmarks.admission.days import WAITING, Run
from benchmarks.admission.growth import by_day, days, honest_newcomers, reached
from hushcast_protocol.authorities.listing import settle
from hushcast_protocol.authorities.seat_admission import SeatAdmission

FLOOD = Asked(runs=2, days=40, relays=1000)


def share(asked: Asked, day: int) -> float:
    row = Run(replace(asked, days=day + 1), 0).rows()[-1]
    return row["sybils"] / (row["sybils"] + row["honest"])


@pytest.mark.slow
def test_names_alone_reach_a_tenth_in_five_days_and_half_in_thirty_five() -> None:
    """Two percent a day compound: 1 - 1.02^-t. Nobody is seated on the first day."""
    assert Run(replace(FLOOD, days=1), 0).rows()[0]["sybils"] == 0
    for day in (5, 6, 20, 34):
        assert share(FLOOD, day) == pytest.approx(1 - 1.02**-day, abs=0.008)
    assert share(FLOOD, 5) < 0.1 < share(FLOOD, 6)
    assert share(FLOOD, 34) < 0.5 == share(FLOOD, 36)  # and the network is full


@pytest.mark.parametrize("age", [False, True])
def test_it_seats_as_many_as_authorities_do(age: bool) -> None:
    """A small network, name by name through `settle`, every hour of eight days."""
    asked = Asked(runs=1, days=8, relays=60, newcomers=3, growth=100, age=age, names=40)
    rows = Run(asked, 0).rows()
    relays = [(b"h" + number.to_bytes(31, "big"), bytes(16), 0) for number in range(asked.relays)]
    names = [(b"s" + number.to_bytes(31, "big"), bytes(16), 0) for number in range(40)]
    rules = SeatAdmission(asked.newcomers, asked.growth, age, 0)
    first = 24 * 50
    last = settle(relays, None, first - 1, rules, None)
    for epoch in range(first, first + 24 * asked.days):
        last = settle(relays + names, last, epoch, rules, bytes([epoch // 24 % 256]) * 32)
        if epoch % 24 == 23:
            row = rows[epoch // 24 - 50]
            sybils = sum(relay[:1] == b"s" for relay, *_ in last.seats)
            assert (sybils, len(last.waiting)) == (row["sybils"], row["waiting_sybils"])


def test_work_bounds_names_by_cores() -> None:
    asked = replace(FLOOD, work=20, cores=10.0)
    a_day = 10 * DAY / (TRY * 2**20)
    assert [asked.names_on(day) for day in (0, 1, VALID, 200)] == [
        0,
        math.floor(a_day),
        math.floor(VALID * a_day),
        math.floor(VALID * a_day),
    ]
    assert replace(asked, names=3).names_on(90) == 3
    rows = Run(replace(asked, days=60), 0).rows()
    assert rows[-1]["sybils"] == math.floor(VALID * a_day)


def test_honest_newcomers_come_in_at_once_where_nobody_floods_and_late_where_somebody_does() -> None:
    quiet = Run(replace(FLOOD, names=0, arriving=5.0), 0).rows()
    came = sum(row["seated_honest"] for row in quiet)
    assert came > 150
    assert sum(row["delay"] for row in quiet) / came < 2.0
    assert max(row["waiting_honest"] for row in quiet) < 20
    flooded = Run(replace(FLOOD, arriving=5.0), 0).rows()
    assert sum(row["seated_honest"] for row in flooded) < came / 10
    assert all(row["honest"] + row["sybils"] <= 2000 for row in flooded)
    assert flooded[-1]["waiting_sybils"] > WAITING


@pytest.mark.spark
def test_spark_counts_the_same_whatever_the_partitions(spark: SparkSession) -> None:
    cases = [replace(FLOOD, days=12, arriving=3.0), replace(FLOOD, days=12, age=False)]
    rows = days(spark, cases).cache()
    drawn = {(w, r): Run(one, r).rows() for w, one in enumerate(cases) for r in range(one.runs)}
    assert rows.count() == 2 * 2 * 12
    for row in rows.collect():
        expected = drawn[row["which"], row["run"]][row["day"]]
        assert {name: row[name] for name in expected} == expected
    tenth = {row["which"]: row for row in reached(rows, 0.1).collect()}
    assert tenth[0]["runs"] == tenth[1]["runs"] == 2
    assert tenth[1]["after"] == pytest.approx(5.4, abs=0.1)  # whole relays: a little later
    assert tenth[0]["after"] == pytest.approx(6.4, abs=0.2)
    assert not reached(rows, 0.5).collect()
    means = {(row["which"], row["day"]): row for row in by_day(rows).collect()}
    assert means[1, 11]["low"] <= means[1, 11]["share"] <= means[1, 11]["high"]
    honest = {row["which"]: row for row in honest_newcomers(rows).collect()}
    total = [sum(row["seated_honest"] for row in drawn[0, run]) for run in range(2)]
    assert honest[0]["seated"] == pytest.approx(sum(total) / 2)
