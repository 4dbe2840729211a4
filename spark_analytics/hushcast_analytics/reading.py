"""Reading: trace files of daemons become tables; what is no record is set aside with its reason.

    traces = open_traces(spark, "traces", "work")
    traces.observations, traces.truths, traces.rejected

Observations and truths never meet here: an adversary's view is what the adversary's daemons observed.
"""

from __future__ import annotations

import posixpath
import re
import typing
from dataclasses import dataclass
from pathlib import PurePosixPath
from urllib.parse import unquote

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StringType, StructField, StructType

from hushcast_analytics.errors import TracesError
from hushcast_analytics.tables import OBSERVATIONS, PARTITIONS, REJECTED, RUN, TRUTHS
from hushcast_protocol.trace import SCHEMA, Observation, Truth

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
    keep(read_lines(spark, source), work)
    return load(spark, work)


def read_lines(spark: SparkSession, directory: str) -> Traces:
    """Read `<name>.observations.jsonl` and `<name>.truth.jsonl` in a directory and all below it.

    The files of one directory are one run, named after it. Raises `TracesError` if there is no such file.
    """
    names = _run_names(spark, directory)
    observations, not_observations = _split(
        _lines(spark, directory, "*.observations.jsonl", names), Observation, OBSERVATIONS
    )
    truths, not_truths = _split(_lines(spark, directory, "*.truth.jsonl", names), Truth, TRUTHS)
    return Traces(observations, truths, not_observations.unionByName(not_truths))


def keep(traces: Traces, directory: str) -> None:
    """Write the tables as Parquet into `directory`, replacing the runs and epochs that they hold."""
    for name, table in (("observations", traces.observations), ("truths", traces.truths)):
        # Few files for little data, many for much: Spark chooses from the sizes that it sees.
        balanced = table.hint("rebalance", *PARTITIONS)
        balanced.write.mode("overwrite").partitionBy(*PARTITIONS).parquet(f"{directory}/{name}")
    traces.rejected.write.mode("overwrite").partitionBy("run").parquet(f"{directory}/rejected")


def load(spark: SparkSession, directory: str) -> Traces:
    """Return the tables that `keep`, or the generator, wrote into `directory`."""
    return Traces(
        _parquet(spark, f"{directory}/observations", OBSERVATIONS),
        _parquet(spark, f"{directory}/truths", TRUTHS),
        _parquet(spark, f"{directory}/rejected", REJECTED),
    )


def has_tables(spark: SparkSession, directory: str) -> bool:
    """Tell whether `load` finds tables in a directory."""
    try:
        _parquet(spark, f"{directory}/observations", OBSERVATIONS)
    except AnalysisException:
        return False
    return True


def _parquet(spark: SparkSession, path: str, schema: StructType) -> DataFrame:
    # Partition columns come last from Parquet; a table has its columns in the order of its schema.
    return spark.read.schema(schema).parquet(path).select(*schema.names)


def _split(
    lines: DataFrame, record: type[Observation] | type[Truth], table: StructType
) -> tuple[DataFrame, DataFrame]:
    """Return the records among lines, and the lines that are none."""
    fields = [field for field in table.fields if field.name != RUN.name]
    wire = StructType([StructField("schema", LongType()), *fields, StructField(_CORRUPT, StringType())])
    lines = lines.withColumn("record", F.from_json("value", wire, _JSON))
    judged = lines.withColumn("reason", _reason(record, fields))
    good = judged.where(F.col("reason").isNull())
    bad = judged.where(F.col("reason").isNotNull())
    return (
        good.select("run", *(F.col(f"record.{field.name}") for field in fields)),
        bad.select("run", "file", "reason", F.substring("value", 1, SHOWN).alias("line")),
    )


_CORRUPT = "corrupt"
_JSON = {
    "mode": "PERMISSIVE",
    "columnNameOfCorruptRecord": _CORRUPT,
    # What the writer never writes is not read either.
    "allowSingleQuotes": "false",
    "allowNonNumericNumbers": "false",
}


_SCHEME = "^([a-z0-9]+:)/+"


def _text(spark: SparkSession, directory: str, pattern: str) -> DataFrame:
    reader = spark.read.option("recursiveFileLookup", "true").option("pathGlobFilter", pattern)
    try:
        return reader.text(directory)
    except AnalysisException as error:
        raise TracesError(f"{directory}: no directory that can be read") from error


def _lines(spark: SparkSession, directory: str, pattern: str, names: dict[str, str]) -> DataFrame:
    """Return `run`, `file` and `value` of every line of the files whose names match."""
    # Spark writes a local file as `file:///a` in the one place and as `file:/a` in the other.
    path = F.regexp_replace("_metadata.file_path", _SCHEME, "$1/")
    folder, file = (F.regexp_extract(path, "^(.*)/([^/]*)$", group) for group in (1, 2))
    named = F.create_map(*(F.lit(text) for pair in names.items() for text in pair))
    text = _text(spark, directory, pattern)
    return text.select(F.element_at(named, folder).alias("run"), file.alias("file"), "value")


def _run_names(spark: SparkSession, directory: str) -> dict[str, str]:
    """Return a name for each folder that holds trace files: its path below what all have in common."""
    # Names of files alone, as many as there are daemons, not what is in them.
    files = _text(spark, directory, "*.{observations,truth}.jsonl").inputFiles()
    if not files:
        raise TracesError(f"{directory}: no *.observations.jsonl and no *.truth.jsonl in it or below it")
    folders = sorted({re.sub(_SCHEME, r"\1/", file).rpartition("/")[0] for file in files})
    common = posixpath.commonpath(folders)
    top = PurePosixPath(common).name
    return {
        folder: unquote(folder.removeprefix(common).strip("/").replace("/", "-") or top) for folder in folders
    }


def _reason(record: type[Observation] | type[Truth], fields: list[StructField]) -> Column:
    """Return why a line is no record, or null if it is one."""
    line, version, kind = F.col("value"), F.col("record.schema"), F.col("record.kind")
    # Spark's parser is content with the first object of a line: what follows it would be lost without a word.
    runs_on = ~line.endswith("}") | (F.locate('{"schema":', line, 2) > 0)
    reason = F.when(F.trim(line) == "", "an empty line")
    reason = reason.when(F.col(f"record.{_CORRUPT}").isNotNull(), "not one record in JSON")
    reason = reason.when(runs_on, "not one record in JSON")
    reason = reason.when(version.isNull(), "no schema version")
    other = F.concat(F.lit("schema version "), version.cast("string"), F.lit(f" instead of {SCHEMA}"))
    reason = reason.when(version != SCHEMA, other)
    for field in fields:
        if not field.nullable:
            reason = reason.when(F.col(f"record.{field.name}").isNull(), f"no {field.name}")
    return reason.when(~kind.isin(*typing.get_args(typing.get_type_hints(record)["kind"])), "an unknown kind")
