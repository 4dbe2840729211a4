"""The provider, from files to files: answers each subscription for one batch."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from hushcast_located.batch_folder import make_folder, write_whole
from hushcast_located.engines import answers, matches
from hushcast_protocol.spatial.located_answer import ProviderBatch
from hushcast_protocol.spatial.located_subscription import LocatedSubscription

LIST = "matches.jsonl"


@dataclass
class AnswerTotals:
    """What was written: answers, messages in them, and bytes."""

    answers: int = 0
    messages: int = 0
    size: int = 0


def answer_all(
    feed: ProviderBatch, subscriptions: Mapping[str, LocatedSubscription], out: Path
) -> AnswerTotals:
    """Write `<id>.answer` for each subscription into a folder; raise `UsageError`."""
    make_folder(out)
    told = AnswerTotals()
    made = answers(feed, list(subscriptions.values()))
    for name, (data, messages) in zip(subscriptions, made, strict=True):
        write_whole(out / f"{name}.answer", data, replace=True, durable=False)
        told.answers += 1
        told.messages += messages
        told.size += len(data)
    return told


def line_of(name: str, ids: list[str]) -> str:
    """Return the line of a subscription in a list."""
    return json.dumps({"id": name, "messages": ids}) + "\n"


def list_all(
    feed: ProviderBatch, subscriptions: Mapping[str, LocatedSubscription], out: Path
) -> AnswerTotals:
    """Write who wants which messages into `matches.jsonl` of a folder, without proofs; raise `UsageError`."""
    make_folder(out)
    found = dict(zip(subscriptions, matches(feed, list(subscriptions.values())), strict=True))
    lines = (line_of(name, ids) for name, ids in found.items())
    data = "".join(lines).encode()
    write_whole(out / LIST, data, replace=True)
    return AnswerTotals(len(found), sum(map(len, found.values())), len(data))
