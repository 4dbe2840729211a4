"""Provenance: what an analysis was made from, so that whoever has its report can make it again."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from hashlib import file_digest, sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from pyspark.sql import SparkSession

Provenance = dict[str, Any]
"""The value of `provenance` in `summary.json`; docs/summary.md has its keys."""

_AT_ONCE = 1 << 16  # bytes that Java copies at a time


def provenance_of(
    command: str | None, traces: Provenance, baseline: Provenance | None, seed: int, draws: Mapping[str, int]
) -> Provenance:
    """Return the provenance of an analysis that is made now.

    `command` is the command line, None for a program's call; `traces` and `baseline` are of `source_of`;
    `draws` tells how often it was drawn who colludes, by carrier.
    """
    return {
        "command": command,
        "version": version("hushcast"),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "traces": traces,
        "baseline": baseline,
        "seed": seed,
        "draws": dict(draws),
    }


def source_of(
    spark: SparkSession,
    path: str,
    files: Sequence[str],
    progress: Callable[[float], None] = lambda share: None,
) -> Provenance:
    """Return the `path` as it was typed, and number, `bytes` and `digest` of its files, which are URIs.

    The digest of one file is its SHA-256, that of several the SHA-256 of what `sha256sum` prints of them,
    sorted, under their paths below the folder that has them all. Files that do not lie on this machine are
    read by Spark's Java; all in one thread and in pieces; `progress` hears which share of the files has been.
    """
    sizes, digests = [], []
    for number, file in enumerate(files, 1):
        size, digest = _read(spark, file)
        sizes.append(size)
        digests.append(digest)
        progress(number / len(files))
    names = [unquote(file) for file in files]
    top = posixpath.commonpath([posixpath.dirname(name) for name in names])
    lines = sorted(
        f"{digest}  {posixpath.relpath(name, top)}\n" for name, digest in zip(names, digests, strict=True)
    )
    whole = digests[0] if len(lines) == 1 else sha256("".join(lines).encode()).hexdigest()
    return {"path": path, "files": len(files), "bytes": sum(sizes), "digest": whole}


def _read(spark: SparkSession, file: str) -> tuple[int, str]:
    """Return size and SHA-256 of a file."""
    if (parts := urlsplit(file)).scheme == "file":
        # To ask Java takes a dozen calls a file, and small test networks have hundreds.
        with Path(unquote(parts.path)).open("rb") as opened:
            return os.fstat(opened.fileno()).st_size, file_digest(opened, "sha256").hexdigest()
    java: Any = spark._jvm
    path = java.org.apache.hadoop.fs.Path(java.java.net.URI(file))
    system = path.getFileSystem(spark._jsc.hadoopConfiguration())
    digest = java.java.security.MessageDigest.getInstance("SHA-256")
    nowhere = java.java.io.OutputStream.nullOutputStream()
    sink = java.java.security.DigestOutputStream(nowhere, digest)
    java.org.apache.hadoop.io.IOUtils.copyBytes(system.open(path), sink, _AT_ONCE, True)
    return system.getFileStatus(path).getLen(), bytes(digest.digest()).hex()
