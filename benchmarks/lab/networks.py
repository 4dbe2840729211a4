"""Small networks: observations and truths of many independent runs, each with a few topics.

Each run is drawn from its own number, so partitions do not matter. The colluders' lines are those that
`hushcast testnet simulate` would write.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, StructType

from benchmarks.lab.asked import Asked
from benchmarks.lab.drawing import Columns, Numbers, Run
from hushcast_analytics.marks import marks
from hushcast_analytics.trace_schemas import OBSERVATIONS, TRUTHS

EPOCH = 3600.0  # seconds
LABEL_BITS = 14  # bits that one label sets in a trail
HOP = 0.3  # seconds
BETWEEN_DROPS = 0.1  # seconds from a message's drop at one origin to that at the next
SCANNER = "scanner"  # the client of an active adversary
INSTALLING = 20  # seconds in which the instructions of a tree reach its relays
PARTITIONS = 8
ROWS_A_PARTITION = 20_000  # about a second of work: more tasks cost more than they balance

# Odd, so a permutation of 32 bits: the order of names tells nothing. And what undoes it.
_MIX = 2654435761
_UNMIX = pow(_MIX, -1, 1 << 32)

_SEATED = "topic int, epoch int, tree int, owner int, node int, above int, children int"
_HOPS = "number int, origin int, hop int, node int, before int, after int, forwarded int"
_PASSING = f"topic int, epoch int, tree int, owner int, {_HOPS}"
_PUBLISHED = "topic int, epoch int, number int, author int, origins array<int>"


@dataclass(frozen=True)
class Lab(Asked):
    """What was asked for, as tables."""

    def observations(self, spark: SparkSession, watched: DataFrame | None = None) -> DataFrame:
        """Return the observations of all runs, but for `rosters`.

        With `watched` (run, node), those of their daemons and few others: nine of ten are honest, and no
        attack sees theirs.
        """
        rows = self._installed(spark, watched)
        if self.messages:
            rows = rows.unionByName(self._passing(spark, watched, scan=False))
        if self.scan:
            rows = rows.unionByName(self._passing(spark, watched, scan=True))
        if self.down:
            rows = rows.unionByName(self._tried(spark, watched))
        return rows.coalesce(self._partitions)

    def relay_names(self, spark: SparkSession) -> DataFrame:
        """Return (run, node) of all relays."""
        return self._numbered(spark, self.relays).select("run", _name("index").alias("node"))

    def _numbered(self, spark: SparkSession, count: int) -> DataFrame:
        numbers = F.explode(F.sequence(F.lit(0), F.lit(count - 1)))
        return self._runs(spark).select("run", numbers.alias("index"))

    def _runs(self, spark: SparkSession) -> DataFrame:
        runs = spark.range(0, self.runs, 1, self._partitions)
        return runs.select("id", F.concat(F.lit(f"{self.seed}."), "id").alias("run"))

    @property
    def _partitions(self) -> int:
        rows = self.topics * self.trees * self.relays * (1 + self.messages) * self.epochs * self.runs
        return min(PARTITIONS, self.runs, -(-rows // ROWS_A_PARTITION))

    def _drawn(
        self,
        spark: SparkSession,
        columns: str,
        drawn: Callable[[Run], Iterator[Columns]],
        watched: DataFrame | None = None,
    ) -> DataFrame:
        """Return what is drawn of each run, with `run`, `root` and `token` where there is a topic."""
        runs, everyone = self._runs(spark), watched is None
        if watched is not None:
            mine = watched.groupBy("run").agg(F.collect_set("node").alias("watched"))
            runs = runs.join(mine, "run", "left").repartition(self._partitions, "run")
            runs = runs.withColumn("watched", F.coalesce("watched", F.array().cast("array<string>")))

        def draw(batches: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
            for batch in batches:
                for row in batch.itertuples():
                    theirs = None if everyone else numbers_of(row.watched)
                    chunks = list(drawn(Run(self, int(row.id), theirs)))
                    yield pd.DataFrame(
                        {name: _joined([c[name] for c in chunks]) for name in chunks[0]}
                    ).assign(run=row.run)

        rows = runs.mapInPandas(draw, f"run string, {columns}")
        if "owner" in rows.columns:
            box = F.floor(F.col("topic") / self.topics_each) if self.shared else F.col("topic")
            root = _name("owner") if self.listed else F.concat(F.lit("mailbox "), box)
            rows = rows.withColumn("root", root).withColumn("token", _token("topic"))
        return rows

    def _share(self, purpose: str, *names: Column | str) -> Column:
        chance = F.xxhash64(F.lit(self.seed), F.lit(purpose), *names)
        return F.pmod(chance, F.lit(1 << 40)) / F.lit(float(1 << 40))

    @property
    def _renewed(self) -> Column:
        """When a tree is installed in an epoch."""
        who = ("run", "owner", "epoch") if self.together else ("run", "topic", "epoch")
        return F.col("epoch") * EPOCH + self._share("renewal", *who) * (EPOCH - INSTALLING)

    @property
    def _begun(self) -> Column:
        """When each of a person's two devices begins the topic, the second told in the epoch after."""
        person = F.floor(F.col("topic") / 2)
        first = self._share("begun", "run", person) * self.begun_within
        followed = self._share("followed", "run", person) * self.followed_within
        second = F.floor(first) + 1 + self._share("told", "run", person) + followed
        return F.when(is_first_device("topic"), first).otherwise(second) * EPOCH

    def _installed(self, spark: SparkSession, watched: DataFrame | None) -> DataFrame:
        moment = self._begun if self.begun_within else self._renewed
        reached = self._share("reached", "run", "topic", "epoch", "tree", "node") * INSTALLING
        rows = (
            self._drawn(spark, _SEATED, Run.seated, watched)
            .withColumn("handed", _name("above"))
            .withColumn("kind", F.explode(F.array(F.lit("installed"), F.lit("passed"))))
            .where("kind = 'installed' or above >= 0")
        )
        taken = F.col("kind") == "installed"
        return _observed(
            rows,
            node=F.when(taken, _name("node")).otherwise(F.col("handed")),
            time=moment + reached,
            epoch=F.floor((moment + reached) / EPOCH),
            kind="kind",
            mark=F.when(taken, marks("token", _name("node"))),
            previous=F.when(taken, F.col("handed")),
            next=F.when(taken, F.coalesce("handed", "root")).otherwise(_name("node")),
            lease=F.concat_ws("-", "topic", "epoch", "tree"),
            elements=F.when(taken, F.lit(1) if self.listed else F.col("children") + 1),
            children=F.when(taken, F.col("children")),
        )

    def _passing(self, spark: SparkSession, watched: DataFrame | None, scan: bool) -> DataFrame:
        count = self.spanned if scan else self.messages
        start = F.col("epoch") * EPOCH + (F.col("number") + 1) * F.lit(EPOCH / (count + 1))
        rows = (
            self._drawn(spark, _PASSING, lambda run: run.passing(scan), watched)
            .withColumn("kind", F.explode(F.array(F.lit("drop"), F.lit("received"), F.lit("sent"))))
            .where("kind != 'drop' or (hop = 0 and tree = 0)")
            .where("kind != 'sent' or forwarded = 1")
        )
        received = F.col("kind") == "received"
        outcome = F.when(F.col("forwarded") == 1, F.lit("forwarded")).otherwise(F.lit("duplicate"))
        return _observed(
            rows,
            node=_name("node"),
            time=start + F.col("origin") * BETWEEN_DROPS + F.col("hop") * HOP,
            kind="kind",
            message=_message(scan),
            tokens=F.array("token"),
            previous=F.when(received, _name("before")),
            next=F.when(F.col("kind") == "sent", F.coalesce(_name("after"), "root")),
            outcome=F.when(received, outcome),
            popcount=F.when(received, F.col("hop") * LABEL_BITS),
        )

    def _tried(self, spark: SparkSession, watched: DataFrame | None) -> DataFrame:
        """Once an epoch, each relay at the top has something for the mailbox, and reaches it or not."""
        columns = "topic int, owner int, epoch int, node int, up int"
        rows = self._drawn(spark, columns, Run.tops, watched)
        there = F.col("up") == 1
        return _observed(
            rows,
            node=_name("node"),
            time=F.col("epoch") * EPOCH + EPOCH / 2,
            kind=F.when(there, F.lit("sent")).otherwise(F.lit("unreached")),
            message=F.when(there, F.concat_ws("-", F.lit("try"), "topic", "epoch")),
            tokens=F.when(there, F.array("token")),
            next="root",
        )

    def rosters(self, spark: SparkSession) -> DataFrame:
        """Return the observations of rosters, one for each epoch in which they may differ."""
        rows = self._drawn(spark, "epoch int, listed array<int>", Run.rosters)
        listed = rows.withColumn("all", F.sort_array(F.transform("listed", _name)))
        return _observed(
            listed,
            node=F.col("all")[0],
            time=F.col("epoch") * EPOCH,
            kind=F.lit("roster"),
            relays=F.size("all"),
            listed="all",
        )

    def truths(self, spark: SparkSession) -> DataFrame:
        """Return the truths of all runs; trees are left out."""
        people = self._numbered(spark, self.people).withColumn("epoch", F.lit(0))
        role = F.when(F.col("index") < self.relays, F.lit("relay")).otherwise(F.lit("client"))
        started = _told(people, node=_name("index"), kind=F.lit("started"), role=role)
        topics = self._drawn(spark, "topic int, owner int", lambda run: iter([run.topics()]))
        topics = topics.withColumn("epoch", F.lit(0))
        of_topic = {
            "node": _name("owner"),
            "topic": F.col("topic").cast("string"),
            "mailbox": F.col("root"),
        }
        subscribed = _told(topics, kind=F.lit("subscribed"), **of_topic)
        tokens = F.array("token", "token")
        installed = _told(
            topics, kind=F.lit("installed"), day=F.lit(0), depth=F.lit(self.depth), tokens=tokens, **of_topic
        )
        told = started.unionByName(subscribed).unionByName(installed)
        if self.messages:
            told = told.unionByName(self._published(spark, scan=False))
        if self.scan:
            runs = self._runs(spark).withColumn("epoch", F.lit(0))
            scanner = _told(runs, node=F.lit(SCANNER), kind=F.lit("started"), role=F.lit("client"))
            told = told.unionByName(scanner).unionByName(self._published(spark, scan=True))
        return told.coalesce(self._partitions)

    def _published(self, spark: SparkSession, scan: bool) -> DataFrame:
        rows = self._drawn(spark, _PUBLISHED, lambda run: run.publications(scan))
        return _told(
            rows,
            node=F.coalesce(_name("author"), F.lit(SCANNER)),
            kind=F.lit("published"),
            topic=F.col("topic").cast("string"),
            message=_message(scan),
            origins=F.transform("origins", _name),
        )


