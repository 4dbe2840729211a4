"""The provider, from files to files: answers each subscription for one batch."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from hushcast_located.engines import matches
from hushcast_located.folder import make_folder, write_whole
from hushcast_protocol.base.wire import encode
from hushcast_protocol.spatial.answer import Feed
from hushcast_protocol.spatial.proof import wanted
from hushcast_protocol.spatial.subscription import Subscription

LIST = "matches.jsonl"
_AT_ONCE = 256  # subscriptions along one way through the tree: their answers are held until they are written


@dataclass
class Answered:
    """What was written: answers, messages in them, and bytes."""

    answers: int = 0
    messages: int = 0
    size: int = 0


def answer_all(feed: Feed, subscriptions: Mapping[str, Subscription], out: Path) -> Answered:
    """Write `<id>.answer` for each subscription into a folder; raise `UsageError`."""
    make_folder(out)
    told = Answered()
    names = list(subscriptions)
    for at in range(0, len(names), _AT_ONCE):
        some = names[at : at + _AT_ONCE]
        answers = feed.answers([subscriptions[name] for name in some])
        for name, answer in zip(some, answers, strict=True):
            data = encode(answer)
            write_whole(out / f"{name}.answer", data, replace=True)
            told.answers += 1
            told.messages += len(wanted(answer.proof))
            told.size += len(data)
    return told


def list_all(feed: Feed, subscriptions: Mapping[str, Subscription], out: Path) -> Answered:
    """Write who wants which messages into `matches.jsonl` of a folder, without proofs; raise `UsageError`."""
    make_folder(out)
    found = dict(zip(subscriptions, matches(feed, list(subscriptions.values())), strict=True))
    lines = (json.dumps({"id": name, "messages": ids}) + "\n" for name, ids in found.items())
    data = "".join(lines).encode()
    write_whole(out / LIST, data, replace=True)
    return Answered(len(found), sum(map(len, found.values())), len(data))
