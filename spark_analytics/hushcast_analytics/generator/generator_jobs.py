"""The generator's jobs: the work is cut into pieces, each a pure function of its number, and Spark does them.

generate(spark, GeneratorScenario(nodes=500, subscribers=10, publications=1000), "out")
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from hushcast_analytics.errors import TracesError
from hushcast_analytics.generator.publications import numbers
from hushcast_analytics.generator.scenario import GeneratorScenario
from hushcast_analytics.generator.trace_rows import TraceRows
from hushcast_analytics.spark_session import part_done
from hushcast_analytics.trace_files import Traces, load
from hushcast_analytics.trace_schemas import OBSERVATIONS, PARTITIONS, REJECTED, TRUTHS
from hushcast_analytics.work_steps import WorkSteps, each_second

ROWS_A_TASK = 500_000  # about a second of work: more tasks cost more than they balance
ROWS_A_PIECE = 100_000  # rows of messages made at once; each takes some 400 bytes while they are made
LOOKS_A_PIECE = 20_000_000  # next hops compared at once, in bytes and a few times over
STEPS_AN_EPOCH = 40  # rows of others that take as long as one epoch of one box
ROWS_A_BATCH = 16_384  # rows handed to Spark at once

Table = Literal["observations", "truths"]
_COSTS = {"observations": 0.75, "truths": 0.25}  # shares of the time, about


def generate(
    spark: SparkSession,
    asked: GeneratorScenario,
    out: str,
    progress: Callable[[str], None] = lambda text: None,
    *,
    live: bool = False,
) -> Traces:
    """Make the traces of a network and keep them in the directory `out`, beside the runs that it holds.

    Returns the tables of this run. `progress` hears what is being made, and with `live` once a second how far
    it is. The driver holds nothing that grows with the network. Raises
    `TracesError` if there is a run of that name.
    """
    _refuse_second(spark, asked, out)
    steps, done = WorkSteps(progress, sum(_COSTS.values())), 0.0
    for name, make in (("observations", observations), ("truths", truths)):
        steps.begin(f"making {name} of {asked.nodes} relays")
        told = partial(_tell, spark, steps, done, _COSTS[name]) if live else None
        with each_second(told):
            made = make(spark, asked)
            made.write.mode("overwrite").partitionBy(*PARTITIONS).parquet(f"{out}/{name}")
        steps.end(_COSTS[name])
        done += _COSTS[name]
    nothing = spark.createDataFrame([], REJECTED)
    nothing.write.mode("append").partitionBy("run").parquet(f"{out}/rejected")
    kept = load(spark, out)
    this = F.col("run") == asked.run
    return Traces(kept.observations.where(this), kept.truths.where(this), kept.rejected.where(this))


def _tell(spark: SparkSession, steps: WorkSteps, done: float, cost: float) -> None:
    part = part_done(spark)
    steps.refresh(None if part is None else done + part * cost)


def observations(spark: SparkSession, asked: GeneratorScenario) -> DataFrame:
    """Return what daemons would see, without keeping it."""
    return _table(spark, asked, "observations", OBSERVATIONS)


def truths(spark: SparkSession, asked: GeneratorScenario) -> DataFrame:
    """Return what only they would know, without keeping it."""
    return _table(spark, asked, "truths", TRUTHS)


def _refuse_second(spark: SparkSession, asked: GeneratorScenario, out: str) -> None:
    try:
        spark.read.parquet(f"{out}/observations/run={asked.run}")
    except AnalysisException:
        return
    raise TracesError(f"{out} holds a run {asked.run} already: remove it, or choose another directory")


@dataclass(frozen=True)
class _Work:
    """One kind of work: how many pieces, how many rows they make in all, and how to do one."""

    pieces: int
    rows: int
    do: Callable[[TraceRows, Table, int], Iterator[pa.RecordBatch]]


def _table(spark: SparkSession, asked: GeneratorScenario, table: Table, schema: StructType) -> DataFrame:
    made: DataFrame | None = None
    subscribed = [_boxes(asked)] if asked.hosts else [_installs(asked), _messages(asked)]
    for work in (_presence(asked), *subscribed):
        if not work.pieces:
            continue
        tasks = max(1, min(work.pieces, -(-work.rows // ROWS_A_TASK)))
        numbered = spark.range(0, work.pieces, 1, tasks)
        part = numbered.mapInArrow(_worker(asked, table, work.do), schema)
        made = part if made is None else made.unionAll(part)
    assert made is not None
    return made


def _worker(
    asked: GeneratorScenario, table: Table, do: Callable[[TraceRows, Table, int], Iterator[pa.RecordBatch]]
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def work(numbered: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = TraceRows(asked)
        for batch in numbered:
            for piece in batch.column(0).to_pylist():
                for made in do(rows, table, piece):
                    for begin in range(0, made.num_rows, ROWS_A_BATCH):
                        yield made.slice(begin, ROWS_A_BATCH)

    return work


def _presence(asked: GeneratorScenario) -> _Work:
    def do(rows: TraceRows, table: Table, epoch: int) -> Iterator[pa.RecordBatch]:
        return rows.seen_of_rosters(epoch) if table == "observations" else rows.truth_of_presence(epoch)

    return _Work(asked.epochs, asked.epochs * asked.daemons, do)


def _installs(asked: GeneratorScenario) -> _Work:
    def do(rows: TraceRows, table: Table, piece: int) -> Iterator[pa.RecordBatch]:
        rest, subscriber = divmod(piece, asked.subscribers)
        day, topic = divmod(rest, asked.topics)
        make = rows.seen_of_install if table == "observations" else rows.truth_of_install
        return make(topic, day, subscriber)

    trees = asked.days * asked.topics * asked.subscribers
    return _Work(trees, trees * 3 * asked.nodes, do)


def _boxes(asked: GeneratorScenario) -> _Work:
    def do(rows: TraceRows, table: Table, piece: int) -> Iterator[pa.RecordBatch]:
        make = rows.seen_of_boxes if table == "observations" else rows.truth_of_boxes
        return make(*divmod(piece, asked.subscribers))

    boxes = asked.topics * asked.subscribers
    return _Work(boxes, boxes * asked.epochs * STEPS_AN_EPOCH, do)


def _messages(asked: GeneratorScenario) -> _Work:
    most = -(-asked.publications // (asked.epochs * asked.topics)) + 1
    seen, sent = _message_size(asked)
    together = max(1, min(most, ROWS_A_PIECE // seen, LOOKS_A_PIECE // (sent * asked.subscribers)))
    parts = -(-most // together)

    def do(rows: TraceRows, table: Table, piece: int) -> Iterator[pa.RecordBatch]:
        rest, part = divmod(piece, parts)
        topic, epoch = divmod(rest, asked.epochs)  # a topic's trees are known epoch after epoch
        message = np.array(numbers(asked, topic, epoch)[part * together : (part + 1) * together], np.int64)
        if not len(message):
            return iter(())
        make = rows.seen_of_messages if table == "observations" else rows.truth_of_messages
        return make(topic, epoch, message)

    pieces = asked.epochs * asked.topics * parts if asked.publications else 0
    return _Work(pieces, asked.publications * seen, do)


def _message_size(asked: GeneratorScenario) -> tuple[int, int]:
    """Return about how many observations and transmissions a message makes."""
    profile, trees = asked.behaviour, asked.subscribers
    sent = profile.origins * trees * profile.depth
    if not profile.edge_elements and trees > 1:
        sent = asked.nodes * trees  # a flood
    return 2 * sent + 2 * profile.origins + trees, sent
