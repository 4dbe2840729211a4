"""The engine `spark`: subscriptions spread over a cluster by prefix and place, a batch broadcast to all.

What it finds is what `local` finds, bit for bit: each task runs that engine on its subscriptions. A task
reads them as arrays, some hundred thousand at once, and writes what it found by itself, so that neither the
driver nor any worker ever has all of them. Driver and workers need a folder in common, and Hushcast
installed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark import Broadcast, StorageLevel, TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from hushcast_located.batch_folder import make_folder, write_whole
from hushcast_located.crowd import Crowd, arranged
from hushcast_located.file_provider import AnswerTotals, line_of
from hushcast_located.input_lines import MAX_LINE, read_named
from hushcast_located.local_engine import LocalEngine, MatchingWork
from hushcast_located.prover import Prover
from hushcast_protocol.base.errors import UsageError
from hushcast_protocol.base.wire import PublicKey, encode
from hushcast_protocol.spatial.batch import WholeBatch, read_batch
from hushcast_protocol.spatial.located_answer import ProviderBatch
from hushcast_protocol.spatial.located_subscription import LocatedSubscription
from hushcast_protocol.spatial.places import SCALE, Place
from hushcast_protocol.spatial.prefixes import DUMMY
from hushcast_protocol.spatial.similarity import WHOLE
from hushcast_protocol.spatial.tmr_tree import entries_of
from hushcast_protocol.spatial.weight_table import WeightTable, read_table

PARTS = "matches"
AT_ONCE = 250_000  # subscriptions: 130 MB of arrays; fewer have numpy begin anew too often
_BLOCK = 8192  # subscriptions whose lists of messages are Python's at once
_BITS = 7  # of each coordinate: cells of a hundred kilometres
_SHIFT = 31 - _BITS
_SPREAD = [sum((one >> bit & 1) << 3 * bit for bit in range(_BITS + 1)) for one in range(2**_BITS + 1)]

_READ = {
    "at": pa.int64(),
    "wrong": pa.string(),
    "id": pa.string(),
    "x": pa.int32(),
    "y": pa.int32(),
    "z": pa.int32(),
    "words": pa.list_(pa.string()),
    "alpha": pa.int32(),
    "threshold": pa.int32(),
    "word": pa.string(),
    "cell": pa.int32(),
}
_AS_READ = (
    "at long, wrong string, id string, x int, y int, z int, words array<string>, alpha int, threshold int,"
    " word string, cell int"
)
_DONE = "answers long, messages long, size long"
Batches = Iterable[pa.RecordBatch]
Packed = tuple[bytes, bytes]
"""A batch with its messages, and its table, as they are on disk."""


def match(
    spark: SparkSession,
    of: tuple[PublicKey, ProviderBatch],
    file: Path,
    out: Path,
    proofs: bool,
    tell: Callable[[str], None] = lambda _: None,
) -> AnswerTotals:
    """Answer the subscriptions of a file, or list who wants what, into a folder; raise `UsageError`.

    `of` is an owner and a batch. The file has lines as `read_subscription` takes them, or is Parquet with
    such columns. Answers are files `<id>.answer`; lists are files of lines in a folder `matches`, each of
    some subscriptions.
    """
    make_folder(out)
    if not proofs:
        make_folder(out / PARTS)
        for old in (out / PARTS).glob("part-*.jsonl"):
            old.unlink()
    shared = spark.sparkContext.broadcast(_packed(*of))
    tell("reading subscriptions")
    read = _read(spark, shared, file)
    try:
        count = read.count()
        parts = max(-(-count // AT_ONCE), spark.sparkContext.defaultParallelism)
        tell(f"matching {count:,} subscriptions")
        spread = read.repartitionByRange(parts, "word", "cell")
        work = partial(_answer if proofs else _list, shared, str(out.resolve()))
        done = spread.mapInArrow(work, _DONE).agg(*(F.sum(name) for name in ("answers", "messages", "size")))
        row = done.first()
        return AnswerTotals(*(int(one or 0) for one in row or ()))
    finally:
        read.unpersist()


def _packed(owner: PublicKey, feed: ProviderBatch) -> Packed:
    messages = sorted((entry.message for entry in entries_of(feed.root)), key=lambda one: one.id)
    whole = WholeBatch(owner, feed.batch.signed, tuple(messages))
    return encode(whole), encode(feed.table.whole)


@lru_cache(maxsize=1)
def _feed(packed: Packed) -> ProviderBatch:
    """Return a feed: a worker's process keeps it from one task to the next."""
    batch, table = packed
    owner, signed, root = read_batch(batch)
    return ProviderBatch(signed, root, read_table(table, owner))


