"""The story of one message, for people: its way, and what relays on it saw and did not, out of the traces."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hushcast_testnet.inventory import CarrierName
from hushcast_testnet.watch.follower import Follower
from hushcast_testnet.watch.pictures import picture_of

_KINDS = ("origin", "relay", "top")
"""Of those between publisher and mailboxes: one of each is enough to tell how they differ."""


def story(traces: Path, carrier: CarrierName = "overlay") -> Iterator[str]:
    """Yield the lines of the story; none if no message passed from where it came in to an inbox."""
    picture = picture_of(carrier)
    follower = Follower(traces)
    while records := list(follower.new()):
        for name, record in records:
            picture.take(name, record)
    ways = [way for row in picture.messages() if (way := picture.way(row["id"])) is not None]
    told = max(ways, key=_telling, default=None)
    if told is None or not {"origin", "top", "mailbox"} <= _kinds(told):
        return
    yield told["summary"]
    for kind in _KINDS:
        for station in [station for station in told["stations"] if station["kind"] == kind][:1]:
            yield ""
            yield f"  {station['name']} · {station['role']}"
            yield from (f"    saw      {text}" for text in station["saw"])
            yield from (f"    did not  {text}" for text in station["hidden"])


def _telling(way: dict[str, Any]) -> tuple[int, int]:
    """Order ways by how much they show: all kinds of relays, none of which publishes or subscribes itself."""
    return len(_kinds(way)), -sum(bool(station["note"]) for station in way["stations"])


def _kinds(way: dict[str, Any]) -> set[str]:
    return {station["kind"] for station in way["stations"]}
