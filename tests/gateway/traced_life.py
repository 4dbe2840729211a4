"""The life of a PUBLISH as it is traced, beside the page."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = Path(__file__).parents[2]
ROOMS = tuple(f"{ROOT}/{room}/" for room in ("gateway", "protocol/hushcast_protocol", "client"))
ROW = re.compile(r"^\| \d+ \| `([\w.]+)` `([\w.]+)` \| [^|]+ \| ([^|]+) \|$", re.M)
WAYS = {
    # What is entered last of each part of the way, and what first: behind these a task or the loop begins.
    "NetworkPublisher.put": "Server._read",
    "Daemon.enqueue": "NetworkPublisher._send",
    "MqttConnection.answer": "NetworkPublisher._send",
    "ClientStream.send": "MqttConnection.release",  # which the broker calls when the disk has the number
    "ClientStream.write": "ClientStream.write",
}


def listed() -> list[tuple[str, str, str]]:
    """Return module, function, and what it asks."""
    return ROW.findall((ROOT / "gateway" / "README.md").read_text())


def of_ours(frame: FrameType) -> bool:
    return frame.f_code.co_filename.startswith(ROOMS)


class Traced:
    """Who called whom, from the first function of a part of the way to its last, and all that was entered."""

    def __init__(self) -> None:
        self.ways: dict[str, list[str]] = {}
        self.entered: list[str] = []

    def take(self, frame: FrameType, event: str, argument: Any) -> None:
        name = frame.f_code.co_qualname
        if event != "call" or not of_ours(frame):
            return
        self.entered.append(name)
        if name in WAYS and (way := list(_callers(frame, WAYS[name]))):
            self.ways.setdefault(name, way)


def _callers(frame: FrameType | None, first: str) -> Iterator[str]:
    """Return those of our rooms from `first` on that led to a call; none if it did not begin there."""
    found: list[str] = []
    while frame is not None:
        if of_ours(frame):
            found.insert(0, frame.f_code.co_qualname)
        frame = frame.f_back
    return iter(found[found.index(first) :] if first in found else [])


@contextmanager
def tracing() -> Iterator[Traced]:
    traced = Traced()
    sys.setprofile(traced.take)
    try:
        yield traced
    finally:
        sys.setprofile(None)


def check(traced: Traced) -> None:
    """Compare the functions on the way, each once, with those of the page."""
    walked = dict.fromkeys(name for gate in WAYS for name in traced.ways[gate])
    assert list(walked) == [name for _, name, _ in listed()]
