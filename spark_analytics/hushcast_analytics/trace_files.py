"""Trace files of daemons become tables; lines that are no records are set aside with the reason.

    traces = open_traces(spark, "traces", "work")
    traces.observations, traces.truths, traces.rejected

Observations and truths never meet here: an adversary's view is what the adversary's daemons observed.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from urllib.parse import unquote

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import Observation as Counts
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StringType, StructField, StructType

from hushcast_analytics.checkpoints import is_little, little_in_one
from hushcast_analytics.errors import TracesError
from hushcast_analytics.rejection_reasons import CORRUPT, reason
from hushcast_analytics.trace_schemas import OBSERVATIONS, PARTITIONS, REJECTED, RUN, TRUTHS
from hushcast_analytics.trace_sources import spark_path
from hushcast_protocol.base.trace import Observation, TraceLine, Truth

SHOWN = 200  # characters kept of a line that is no record: enough to see what it was


@dataclass(frozen=True)
class Traces:
    """Tables with the schemas `OBSERVATIONS`, `TRUTHS` and `REJECTED`, of one or many runs."""

    observations: DataFrame
    truths: DataFrame
    rejected: DataFrame


def open_traces(spark: SparkSession, source: str, work: str) -> Traces:
    """Return the traces under `source`, which holds trace files of daemons or tables that `keep` wrote.

    Trace files become tables under `work` first. Raises `TracesError` where there is neither.
    """
    if has_tables(spark, source):
        return load(spark, source)
    keep(spark, source, work)
    return load(spark, work)


def read_lines(spark: SparkSession, directory: str) -> Traces:
    """Read `<name>.observations.jsonl` and `<name>.truth.jsonl` in a directory and all below it.

    The files of one directory are one run, named after it. Raises `TracesError` if there is no such file, or
    if two runs have one name.
    """
    names = _run_names(spark, directory)
    observations, truths = (_judged(spark, directory, names, kind) for kind in _KINDS)
    rejected = _rejected(observations).unionByName(_rejected(truths))
    return Traces(_records(observations, OBSERVATIONS), _records(truths, TRUTHS), rejected)


def keep(spark: SparkSession, source: str, directory: str) -> None:
    """Write what `read_lines` finds into `directory` as Parquet, replacing the runs and epochs found."""
    rejected = spark.range(0).select(*(F.lit(None).cast(each.dataType).alias(each.name) for each in REJECTED))
    names = _run_names(spark, source)
    for kind in _KINDS:
        lines, found = _judged(spark, source, names, kind), Counts()
        counted = lines.observe(found, F.count("reason").alias("rejected"))
        records = _records(counted, kind.table)
        if not is_little(records):
            # Few files for little data, many for much: Spark chooses from the sizes that it sees.
            records = records.hint("rebalance", *PARTITIONS)
        records.write.mode("overwrite").partitionBy(*PARTITIONS).parquet(f"{directory}/{kind.name}")
        # To fetch them, all is read again; mostly there are none.
        if found.get["rejected"]:
            rejected = rejected.unionByName(_rejected(lines))
    rejected.write.mode("overwrite").partitionBy("run").parquet(f"{directory}/rejected")


def files_of(spark: SparkSession, source: str) -> list[str]:
    """Return the URIs of the files that `open_traces` reads under `source`."""
    if has_tables(spark, source):
        return [file for table in vars(load(spark, source)).values() for file in table.inputFiles()]
    return _line_files(spark, source)


def load(spark: SparkSession, directory: str) -> Traces:
    """Return the tables that `keep`, or the generator, wrote into `directory`."""
    return Traces(
        _parquet(spark, f"{spark_path(directory)}/observations", OBSERVATIONS),
        _parquet(spark, f"{spark_path(directory)}/truths", TRUTHS),
        _parquet(spark, f"{spark_path(directory)}/rejected", REJECTED),
    )


def has_tables(spark: SparkSession, directory: str) -> bool:
    """Tell whether `load` finds tables in a directory."""
    try:
        _parquet(spark, f"{spark_path(directory)}/observations", OBSERVATIONS)
    except AnalysisException:
        return False
    return True


def _parquet(spark: SparkSession, path: str, schema: StructType) -> DataFrame:
    # Partition columns come last from Parquet; a table has its columns in the order of its schema.
    return little_in_one(spark.read.schema(schema).parquet(path).select(*schema.names))


@dataclass(frozen=True)
class _Kind:
    """One of the two kinds of trace files: its table's name, its files, and what their lines hold."""

    name: str
    pattern: str
    record: type[TraceLine]
    table: StructType


