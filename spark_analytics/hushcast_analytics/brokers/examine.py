"""Examining a network of brokers: many draws of who colludes, and whose interests they read by which attack.

Everybody but the root colludes with the same probability, independently, in each draw anew. The ground truth
poses the questions (what did each honest client ask for?), judges answers, and grants two things: the topic
of a word that colluders have under no layer, where they know the topic, for then they compute the word; and
what their own clients wanted and were sent.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from hushcast_analytics.brokers.drawn import drawn
from hushcast_analytics.brokers.followed import followed
from hushcast_analytics.brokers.opened import opened
from hushcast_analytics.profile_runs import Wanted
from hushcast_analytics.reading import Traces
from hushcast_analytics.report.brokers import attacks_on
from hushcast_analytics.steps import Step
from hushcast_analytics.summary import variance_of_mean
from hushcast_protocol.base.errors import DecodeError
from hushcast_protocol.base.intervals import wilson
from hushcast_protocol.brokers.privacy import Privacy, read_privacy

Row = dict[str, Any]

_DRAWING_COST, _PLAYING_COST = 3.0, 12.0  # seconds, as in `analyze`


class Brokers:
    """Runs over brokers, examined in steps; then `rows` has what each attack read.

    A row has `attack`, `target` (`interest`), `profile` and what that says, `model`, `layers` and
    `aggregates`, `colluding`, `draws`, `trials`, `accuracy` (the share of honest clients' interests that were
    named, rightly: what is not named is not guessed at) with `accuracy_low` and `accuracy_high` (Wilson's,
    95 %, corrected for draws), and `bound`, which is 0.
    """

    def __init__(self, traces: Traces, wanted: Wanted) -> None:
        self._traces, self._wanted = traces, wanted
        self.rows: list[Row] = []

    def steps(self) -> list[Step]:
        """Return the steps, which follow each other."""
        return [
            Step("brokers: who colludes", _DRAWING_COST, self._draw),
            Step("brokers: whose interests colluders read", _PLAYING_COST, self._play),
        ]

    def _draw(self) -> None:
        self._drawn = drawn(self._traces.truths, self._wanted)

    def _play(self) -> None:
        draw, answer = self._drawn, ["copy", "owner", "element"]
        found = opened(self._traces, draw).unionByName(followed(self._traces, draw))
        said = found.groupBy(*answer).agg(F.collect_set("attack").alias("by"))
        asked = draw.questions.join(F.broadcast(draw.copies), "run")
        honest = asked.join(F.broadcast(draw.members.select("copy", "node")), ["copy", "node"], "left_anti")
        judged = honest.join(said, answer, "left")
        for profile, rows in _summed(judged).items():
            privacy = _privacy(profile)
            self.rows += [
                _figures(row, attack, privacy) for row in rows for attack in attacks_on(privacy.model)
            ]


def _privacy(text: str) -> Privacy:
    try:
        return read_privacy(text)
    except DecodeError:
        return Privacy()  # as brokers of an earlier version, which knew one


def _summed(judged: DataFrame) -> dict[str, list[Row]]:
    """Return rows by profile, one a share: sums over draws, of each attack's hits `hits`, `hh` and `hn`."""
    by = F.coalesce("by", F.array())
    names = attacks_on("full")
    read = [F.count_if(F.col("known") & F.array_contains(by, name)).alias(name) for name in names]
    each = judged.groupBy("profile", "share", "copy").agg(F.count("*").cast("double").alias("n"), *read)
    n = F.col("n")
    sums = each.groupBy("profile", "share").agg(
        F.count("*").alias("draws"), F.sum(n).alias("n"), F.sum(n * n).alias("nn"), *map(_sums, names)
    )
    found: dict[str, list[Row]] = {}
    for row in sums.orderBy("profile", "share").collect():
        found.setdefault(row["profile"], []).append(row.asDict(recursive=True))
    return found


def _sums(name: str) -> Column:
    hits, n = F.col(name).cast("double"), F.col("n")
    return F.struct(
        F.sum(hits).alias("hits"), F.sum(hits * hits).alias("hh"), F.sum(hits * n).alias("hn")
    ).alias(name)


def _figures(row: Row, attack: str, privacy: Privacy) -> Row:
    n, draws, of = row["n"], row["draws"], row[attack]
    accuracy = of["hits"] / n
    effective = n
    if draws > 1 and 0 < accuracy < 1:
        between = variance_of_mean(draws, n, accuracy, of["hh"], of["hn"], row["nn"])
        effective = n / max(1.0, between * n / (accuracy * (1 - accuracy)))
    low, high = wilson(accuracy, effective)
    return {
        "attack": attack,
        "target": "interest",
        "profile": privacy.text,
        "model": privacy.model,
        "layers": privacy.layers if privacy.model == "full" else None,
        "aggregates": privacy.aggregates,
        "colluding": row["share"],
        "draws": draws,
        "trials": int(n),
        "accuracy": accuracy,
        "accuracy_low": low,
        "accuracy_high": high,
        "bound": 0.0,
    }
