"""Examining a network of brokers: many draws of who colludes, and whose interests they read by which attack.

Everybody but the root colludes with the same probability, independently, in each draw anew. The ground truth
poses the questions (what did each honest client ask for?), judges answers, and grants two things: the topic
of a word that colluders have under no layer, where they know the topic, for then they compute the word; and
what their own clients wanted.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from hushcast_analytics.adversaries import is_known
from hushcast_analytics.brokers.playing import played
from hushcast_analytics.keeping import kept
from hushcast_analytics.profile_runs import Wanted
from hushcast_analytics.reading import Traces
from hushcast_analytics.report.brokers import ATTACKS, OPENING
from hushcast_analytics.steps import Step
from hushcast_analytics.summary import variance_of_mean
from hushcast_protocol.base.errors import DecodeError
from hushcast_protocol.base.intervals import wilson
from hushcast_protocol.brokers.privacy import Privacy, read_privacy

Row = dict[str, Any]

DRAWS = 64  # of who colludes: with 160 honest interests, ten thousand trials
COLLUDING = ("inner", "edge", "client")
"""Roles of those who may collude; the root reads all that it distributes."""
WATCHING = ("known-topic",)
"""Attacks on what is sent."""
SHOWN = ("kind", "node", "own", "other", "key", "path", "client", "filter", "child", "show")
"""What is played on, of the colluders' rows."""

_FOUND = "copy string, attack string, owner string, element string"
_DRAWING_COST, _PLAYING_COST, _WATCHING_COST = 3.0, 10.0, 4.0  # seconds, as in `analyze`


class Brokers:
    """Runs over brokers, examined in steps; then `rows` has what each attack read.

    A row has `attack`, `target` (`interest`), `profile` and what that says, `model`, `layers` and
    `aggregates`, `colluding`, `draws`, `trials`, `accuracy` (the
    share of honest clients' interests that were named, rightly: what is not named is not guessed at) with
    `accuracy_low` and `accuracy_high` (Wilson's, 95 %, corrected for draws), and `bound`, which is 0.
    """

    def __init__(self, traces: Traces, profiles: dict[str, str], wanted: Wanted) -> None:
        """`profiles` are those of all runs in `traces`, by their names."""
        self._traces, self._profiles, self._wanted = traces, profiles, wanted
        self.rows: list[Row] = []

    def steps(self) -> list[Step]:
        """Return the steps, which follow each other."""
        return [
            Step("brokers: who colludes", _DRAWING_COST, self._draw),
            Step("brokers: what colluders open", _PLAYING_COST, self._open),
            Step("brokers: what colluders see sent", _WATCHING_COST, self._watch),
        ]

    def _draw(self) -> None:
        truths, wanted = self._traces.truths, self._wanted
        started = truths.where(F.col("kind") == "started").where(F.col("role").isin(*COLLUDING))
        people = started.select("run", "node").distinct()
        copies = people.select(
            "run", "node", F.explode(F.array(*map(F.lit, wanted.colluding))).alias("share")
        ).withColumn("draw", F.explode(F.sequence(F.lit(1), F.lit(DRAWS))))
        # The same for all shares, so that a larger one has the colluders of a smaller one and more.
        chance = F.pmod(F.xxhash64(F.lit(wanted.seed), "run", "node", "draw"), F.lit(1 << 40))
        copies = copies.withColumn("copy", F.concat_ws("@", "run", "share", "draw"))
        self._everybody = copies.select("run", "share", "copy").distinct()
        drawn = copies.where(chance < F.col("share") * F.lit(float(1 << 40)))
        self._members = kept(drawn.select("run", "copy", "node"))
        self._questions = kept(_questions(truths, wanted))

    def _open(self) -> None:
        seen = self._traces.observations.join(F.broadcast(self._members), ["run", "node"])
        layered = {run: text for run, text in self._profiles.items() if _privacy(text).model == "full"}
        tables = [_opened_by_names(seen, self._traces.truths)]
        for run, text in layered.items():
            rows = seen.where(F.col("run") == run).where(
                F.col("kind").isin("agreed", "compared", "asked", "advertised")
            )
            words = self._questions.where((F.col("run") == run) & F.col("known"))
            tables.append(_opened_by_keys(rows, words, self._members, _privacy(text)))
        self._count(reduce(DataFrame.unionByName, tables), OPENING)

    def _watch(self) -> None:
        self._count(_followed(self._traces, self._members, self._questions), WATCHING)
        order = list(ATTACKS)
        self.rows.sort(key=lambda row: (row["profile"], row["colluding"], order.index(row["attack"])))

    def _count(self, found: DataFrame, attacks: tuple[str, ...]) -> None:
        asked = self._questions.where("known is not null").join(self._everybody, "run")
        honest = kept(asked.join(self._members, ["copy", "node"], "left_anti").drop("run"))
        hits = found.select("copy", "owner", "element", "attack").distinct().where("element is not null")
        right = honest.where("known").join(hits, ["copy", "owner", "element"])
        run = F.substring_index("copy", "@", 1)
        read = right.groupBy("attack", "copy").agg(F.count("*").alias("hits"))
        names = F.explode(F.array(*map(F.lit, attacks)))
        whole = honest.groupBy("copy", "share").agg(F.count("*").alias("n")).withColumn("attack", names)
        each = whole.join(read, ["copy", "attack"], "left").fillna({"hits": 0})
        by_profile = F.create_map(*(F.lit(text) for pair in self._profiles.items() for text in pair))
        labelled = each.withColumn("profile", F.element_at(by_profile, run))
        self.rows += _summed(labelled)


