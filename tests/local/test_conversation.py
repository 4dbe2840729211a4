"""What an application's connection makes of many answers at once."""

from __future__ import annotations

import json
from typing import Any

import trio
import trio.testing

from hushcast.control_messages import MAX_ANSWER, MAX_REQUESTS, StatusRequest, encode_line
from hushcast_local.application_requests import ApplicationRequests
from hushcast_local.conversation import Conversation
from hushcast_node.counters import COUNTERS
from hushcast_runtime.counters import Counters
from hushcast_runtime.transports.lines import PIECE, Lines


class CountedLines(Lines):
    """Lines that know how often they were written."""

    writes = 0

    async def write(self, line: bytes) -> None:
        self.writes += 1
        await super().write(line)


async def heard(status: dict[str, Any]) -> tuple[list[dict[str, Any]], int]:
    """Ask as often as is allowed at once; return the answers, and how many writes they took."""
    ours, theirs = trio.testing.memory_stream_pair()
    lines = CountedLines(theirs, MAX_ANSWER)
    requests = ApplicationRequests(lambda: status, list)  # type: ignore[arg-type, return-value]
    asked, answers = range(1, MAX_REQUESTS + 1), Lines(ours, MAX_ANSWER)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(Conversation(lines, requests, Counters(COUNTERS)).run)
        await ours.send_all(b"".join(encode_line(StatusRequest(request=number)) + b"\n" for number in asked))
        told = [json.loads(await answers.read() or b"") for _ in asked]
        nursery.cancel_scope.cancel()
    assert sorted(answer["request"] for answer in told) == list(asked)
    return told, lines.writes


async def test_answers_of_one_turn_are_one_write() -> None:
    told, writes = await heard({"ready": True})
    assert all(answer["status"] == {"ready": True} for answer in told)
    assert writes <= 3


async def test_long_answers_are_written_piece_by_piece() -> None:
    length = PIECE // 2 + 1
    told, writes = await heard({"name": "x" * length})
    assert all(len(answer["status"]["name"]) == length for answer in told)
    assert writes >= MAX_REQUESTS // 2
