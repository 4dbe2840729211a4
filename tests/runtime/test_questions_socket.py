"""A socket at which its owner asks: it is its owner's alone, and silence of others keeps nobody out."""

from __future__ import annotations

import stat
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import trio

from hushcast_runtime.processes.doctors_socket import MAX_ASKING
from hushcast_runtime.processes.questions_socket import (
    MAX_QUESTION,
    NotAnswered,
    answer_questions,
    ask_question,
)


async def twice(asked: bytes) -> AsyncIterator[bytes]:
    """Answer with two lines."""
    for _ in range(2):
        await trio.lowlevel.checkpoint()
        yield asked


async def answer_to(path: Path, question: bytes, lines: int = 2) -> list[bytes]:
    found: list[bytes] = []

    def take(line: bytes) -> bool:
        found.append(line)
        return len(found) == lines

    await ask_question(path, question, take)
    return found


async def test_silent_askers_keep_nobody_out(tmp_path: Path, nursery: trio.Nursery) -> None:
    path = tmp_path / "s"
    await nursery.start(answer_questions, path, twice, "the socket")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    silent = [await trio.open_unix_socket(path) for _ in range(2 * MAX_ASKING)]
    await trio.testing.wait_all_tasks_blocked(0.01)
    assert await answer_to(path, b"who?") == [b"who?", b"who?"]
    for stream in silent:
        await stream.aclose()
    nursery.cancel_scope.cancel()


async def test_what_is_too_long_is_not_read_on(tmp_path: Path, nursery: trio.Nursery) -> None:
    path = tmp_path / "s"
    await nursery.start(answer_questions, path, twice, "the socket")
    with pytest.raises(NotAnswered):
        await answer_to(path, b"x" * 100 * MAX_QUESTION)
    nursery.cancel_scope.cancel()


async def test_an_answer_that_ends_in_the_middle_is_none(tmp_path: Path, nursery: trio.Nursery) -> None:
    path = tmp_path / "s"
    await nursery.start(answer_questions, path, twice, "the socket")
    with pytest.raises(NotAnswered, match="in the middle"):
        await answer_to(path, b"who?", lines=3)
    nursery.cancel_scope.cancel()


async def test_nobody_there(tmp_path: Path) -> None:
    with pytest.raises(NotAnswered, match="No such file"):
        await answer_to(tmp_path / "none", b"who?")