def _privacy(text: str) -> Privacy:
    try:
        return read_privacy(text)
    except DecodeError:
        return Privacy()


def _questions(truths: DataFrame, wanted: Wanted) -> DataFrame:
    """Return (run, node, owner, element, topic, known): what each client asked for, and by which key.

    Where no words were asked for under layers, an owner is the daemon's name and an element that of its
    subscription.
    """
    layered = truths.where("kind = 'wanted'").select(
        "run", "node", F.col("own").alias("owner"), "element", "topic"
    )
    plain = (
        truths.where("kind = 'subscribed'")
        .join(layered.select("run").distinct(), "run", "left_anti")
        .select("run", "node", F.col("node").alias("owner"), F.col("mailbox").alias("element"), "topic")
    )
    known = is_known(wanted.topics_known, wanted.seed, "topic").alias("known")
    return layered.unionByName(plain).distinct().select("*", known)


def _opened_by_names(seen: DataFrame, truths: DataFrame) -> DataFrame:
    """Return what an edge broker reads that is shown filters in clear: whose client asks for what.

    It knows a client by its key, and asks under a name; that it is this daemon's is what the truth says.
    """
    whose = truths.where("kind = 'subscribed'").select(
        "run", F.col("node").alias("owner"), F.col("mailbox").alias("name")
    )
    asked = seen.where("kind = 'asked'").select("run", "copy", "name")
    layered = truths.where("kind = 'wanted'").select("run").distinct()
    read = asked.join(whose, ["run", "name"]).join(layered, "run", "left_anti")
    return read.select("copy", F.lit("dictionary").alias("attack"), "owner", F.col("name").alias("element"))


def _opened_by_keys(rows: DataFrame, words: DataFrame, members: DataFrame, privacy: Privacy) -> DataFrame:
    """Return what colluders open, draw by draw: each sees its own rows and its dictionary alone."""
    table = rows.select("copy", *SHOWN)
    if privacy.profile == "paper":
        copies = members.select("run", "copy").distinct()
        listed = words.select("run", F.col("element").alias("key")).distinct().join(copies, "run")
        guessed = listed.select("copy", F.lit("word").alias("kind"), "key")
        table = table.unionByName(guessed, allowMissingColumns=True)
    return table.groupBy("copy").applyInArrow(_player(privacy.text), _FOUND)


