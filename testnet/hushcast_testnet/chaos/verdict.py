"""The verdict on a run, from what applications noted and what daemons wrote into their traces."""

from __future__ import annotations

import json
import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from hushcast_testnet.chaos.journal import JournalEntry

TOLD = 50  # losses that are told one by one


@dataclass(frozen=True)
class Loss:
    """A message with a receipt that a subscriber's application was never shown."""

    message: str
    subscriber: str
    origins: tuple[str, ...]
    in_inbox: bool
    """Its daemon had it, and did not show it."""


@dataclass(frozen=True)
class Verdict:
    """The fate of a run's messages. A pair is a message with a receipt and a subscriber."""

    waiting: int
    """Durable in an outbox, and still without a receipt."""
    receipts: int
    pairs: int
    delivered: int
    lost: int
    duplicated: int
    """Shown again after the application had acknowledged it."""
    repeated: int
    """Shown again, not acknowledged before: as it must be after a crash."""
    heal: dict[str, float | None]
    """Seconds from a fault's end until all that was published during it and not lost had been shown."""
    losses: list[Loss] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """Return the fields for JSON."""
        return asdict(self)


def judge(
    events: Sequence[JournalEntry], truths: Iterable[dict[str, Any]], topic: str, names: Iterable[str]
) -> Verdict:
    """Judge a run by its journal, the daemons' truths about its topic, and the subscribers' names.

    A message has a receipt if an application was told so, or if its daemon noted an origin that took it.
    """
    subscribers = list(names)
    origins, in_inbox = _by_traces(truths, topic)
    receipts = {event.message: event.time for event in events if event.kind == "published" and event.message}
    for message in origins:
        receipts.setdefault(message, 0.0)
    shown: dict[tuple[str, str], float] = {}
    for event in events:
        if event.kind == "shown" and event.message is not None:
            shown.setdefault((event.message, event.daemon), event.time)
    pairs = [(message, subscriber) for message in receipts for subscriber in subscribers]
    losses = [
        Loss(message, name, origins.get(message, ()), (message, name) in in_inbox)
        for message, name in pairs
        if (message, name) not in shown
    ]
    duplicated, repeated = _again(events)
    queued = {event.message for event in events if event.kind == "queued"}
    return Verdict(
        len(queued - receipts.keys()),
        len(receipts),
        len(pairs),
        len(pairs) - len(losses),
        len(losses),
        duplicated,
        repeated,
        _heal(events, receipts, shown),
        losses[:TOLD],
    )


def _by_traces(
    truths: Iterable[dict[str, Any]], topic: str
) -> tuple[dict[str, tuple[str, ...]], set[tuple[str, str]]]:
    """Return the origins of each message that any took, and which daemon has what in its inbox."""
    origins: dict[str, tuple[str, ...]] = {}
    in_inbox: set[tuple[str, str]] = set()
    for truth in truths:
        if truth.get("topic") != topic:
            continue
        if truth["kind"] == "published" and truth.get("origins"):
            origins[truth["message"]] = tuple(truth["origins"])
        elif truth["kind"] == "delivered":
            in_inbox.add((truth["message"], truth["daemon"]))
    return origins, in_inbox


def _again(events: Sequence[JournalEntry]) -> tuple[int, int]:
    """Count what was shown again: wrongly, and because nobody had acknowledged it.

    It is wrong, too, if a message comes again at another place of the inbox: it was taken for a new one.
    """
    duplicated = repeated = 0
    places: dict[tuple[str, str], int] = {}  # the cursor of each (daemon, message)
    bound: dict[str, int] = defaultdict(int)  # the cursor up to which a daemon confirmed an acknowledgement
    for event in events:
        name = event.daemon
        if event.cursor is None:
            continue
        if event.kind == "acknowledged":
            bound[name] = max(bound[name], event.cursor)
        elif event.kind == "shown" and event.message is not None:
            before = places.get((name, event.message))
            if before is None:
                places[name, event.message] = event.cursor
            elif before != event.cursor or before <= bound[name]:
                duplicated += 1
            else:
                repeated += 1
    return duplicated, repeated


def _heal(
    events: Sequence[JournalEntry], receipts: dict[str, float], shown: dict[tuple[str, str], float]
) -> dict[str, float | None]:
    last: dict[str, float] = defaultdict(float)  # when a message was shown to the last subscriber
    for (message, _), time in shown.items():
        last[message] = max(last[message], time)
    begun: dict[str, float] = {}
    heals = []
    for event in events:
        if event.kind == "begin":
            begun[event.daemon] = event.time
        elif event.kind == "end":
            during = [m for m, time in receipts.items() if begun[event.daemon] <= time <= event.time]
            if during:
                heals.append(max(0.0, *(last[message] - event.time for message in during)))
    if not heals:
        return {"median": None, "worst": None}
    return {"median": round(statistics.median(heals), 3), "worst": round(max(heals), 3)}


def traces(directory: Path) -> Iterable[dict[str, Any]]:
    """Read the truths in a testnet's directory of traces, each with its `daemon`'s name.

    A daemon that is killed may leave half a line; what does not decode is passed over.
    """
    for path in sorted(directory.glob("*.truth.jsonl")):
        name = path.name.removesuffix(".truth.jsonl")
        for line in path.read_bytes().splitlines():
            try:
                yield json.loads(line) | {"daemon": name}
            except ValueError:
                continue
