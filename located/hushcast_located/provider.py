"""The provider, from files to files: answers each subscription for one batch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from hushcast_located.folder import write_whole
from hushcast_protocol.base.errors import UsageError
from hushcast_protocol.base.wire import encode
from hushcast_protocol.spatial.answer import Feed
from hushcast_protocol.spatial.proof import wanted
from hushcast_protocol.spatial.subscription import Subscription

_AT_ONCE = 256  # subscriptions along one way through the tree: their answers are held until they are written


@dataclass
class Answered:
    """What was written: answers, messages in them, and bytes."""

    answers: int = 0
    messages: int = 0
    size: int = 0


def answer_all(feed: Feed, subscriptions: Mapping[str, Subscription], out: Path) -> Answered:
    """Write `<id>.answer` for each subscription into a folder; raise `UsageError`."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{out} cannot be made: {error.strerror}") from None
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
