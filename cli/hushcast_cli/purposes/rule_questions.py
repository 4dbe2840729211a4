"""Reads rules, questions and vocabularies from files, and tells what follows from them."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from hushcast_cli.exits import Failure
from hushcast_cli.output import json_line, note, text_line, write
from hushcast_cli.payload import DASH
from hushcast_protocol.base.errors import UsageError
from hushcast_protocol.purposes.purpose_names import Purpose
from hushcast_protocol.purposes.rule_files import (
    MAX_QUESTION,
    MAX_RULES,
    PurposeQuestion,
    ReservationRules,
    read_question,
    read_rules,
    read_topic,
)
from hushcast_protocol.purposes.vocabulary import MAX_VOCABULARY, Vocabulary, read_vocabulary, shipped


def tell(file: Path, asked: Path, as_json: bool) -> None:
    """Print a line for each question; raise `UsageError` where rules or a question are at fault.

    What was asked before a bad question is answered.
    """
    rules = _rules(file)
    for line in _answers(rules, asked, as_json):
        write(line)


def tell_effective(file: Path, topic: str, as_json: bool) -> None:
    """Print the purposes for which a topic may be used; raise `UsageError`."""
    rules = _rules(file)
    found = rules.effective(read_topic(topic))
    ordered = [one for one in rules.vocabulary if one in found]
    if as_json:
        write(json_line({"topic": topic, "allowed": ordered}))
    elif ordered:
        write(b"".join(map(text_line, ordered)))
    else:
        note("note: nothing is allowed for all of it")


def tell_vocabulary(file: Path | None, as_json: bool) -> None:
    """Print a vocabulary as a tree; raise `UsageError` where a file has none."""
    found = shipped() if file is None else _vocabulary(file)
    if as_json:
        write(json_line({"vocabulary": list(found)}))
    else:
        _tree(found)


def _tree(purposes: Iterable[Purpose]) -> None:
    for one in purposes:
        above, _, level = one.rpartition("/")
        write(text_line("  " * (above.count("/") + bool(above)) + level))


def _rules(file: Path) -> ReservationRules:
    try:
        rules = read_rules(_read(file, MAX_RULES))
    except UsageError as error:
        raise UsageError(f"{file}: {error}") from None
    for one in rules.doubled[:1]:
        note(
            f"note: {one.owner} reserves {one.filter} more than once: here all of these count, "
            "in a gateway the last replaces those before"
        )
    return rules


def _vocabulary(file: Path) -> Vocabulary:
    try:
        return read_vocabulary(_read(file, MAX_VOCABULARY).decode())
    except UnicodeDecodeError:
        raise UsageError(f"{file}: this is no text in UTF-8") from None
    except UsageError as error:
        raise UsageError(f"{file}: {error}") from None


def _read(file: Path, most: int) -> bytes:
    with file.open("rb") as stream:
        data = stream.read(most + 1)
    if len(data) > most:
        raise UsageError(f"it has more than {most:,} bytes")
    return data


def _answers(rules: ReservationRules, asked: Path, as_json: bool) -> Iterator[bytes]:
    with _opened(asked) as (stream, name):
        number = 0
        while line := stream.readline(MAX_QUESTION + 1):
            number += 1
            if not line.strip():
                continue
            try:
                question = read_question(line, rules.vocabulary)
            except UsageError as error:
                raise UsageError(f"{name}, line {number}: {error}") from None
            allowed, because = rules.answer(question)
            if as_json:
                yield json_line({"allowed": allowed, "because": because})
            else:
                yield text_line(f"{'allowed' if allowed else 'refused'}  {_named(question)}: {because}")


def _named(question: PurposeQuestion) -> str:
    purpose = "without a purpose" if question.purpose is None else f"for {question.purpose}"
    return f"{question.topic} {purpose}"


@contextmanager
def _opened(file: Path) -> Iterator[tuple[BinaryIO, str]]:
    """Yield the bytes of a file or of standard input, and its name."""
    if str(file) == DASH:
        if sys.stdin is None:
            raise Failure("standard input is closed: give a file of questions")
        if sys.stdin.isatty():
            note("reading questions from the terminal: end with Ctrl-D")
        yield sys.stdin.buffer, "standard input"
        return
    with file.open("rb") as stream:
        yield stream, str(file)
