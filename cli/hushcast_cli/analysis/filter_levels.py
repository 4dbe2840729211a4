"""Reads subscriptions from a file, and tells the levels of their filters."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from hushcast_cli.exits import Failure
from hushcast_cli.output import json_line, note, text_line, write
from hushcast_cli.payload import DASH
from hushcast_cli.progress import PATIENCE, reporting
from hushcast_protocol.base.errors import UsageError
from hushcast_protocol.brokers.anonymity_conditions import AnonymityCondition
from hushcast_protocol.brokers.anonymity_levels import Levels
from hushcast_protocol.brokers.filters import Filter
from hushcast_protocol.brokers.generalisation import generalise, merger_shown
from hushcast_protocol.brokers.subscription_lines import MAX_SUBSCRIPTION, KnownTopics, read_subscription
from hushcast_protocol.content.predicates import write_where

_COLUMNS = {condition: condition.replace("-", "_") for condition in AnonymityCondition}
Progress = Callable[[str], None]


@dataclass(frozen=True)
class AnonymityDemand:
    """The anonymity that filters are to have before they are shown."""

    k: int
    condition: AnonymityCondition


def tell(file: Path, asked: AnonymityDemand | None, as_json: bool, preloaded: Path | None = None) -> None:
    """Print a line for each distinct filter of a file; raise `UsageError` where the file is at fault.

    The subscriptions of `preloaded`, another file, count as well, and are told nothing of.
    """
    with _when_slow() as progress:
        levels = Levels()
        topics: KnownTopics = {}
        found, sources = _read(file, levels, topics, progress)
        if preloaded is not None:
            sources += _read(preloaded, levels, topics, progress, others=True)[1]
        if asked is not None and asked.k > sources:
            note(f"note: --k {asked.k} is more than the {sources} sources there are: nothing can be shown")
        told = _told(levels, found, asked, progress)
        if as_json:
            for line in told:
                write(json_line(line))
            return
        lines = list(told)
    if not lines:
        note("note: there are no subscriptions in it")
        return
    for row in _table(lines, asked):
        write(text_line(row))


def _told(
    levels: Levels, found: list[Filter], asked: AnonymityDemand | None, progress: Progress
) -> Iterator[dict[str, Any]]:
    for number, one in enumerate(found):
        progress(f"{number:,} of {len(found):,} filters")
        line: dict[str, Any] = {**_named(one), "sources": len(levels.poset.sources(one))}
        line |= {name: levels.level(one, condition) for condition, name in _COLUMNS.items()}
        if asked is not None:
            shown = generalise(levels, one, asked.condition, asked.k)
            line["shown"] = None if shown is None else _named(shown.filter)
            line["added"] = None if shown is None else shown.added
            merger = None if shown is None else merger_shown(levels, one, shown.filter)
            line["merger"] = None if merger is None else {"added": merger.added, "perfect": merger.is_perfect}
        yield line


def _named(one: Filter) -> dict[str, str]:
    return {"topic": one.topic.name, "where": write_where(one.predicate)}


def _table(lines: list[dict[str, Any]], asked: AnonymityDemand | None) -> list[str]:
    """Return rows of as many columns as there are conditions, under their names, with the texts behind."""
    heads = [[*word.split("_"), "", "", ""][:3] for word in _COLUMNS.values()]
    rows = [["" if at >= len(heads) else heads[at][row] for at in range(len(heads))] for row in range(3)]
    rows += [[str(line[name]) for name in _COLUMNS.values()] for line in lines]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    texts = ["", "", "filter" if asked is None else "filter → shown"]
    for line in lines:
        text = _written(line)
        if asked is not None:
            shown = line["shown"]
            text += " → " + ("nothing" if shown is None else "itself" if _same(line) else _told_wider(line))
        texts.append(text)
    return [
        "  ".join([*(cell.rjust(width) for cell, width in zip(row, widths, strict=True)), text]).rstrip()
        for row, text in zip(rows, texts, strict=True)
    ]


def _told_wider(line: dict[str, Any]) -> str:
    """Return what is shown instead, with the share of messages that it brings besides."""
    merger = line["merger"]
    kind = "" if merger is None else f", {'a perfect' if merger['perfect'] else 'an imperfect'} merger"
    return f"{_written(line['shown'])} (+{100 * line['added']:.2g} %{kind})"


def _same(line: dict[str, Any]) -> bool:
    return bool(line["shown"]["where"] == line["where"])


def _written(named: dict[str, str]) -> str:
    return f"{named['topic']}: {named['where']}" if named["where"] else named["topic"]


def _read(
    file: Path, levels: Levels, topics: KnownTopics, progress: Progress, *, others: bool = False
) -> tuple[list[Filter], int]:
    """Put filters in; return them in the order of first mention, and how many sources there are.

    `others`: they are none of those who are called the same in another file.
    """
    sources = set()
    found: dict[Filter, None] = {}
    with _opened(file) as (stream, name, alone):
        number = 0
        while line := stream.readline(MAX_SUBSCRIPTION + 1):
            number += 1
            if not line.strip():
                continue
            progress(f"{number:,} lines read")
            try:
                source, one = read_subscription(line, topics, alone=alone)
            except UsageError as error:
                raise UsageError(f"{name}, line {number}: {error}") from None
            levels.insert(one, (source, others))
            sources.add(source)
            found[one] = None
    return list(found), len(sources)


@contextmanager
def _opened(file: Path) -> Iterator[tuple[BinaryIO, str, bool]]:
    """Yield the bytes of a file or of standard input, its name, and whether nobody else can read it."""
    if str(file) == DASH:
        if sys.stdin is None:
            raise Failure("standard input is closed: give a FILE")
        if sys.stdin.isatty():
            note("reading subscriptions from the terminal: end with Ctrl-D")
        yield sys.stdin.buffer, "standard input", True
        return
    with file.open("rb") as stream:
        yield stream, str(file), not os.fstat(stream.fileno()).st_mode & 0o077


@contextmanager
def _when_slow() -> Iterator[Progress]:
    """Yield a function that tells what is done now, once a second, and only after the first."""
    last = time.monotonic()
    with ExitStack() as stack:
        report: Progress | None = None

        def progress(text: str) -> None:
            nonlocal last, report
            now = time.monotonic()
            if now - last < PATIENCE:
                return
            last = now
            if report is None:
                report = stack.enter_context(reporting())
            report(text)

        yield progress
