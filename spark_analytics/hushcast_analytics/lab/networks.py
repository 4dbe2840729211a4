"""Small networks: observations and truths of many independent runs, each with a few topics.

All is drawn by hashes of the seed and of names, so neither partitions nor order matter. The colluders' lines
are those that `hushcast testnet simulate` would write, but `installed` has the topic's token: an adversary
that asks about a topic it knows tests all leases for it (design §3, row 4).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, StructType

from hushcast_analytics.lab.seating import Seating, Shape
from hushcast_analytics.tables import OBSERVATIONS, TRUTHS

EPOCH = 3600.0  # seconds
LABEL_BITS = 14  # bits that one label sets in a trail
SCANNER = "scanner"  # the client of an active adversary
INSTALLING = 20  # seconds in which the instructions of a tree reach its relays


PARTITIONS = 8
_TREES = "run string, topic int, epoch int, owner int, seats array<int>"


@dataclass(frozen=True)
class Lab:
    """What to draw: `runs` networks of `relays`, with `topics` of one subscriber each.

    `listed` roots are the subscribers' own relays (paper), others mailboxes. `fresh`: a new tree each epoch.
    `messages` are for each topic and epoch, dropped at one random relay each; `scan`: one more at each
    relay, by the adversary. Subscribers are relays, or `clients` if there are some, and hold `topics_each`,
    whose trees are installed at times of their own unless `together`, under mailboxes of their own unless
    `shared`. Authors are the same participants: another for each message, or one for a topic if
    `one_author`; who avoids its own relay as origin if `avoiding`. Participants are up for `up` and down for
    `down` epochs in the mean, always if `down` is 0; churn moves rosters and mailboxes, nothing else.
    """

    runs: int
    topics: int
    relays: int
    depth: int
    listed: bool
    seed: int = 1
    shape: Shape = "even"
    epochs: int = 1
    fresh: bool = False
    messages: int = 0
    scan: bool = False
    clients: int = 0
    topics_each: int = 1
    together: bool = False
    shared: bool = False
    one_author: bool = False
    avoiding: bool = False
    up: float = 48.0
    down: float = 0.0

    @property
    def seating(self) -> Seating:
        """Who stands where; a listed root is no seat of its own tree."""
        return Seating(self.relays - self.listed, self.depth, self.shape)

    def _chance(self, *names: str | Column | int) -> Column:
        return F.xxhash64(F.lit(self.seed), *(F.lit(n) if isinstance(n, int) else n for n in names))

    def _draw(self, most: int, purpose: str, *names: str | Column) -> Column:
        return F.pmod(self._chance(F.lit(purpose), *names), F.lit(most)).cast("int")

    def _share(self, purpose: str, *names: str | Column) -> Column:
        return F.pmod(self._chance(F.lit(purpose), *names), F.lit(1 << 40)) / F.lit(float(1 << 40))

    def name(self, index: Column) -> Column:
        """Return a participant's name; relays come first, then clients."""
        # Odd multiplier: a permutation of 32 bits, so that the order of names tells nothing.
        mixed = F.pmod(index.cast("long") * F.lit(2654435761), F.lit(1 << 32))
        return F.lower(F.lpad(F.hex(mixed), 8, "0"))

    def _runs(self, spark: SparkSession) -> DataFrame:
        runs = spark.range(0, self.runs, 1, min(PARTITIONS, self.runs))
        return runs.select(F.concat(F.lit(f"{self.seed}."), "id").alias("run"))

    def _trees(self, spark: SparkSession, each_epoch: bool) -> DataFrame:
        """(run, topic, epoch, owner, root, token, seats): each topic's tree, each epoch's if asked for."""
        runs = spark.range(0, self.runs, 1, min(PARTITIONS, self.runs))
        epochs = self.epochs if each_epoch else 1

        def planted(batches: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
            for batch in batches:
                for run in batch["id"]:
                    yield self._planted(int(run), epochs)

        trees = runs.mapInPandas(planted, _TREES)
        box = F.floor(F.col("topic") / self.topics_each) if self.shared else F.col("topic")
        root = self.name(F.col("owner")) if self.listed else F.concat(F.lit("mailbox "), box)
        return trees.withColumn("root", root).withColumn("token", F.concat(F.lit("t"), "topic"))

    def _planted(self, run: int, epochs: int) -> pd.DataFrame:
        """Draw the trees of one run."""
        people, first = (self.clients, self.relays) if self.clients else (self.relays, 0)
        rows = []
        for topic in range(self.topics):
            owner = first + int(
                np.random.default_rng((self.seed, run, topic // self.topics_each)).integers(people)
            )
            seated = np.arange(self.relays, dtype=np.int32)
            if self.listed:
                seated = np.delete(seated, owner)
            for epoch in range(epochs):
                if epoch == 0 or self.fresh:
                    # Four numbers here, three above: the two never draw from one stream.
                    seats = np.random.default_rng((self.seed, run, topic, epoch + 1)).permutation(seated)
                rows.append((f"{self.seed}.{run}", topic, epoch, owner, seats))
        return pd.DataFrame(rows, columns=["run", "topic", "epoch", "owner", "seats"])

    def observations(self, spark: SparkSession) -> DataFrame:
        """Return the observations of all runs, but for `rosters`."""
        rows = self._installed(spark)
        if self.messages:
            rows = rows.unionByName(self._passing(spark, self.messages, scan=False))
        if self.scan:
            rows = rows.unionByName(self._passing(spark, self.relays, scan=True))
        if self.down:
            rows = rows.unionByName(self._tried(spark))
        return rows

    def _installed(self, spark: SparkSession) -> DataFrame:
        parents, children = _constant(self.seating.parents), _constant(self.seating.children)
        seats = F.transform(
            "seats",
            lambda seat, place: F.struct(
                seat.alias("node"),
                F.get(F.col("seats"), F.get(parents, place)).alias("above"),  # null where that is the root
                F.get(children, place).alias("children"),
            ),
        )
        who = ("run", "owner", "epoch") if self.together else ("run", "topic", "epoch")
        moment = F.col("epoch") * EPOCH + self._share("renewal", *who) * (EPOCH - INSTALLING)
        rows = (
            self._trees(spark, each_epoch=self.fresh)
            .select("*", F.inline(seats))
            .drop("seats")
            .withColumn("time", moment + self._share("reached", "run", "topic", "epoch", "node") * INSTALLING)
            .withColumn("handed", self.name(F.col("above")))
            .withColumn("kind", F.explode(F.array(F.lit("installed"), F.lit("passed"))))
            .where("kind = 'installed' or above is not null")
        )
        taken = F.col("kind") == "installed"
        return _observed(
            rows,
            node=F.when(taken, self.name(F.col("node"))).otherwise(F.col("handed")),
            time="time",
            kind="kind",
            tokens=F.when(taken, F.array("token")),
            previous=F.when(taken, F.col("handed")),
            next=F.when(taken, F.coalesce("handed", "root")).otherwise(self.name(F.col("node"))),
            lease=F.concat_ws("-", "topic", "epoch"),
            elements=F.when(taken, F.lit(1) if self.listed else F.col("children") + 1),
            children=F.when(taken, F.col("children")),
        )

    def _origin(self, number: Column, author: Column | None = None) -> Column:
        """Return the place at which a message enters; -1 is the root itself, where that is a listed relay."""
        others = self.relays - 1 if author is not None else self.relays
        drawn = self._draw(others, "origin", "run", "topic", "epoch", number)
        if author is not None:
            # Places are of relays in mixed order: the author's is left out by skipping it.
            own = F.array_position(F.col("seats"), author).cast("int") - 1
            drawn = F.when((own >= 0) & (drawn >= own), drawn + 1).otherwise(drawn)
        return F.when(drawn < self.seating.relays, drawn).otherwise(F.lit(-1))

    def _author(self, number: Column) -> Column:
        first = self.relays if self.clients else 0
        names = ("run", "topic") if self.one_author else ("run", "topic", "epoch", number)
        return F.lit(first) + self._draw(self.clients or self.relays, "author", *names)

    def _messages(self, spark: SparkSession, count: int, scan: bool) -> DataFrame:
        """(run, topic, epoch, root, token, message, number, way): who passes on each message, from its
        origin up.

        The way is empty where the message enters at the root itself.
        """
        paths = _constant(self.seating.paths, "array<array<int>>")
        none = F.array().cast("array<int>")

        def of_number(number: Column) -> Column:
            if scan:
                place = F.when(number < self.seating.relays, number).otherwise(F.lit(-1))
            else:
                place = self._origin(number, self._author(number) if self.avoiding else None)
            way = F.transform(F.coalesce(F.get(paths, place), none), lambda p: F.get(F.col("seats"), p))
            return F.struct(number.alias("number"), way.alias("way"))

        numbers = F.sequence(F.lit(0), F.lit(count - 1))
        rows = self._trees(spark, each_epoch=not scan).select("*", F.inline(F.transform(numbers, of_number)))
        label = F.lit("scan" if scan else "message")
        return rows.drop("seats").withColumn("message", F.concat_ws("-", label, "topic", "epoch", "number"))

    def _passing(self, spark: SparkSession, count: int, scan: bool) -> DataFrame:
        start = F.col("epoch") * EPOCH + (F.col("number") + 1) * F.lit(EPOCH / (count + 1))
        rows = (
            self._messages(spark, count, scan)
            .select("*", F.posexplode("way").alias("hop", "index"))
            .withColumn("node", self.name(F.col("index")))
            .withColumn("before", self.name(F.get("way", F.col("hop") - 1)))
            .withColumn("after", F.coalesce(self.name(F.get("way", F.col("hop") + 1)), "root"))
            .withColumn("kind", F.explode(F.array(F.lit("drop"), F.lit("received"), F.lit("sent"))))
            .where("kind != 'drop' or hop = 0")
        )
        received = F.col("kind") == "received"
        return _observed(
            rows,
            node="node",
            time=start + F.col("hop") * 0.3,
            kind="kind",
            message="message",
            tokens=F.array("token"),
            previous=F.when(received, F.col("before")),
            next=F.when(F.col("kind") == "sent", F.col("after")),
            outcome=F.when(received, F.lit("forwarded")),
            popcount=F.when(received, F.col("hop") * LABEL_BITS),
        )

    def _present(self, spark: SparkSession) -> DataFrame:
        """(run, index, epoch, up): a two-state chain for each participant, from its stationary state."""
        out, back = 1 / self.up, 1 / self.down
        reset = (F.col("epoch") == 0) | (self._share("moved", "run", "index", "epoch") < out + back)
        state = F.when(reset, self._share("state", "run", "index", "epoch") < back / (out + back))
        past = Window.partitionBy("run", "index").orderBy("epoch")
        return (
            self._runs(spark)
            .withColumn("index", F.explode(F.sequence(F.lit(0), F.lit(self.relays + self.clients - 1))))
            .withColumn("epoch", F.explode(F.sequence(F.lit(0), F.lit(self.epochs - 1))))
            .withColumn("up", F.last(state, ignorenulls=True).over(past))
        )

    def _tried(self, spark: SparkSession) -> DataFrame:
        """Once an epoch, each relay at the top has something for the mailbox, and reaches it or not."""
        owners = self._present(spark).withColumnRenamed("index", "owner")
        tops = self._trees(spark, each_epoch=False).select(
            "run",
            "topic",
            "owner",
            "root",
            "token",
            F.explode(F.slice("seats", 1, self.seating.width)).alias("top"),
        )
        rows = tops.join(owners, ["run", "owner"])
        return _observed(
            rows,
            node=self.name(F.col("top")),
            time=F.col("epoch") * EPOCH + EPOCH / 2,
            kind=F.when(F.col("up"), F.lit("sent")).otherwise(F.lit("unreached")),
            message=F.when(F.col("up"), F.concat_ws("-", F.lit("try"), "topic", "epoch")),
            tokens=F.when(F.col("up"), F.array("token")),
            next="root",
        )

    def rosters(self, spark: SparkSession) -> DataFrame:
        """Return the observations of rosters, one for each epoch in which they may differ."""
        if self.down:
            up = self._present(spark).where(F.col("up") & (F.col("index") < self.relays))
            listed = up.groupBy("run", "epoch").agg(
                F.sort_array(F.collect_list(self.name(F.col("index")))).alias("all")
            )
        else:
            names = F.transform(F.sequence(F.lit(0), F.lit(self.relays - 1)), self.name)
            listed = self._runs(spark).select(
                "run", F.lit(0).alias("epoch"), F.sort_array(names).alias("all")
            )
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
        people = self._runs(spark).withColumn(
            "index", F.explode(F.sequence(F.lit(0), F.lit(self.relays + self.clients - 1)))
        )
        role = F.when(F.col("index") < self.relays, F.lit("relay")).otherwise(F.lit("client"))
        started = _told(
            people.withColumn("epoch", F.lit(0)),
            node=self.name(F.col("index")),
            kind=F.lit("started"),
            role=role,
        )
        topics = self._trees(spark, each_epoch=False).drop("seats")
        owner, root = self.name(F.col("owner")), F.col("root")
        topic = F.col("topic").cast("string")
        subscribed = _told(topics, node=owner, kind=F.lit("subscribed"), topic=topic, mailbox=root)
        installed = _told(
            topics,
            node=owner,
            kind=F.lit("installed"),
            topic=topic,
            mailbox=root,
            day=F.lit(0),
            depth=F.lit(self.depth),
            tokens=F.array("token", "token"),
        )
        told = started.unionByName(subscribed).unionByName(installed)
        if self.messages:
            told = told.unionByName(self._published(spark, self.messages, scan=False))
        if self.scan:
            scanner = _told(
                self._runs(spark).withColumn("epoch", F.lit(0)),
                node=F.lit(SCANNER),
                kind=F.lit("started"),
                role=F.lit("client"),
            )
            told = told.unionByName(scanner).unionByName(self._published(spark, self.relays, scan=True))
        return told

    def _published(self, spark: SparkSession, count: int, scan: bool) -> DataFrame:
        rows = self._messages(spark, count, scan)
        return _told(
            rows,
            node=F.lit(SCANNER) if scan else self.name(self._author(F.col("number"))),
            kind=F.lit("published"),
            topic=F.col("topic").cast("string"),
            message="message",
            origins=F.array(F.coalesce(self.name(F.get("way", F.lit(0))), "root")),
        )


def _constant(values: object, kind: str = "array<int>") -> Column:
    # Read from text, which Spark does once: an expression for each number would be compiled, one by one.
    return F.from_json(F.lit(json.dumps(values)), kind)


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
