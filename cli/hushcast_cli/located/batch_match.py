"""Answers subscriptions of a located feed by the engine that was asked for, and tells how many."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from hushcast_cli.analysis.spark import spark_session
from hushcast_cli.choices import Choices
from hushcast_cli.output import json_line, text_line, write
from hushcast_cli.progress import reporting
from hushcast_located.batch_folder import BatchFolder
from hushcast_located.file_provider import AnswerTotals, answer_all, list_all
from hushcast_located.input_lines import read_subscriptions
from hushcast_protocol.base.errors import UsageError


@dataclass(frozen=True)
class MatchOptions:
    """The options of `hushcast lab located match`."""

    folder: Path
    subscriptions: Path
    out: Path
    number: int | None
    alone: bool
    engine: str
    master: str | None


def tell(choices: Choices, asked: MatchOptions) -> None:
    """Match, and print what was written; raise `UsageError`, or `Failure` where Spark fails."""
    if asked.master is not None and asked.engine != "spark":
        raise UsageError("--master is of --engine spark: give it, too")
    told, chosen = (_on_spark if asked.engine == "spark" else _locally)(asked)
    if choices.json:
        counts = {"answers": told.answers, "messages": told.messages, "bytes": told.size}
        write(json_line({"out": str(asked.out), "number": chosen, **counts}))
        return
    kind = "subscriptions" if asked.alone else "answers"
    what = f"{told.answers:,} {kind} for batch {chosen}, with {told.messages:,} messages in all"
    write(text_line(f"{asked.out}: {what}"))


def _locally(asked: MatchOptions) -> tuple[AnswerTotals, int]:
    folder = BatchFolder(asked.folder)
    chosen = folder.chosen(asked.number)
    _, feed = folder.read(chosen)
    subscriptions = read_subscriptions(asked.subscriptions, feed.table.body.rule)
    return (list_all if asked.alone else answer_all)(feed, subscriptions, asked.out), chosen


def _on_spark(asked: MatchOptions) -> tuple[AnswerTotals, int]:
    folder = BatchFolder(asked.folder)
    chosen = folder.chosen(asked.number)
    of = folder.read(chosen)
    with reporting() as progress, spark_session(asked.master, progress) as session:
        from hushcast_located.spark_engine import match

        return match(session, of, asked.subscriptions, asked.out, not asked.alone, progress), chosen