def _read(spark: SparkSession, shared: Broadcast[Packed], file: Path) -> DataFrame:
    """Return the subscriptions in a file, computed once; raise `UsageError` for the first that is wrong."""
    if not file.exists():
        raise UsageError(f"{file} cannot be read: there is no such file")
    path = str(file.resolve())
    if file.suffix == ".parquet":
        rows = spark.read.parquet(path)
        given = rows.select(F.to_json(F.struct(*rows.columns)).alias("value"))
    else:
        given = spark.read.text(path, lineSep="\n")
    lines = given.select(
        F.monotonically_increasing_id().alias("at"), F.col("value").cast("binary").alias("line")
    )
    read = lines.mapInArrow(partial(_parsed, shared), _AS_READ).persist(StorageLevel.DISK_ONLY)
    problem = _problem(read)
    if problem is not None:
        at, told = problem
        raise UsageError(f"{file}, line {_number(lines, at)}: {told}")
    return read


def _problem(read: DataFrame) -> tuple[int, str] | None:
    """Return the id of the first line that is wrong, and why; ids that stand in two lines count, too."""
    wrong = F.when(F.col("wrong").isNotNull(), F.struct("at", "wrong"))
    by_id = read.groupBy("id").agg(
        F.count("*").alias("times"), F.max("at").alias("last"), F.min(wrong).alias("first")
    )
    some = by_id.where("times > 1 or first is not null").select(
        F.coalesce("first.at", "last").alias("at"), "id", F.col("first.wrong").alias("wrong")
    )
    row = some.orderBy("at").first()
    if row is None:
        return None
    again = f"'id' {row['id']!r} stands in a line before: each has an id of its own"
    return row["at"], row["wrong"] or again


def _number(lines: DataFrame, at: int) -> int:
    """Return the number of a line by its id: the partition's in the upper bits, a count in the lower 33."""
    part = at >> 33
    return lines.where(F.shiftright("at", 33) < part).count() + (at & (1 << 33) - 1) + 1