def _player(text: str) -> Callable[[pa.Table], pa.Table]:
    def play(table: pa.Table) -> pa.Table:
        rows = table.to_pylist()
        copy = rows[0]["copy"]
        words = [bytes.fromhex(row["key"]) for row in rows if row["kind"] == "word"]
        found = set(played(read_privacy(text).action, (row for row in rows if row["kind"] != "word"), words))
        columns = [
            [copy] * len(found),
            [one.attack for one in found],
            [one.owner.hex() for one in found],
            [one.element.hex() for one in found],
        ]
        return pa.table([pa.array(column, pa.string()) for column in columns], _NAMES)

    return play


_NAMES = [part.split()[0] for part in _FOUND.split(", ")]


def _followed(traces: Traces, members: DataFrame, questions: DataFrame) -> DataFrame:
    """Return whom a broker sent all that a topic carried, as a colluding client that wants it knows.

    Ids stay the same all the way down, whatever hides words.
    """
    mine = ["run", "node"]
    seen = traces.observations.join(F.broadcast(members), mine)
    outside = seen.where("kind = 'opened'").select(
        "copy", "node", F.col("inside").alias("message"), F.col("message").alias("outside")
    )
    came = traces.truths.where("kind = 'delivered'").join(F.broadcast(members), mine)
    carried = (
        came.join(outside, ["copy", "node", "message"], "left")
        .select("copy", "topic", F.coalesce("outside", "message").alias("message"))
        .distinct()
    )
    whole = carried.groupBy("copy", "topic").agg(F.count("*").alias("whole"))
    sent = seen.where("kind = 'sent'").select("run", "copy", "next", "message").distinct()
    got = sent.join(carried, ["copy", "message"]).groupBy("run", "copy", "next", "topic").count()
    wanting = got.join(whole, ["copy", "topic"]).where(F.col("count") == F.col("whole"))
    clients = _clients(traces).join(questions, ["run", "node"]).withColumnRenamed("client", "next")
    named = wanting.join(clients, ["run", "next", "topic"])
    return named.select("copy", F.lit("known-topic").alias("attack"), "owner", "element")


def _clients(traces: Traces) -> DataFrame:
    """Return (run, client, node): whose key at an edge broker it is, to judge by."""
    asked = traces.observations.where("kind = 'asked'").select("run", "client", "name").distinct()
    named = traces.truths.where("kind = 'subscribed'").select("run", "node", F.col("mailbox").alias("name"))
    return asked.join(named, ["run", "name"]).select("run", "client", "node").distinct()


def _summed(each: DataFrame) -> list[Row]:
    """Return a row for each profile, attack and share, over all draws of all runs."""
    n, hits = F.col("n").cast("double"), F.col("hits").cast("double")
    sums = each.groupBy("profile", "attack", "share").agg(
        F.count("*").alias("draws"),
        *(_sum(column, name) for column, name in ((n, "n"), (hits, "hits"), (n * n, "nn"))),
        *(_sum(column, name) for column, name in ((hits * hits, "hh"), (hits * n, "hn"))),
    )
    return [_figures(row.asDict()) for row in sums.orderBy("profile", "attack", "share").collect()]


def _sum(column: Column, name: str) -> Column:
    return F.sum(column).alias(name)


def _figures(row: Row) -> Row:
    n, draws = row["n"], row["draws"]
    accuracy = row["hits"] / n
    effective = n
    if draws > 1 and 0 < accuracy < 1:
        between = variance_of_mean(draws, n, accuracy, row["hh"], row["hn"], row["nn"])
        effective = n / max(1.0, between * n / (accuracy * (1 - accuracy)))
    low, high = wilson(accuracy, effective)
    privacy = _privacy(row["profile"])
    return {
        "attack": row["attack"],
        "target": "interest",
        "profile": row["profile"],
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