def is_first_device(topic: str) -> Column:
    """Tell of a column of topics' numbers which stand for a subscription of a person's first device."""
    return F.col(topic).cast("int") % 2 == 0


def _name(index: Column | str) -> Column:
    """Return the name of a participant's number, null for -1."""
    number = F.col(index) if isinstance(index, str) else index
    mixed = F.pmod(number.cast("long") * F.lit(_MIX), F.lit(1 << 32))
    return F.when(number >= 0, F.lower(F.lpad(F.hex(mixed), 8, "0")))


def _token(topic: str) -> Column:
    """Return a topic's trunk token: its number, as opaque to the attacks as any other."""
    return F.lower(F.lpad(F.hex(F.col(topic).cast("long")), 32, "0"))


def _message(scan: bool) -> Column:
    return F.concat_ws("-", F.lit("scan" if scan else "message"), "topic", "epoch", "number")


def numbers_of(names: Sequence[str]) -> Numbers:
    """Return the numbers of named relays."""
    mixed = np.array([int(name, 16) for name in names], np.uint64)
    return ((mixed * np.uint64(_UNMIX)) & np.uint64((1 << 32) - 1)).astype(np.int32)


def _joined(chunks: list[Numbers]) -> Any:
    if chunks[0].ndim == 1:
        return np.concatenate(chunks)
    return [row for chunk in chunks for row in chunk]  # rows of several lengths


def _observed(rows: DataFrame, **fields: Column | str) -> DataFrame:
    """Give rows with `run` and `epoch` the columns of observations; what is not named is null."""
    return _shaped(rows, OBSERVATIONS, fields)


def _told(rows: DataFrame, **fields: Column | str) -> DataFrame:
    """Give rows with `run` and `epoch` the columns of truths; what is not named is null."""
    return _shaped(rows, TRUTHS, {"time": F.col("epoch") * EPOCH, **fields})


def _shaped(rows: DataFrame, schema: StructType, fields: dict[str, Column | str]) -> DataFrame:
    given = {"run": F.col("run"), "epoch": F.col("epoch"), **fields}
    columns = []
    for field in schema:
        value = given.get(field.name, F.lit(None))
        column = F.col(value) if isinstance(value, str) else value
        kind = field.dataType
        # Spark casts no array that might hold a null to one that may not.
        kind = ArrayType(kind.elementType) if isinstance(kind, ArrayType) else kind
        columns.append(column.cast(kind).alias(field.name))
    return rows.select(columns)