def _parsed(shared: Broadcast[Packed], batches: Batches) -> Iterator[pa.RecordBatch]:
    table = _feed(shared.value).table
    for batch in batches:
        given = zip(batch.column(0).to_pylist(), batch.column(1).to_pylist(), strict=True)
        rows = [(at, *_row(line, table)) for at, line in given if line.strip()]
        columns = zip(*rows, strict=True) if rows else ([] for _ in _READ)
        arrays = [pa.array(column, kind) for column, kind in zip(columns, _READ.values(), strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, list(_READ))


def _row(line: bytes, table: WeightTable) -> tuple[Any, ...]:
    if len(line) > MAX_LINE:
        return f"it is longer than {MAX_LINE:,} bytes", *(None,) * (len(_READ) - 2)
    try:
        name, one = read_named(line, table.body.rule)
    except UsageError as error:
        return str(error), *(None,) * (len(_READ) - 2)
    if one.threshold <= WHOLE - one.alpha:
        word = DUMMY  # whoever may want all that is near enough is found by place, whatever the words are
    else:
        weights = table.weights
        word = min(one.words, key=lambda each: (-weights.get(each, table.body.other), each))
    return None, name, *one.place, one.words, one.alpha, one.threshold, word, _cell(one.place)


def _cell(place: Place) -> int:
    """Return the number of a cell of the earth; cells with near numbers lie near each other (Morton)."""
    x, y, z = place
    return (
        _SPREAD[x + SCALE >> _SHIFT] | _SPREAD[y + SCALE >> _SHIFT] << 1 | _SPREAD[z + SCALE >> _SHIFT] << 2
    )


def _some(batches: Batches) -> Iterator[pa.Table]:
    """Yield up to `AT_ONCE` rows at once."""
    held: list[pa.RecordBatch] = []
    for batch in batches:
        if held and sum(map(len, held)) + len(batch) > AT_ONCE:
            yield pa.Table.from_batches(held)
            held = []
        held.append(batch)
    if any(map(len, held)):
        yield pa.Table.from_batches(held)


def _list(shared: Broadcast[Packed], out: str, batches: Batches) -> Iterator[pa.RecordBatch]:
    feed = _feed(shared.value)
    context = TaskContext.get()
    part = 0 if context is None else context.partitionId()
    for number, rows in enumerate(_some(batches)):
        engine = LocalEngine(_crowd(rows, feed.table))
        found = sorted(
            (entry.message.id, np.sort(who)) for entry, who in engine.pruned(feed.root, MatchingWork())
        )
        names = rows.column("id").to_pylist()
        lines: list[str] = []
        messages = 0
        for at in range(0, len(names), _BLOCK):
            for name, ids in zip(names[at : at + _BLOCK], _lists(found, at, len(names)), strict=True):
                lines.append(line_of(name, ids))
                messages += len(ids)
        data = "".join(lines).encode()
        write_whole(Path(out) / PARTS / f"part-{part:05}-{number}.jsonl", data, replace=True, durable=False)
        yield _done(len(names), messages, len(data))


def _lists(found: Sequence[tuple[str, Any]], first: int, count: int) -> list[list[str]]:
    """Return the messages of a block of subscriptions, each one's sorted; `found` are those who want each."""
    last = min(first + _BLOCK, count)
    lists: list[list[str]] = [[] for _ in range(first, last)]
    for name, who in found:
        low, high = np.searchsorted(who, (first, last))
        for one in (who[low:high] - first).tolist():
            lists[one].append(name)
    return lists


def _answer(shared: Broadcast[Packed], out: str, batches: Batches) -> Iterator[pa.RecordBatch]:
    prover = Prover(_feed(shared.value))
    for batch in batches:
        rows = batch.to_pylist()
        asked = [_subscription(row) for row in rows]
        messages = size = 0
        for row, (data, some) in zip(rows, prover.answers(asked), strict=True):
            write_whole(Path(out) / f"{row['id']}.answer", data, replace=True, durable=False)
            messages, size = messages + some, size + len(data)
        yield _done(len(rows), messages, size)


def _subscription(row: dict[str, Any]) -> LocatedSubscription:
    place = row["x"], row["y"], row["z"]
    return LocatedSubscription(place, tuple(row["words"]), row["alpha"], row["threshold"])


def _crowd(rows: pa.Table, table: WeightTable) -> Crowd:
    """Return rows as the engine takes them, without an object of Python's for each."""

    def ints(*names: str) -> Any:
        return np.stack([rows.column(name).to_numpy() for name in names]).astype(np.int32)

    said = rows.column("words").combine_chunks()
    said = said if isinstance(said, pa.ListArray) else pa.concat_arrays(said.chunks)
    distinct = said.flatten().dictionary_encode()
    lengths = said.value_lengths().to_numpy(zero_copy_only=False)
    owners = np.repeat(np.arange(len(rows), dtype=np.int32), lengths)
    words = distinct.indices.to_numpy(zero_copy_only=False)
    names = distinct.dictionary.to_pylist()
    return arranged(names, (ints("x", "y", "z"), ints("alpha", "threshold")), (owners, words), table)


def _done(answers: int, messages: int, size: int) -> pa.RecordBatch:
    arrays = [pa.array([one], pa.int64()) for one in (answers, messages, size)]
    return pa.RecordBatch.from_arrays(arrays, ["answers", "messages", "size"])