_KINDS = (
    _Kind("observations", "*.observations.jsonl", Observation, OBSERVATIONS),
    _Kind("truths", "*.truth.jsonl", Truth, TRUTHS),
)
_JSON = {
    "mode": "PERMISSIVE",
    "columnNameOfCorruptRecord": CORRUPT,
    # What the writer never writes is not read either.
    "allowSingleQuotes": "false",
    "allowNonNumericNumbers": "false",
}


def _judged(spark: SparkSession, directory: str, names: Mapping[str, str], kind: _Kind) -> DataFrame:
    """Return every line with the fields of its record and the `reason` why it is none, null if it is one.

    `names` are those of runs, by the folders of trace files.
    """
    fields = [field for field in kind.table.fields if field.name != RUN.name]
    wire = StructType([StructField("schema", LongType()), *fields, StructField(CORRUPT, StringType())])
    # A generator's row is parsed once. A plain column's expression, here the parser, Spark copies to wherever
    # the column is used, and would parse each line a dozen times.
    parsed = F.inline_outer(F.array(F.from_json("value", wire, _JSON)))
    lines = _lines(spark, directory, names, kind.pattern).select("*", parsed)
    return lines.withColumn("reason", reason(kind.record, fields))


def _records(judged: DataFrame, table: StructType) -> DataFrame:
    return judged.where("reason is null").select(*table.names)


def _rejected(judged: DataFrame) -> DataFrame:
    line = F.substring("value", 1, SHOWN).alias("line")
    return judged.where("reason is not null").select("run", "file", "reason", line)


def _text(spark: SparkSession, directory: str, pattern: str) -> DataFrame:
    reader = spark.read.option("recursiveFileLookup", "true").option("pathGlobFilter", pattern)
    try:
        return reader.text(spark_path(directory))
    except AnalysisException as error:
        raise TracesError(f"{directory}: no directory that can be read") from error


def _lines(spark: SparkSession, directory: str, names: Mapping[str, str], pattern: str) -> DataFrame:
    """Return `run`, `file` and `value` of every line of the files whose names match."""
    # Spark writes a local file as `file:///a` in the one place and as `file:/a` in the other.
    named = F.create_map(
        *(
            F.lit(text)
            for folder, name in names.items()
            for text in (folder.replace("file:///", "file:/"), name)
        )
    )
    path, file = F.col("_metadata.file_path"), F.col("_metadata.file_name")
    folder = F.substring(path, F.lit(1), F.length(path) - F.length(file) - 1)
    text = _text(spark, directory, pattern)
    return text.select(F.element_at(named, folder).alias("run"), file.alias("file"), "value")


def _line_files(spark: SparkSession, directory: str) -> list[str]:
    if not (files := _text(spark, directory, "*.{observations,truth}.jsonl").inputFiles()):
        raise TracesError(f"{directory}: no *.observations.jsonl and no *.truth.jsonl in it or below it")
    return files


def _run_names(spark: SparkSession, directory: str) -> dict[str, str]:
    """Return a name for each folder that holds trace files: its path below what all have in common."""
    # Names of files alone, as many as there are daemons, not what is in them.
    files = _line_files(spark, directory)
    # Spark writes a local file as `file:///a` here, and as `file:/a` in the column of paths.
    folders = {file.rpartition("/")[0].replace("file:///", "file:/") for file in files}
    common = posixpath.commonpath(folders)
    top = PurePosixPath(common).name
    names: dict[str, str] = {}
    for folder in sorted(folders):
        name = unquote(folder.removeprefix(common).strip("/").replace("/", "-") or top)
        if name in names.values():
            raise TracesError(f"{directory}: two directories in it make a run {name}: give one another name")
        names[folder] = name
    return names
