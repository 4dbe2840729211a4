"""What a map shows: the messages of a batch, the subscriptions, and what each answer turned out to be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from hushcast_located.engines import matches
from hushcast_located.folder import Folder, read_most
from hushcast_located.lines import read_subscriptions
from hushcast_protocol.base.wire import PublicKey
from hushcast_protocol.spatial.answer import MAX_ANSWER, Feed
from hushcast_protocol.spatial.batch import Batch
from hushcast_protocol.spatial.messages import LocatedMessage
from hushcast_protocol.spatial.problems import DoesNotHold, Problem
from hushcast_protocol.spatial.subscription import Subscription
from hushcast_protocol.spatial.tree import entries_of
from hushcast_protocol.spatial.verify import verify


@dataclass(frozen=True)
class Answered:
    """A subscription, the ids of all that it wants, and what is wrong with its answer."""

    name: str
    subscription: Subscription
    wanted: tuple[str, ...]
    problem: Problem | None
    has_answer: bool = True


@dataclass(frozen=True)
class Gathered:
    """A batch with its messages by id, and who asked."""

    batch: Batch
    messages: Mapping[str, LocatedMessage]
    answered: list[Answered]


def gather(batches: Path, number: int | None, subscriptions: Path, answers: Path) -> Gathered:
    """Read a batch (the newest unless told), subscriptions and answers; raise `UsageError`.

    What a subscription wants is found here from the messages, not from what its answer says.
    """
    folder = Folder(batches)
    owner, feed = folder.read(folder.chosen(number))
    asked = read_subscriptions(subscriptions)
    wanted = matches(feed, list(asked.values()))
    messages = {entry.message.id: entry.message for entry in entries_of(feed.root)}
    answered = [
        _answered(owner, feed, name, one, tuple(ids), answers / f"{name}.answer")
        for (name, one), ids in zip(asked.items(), wanted, strict=True)
    ]
    return Gathered(feed.batch, messages, answered)


def _answered(
    owner: PublicKey, feed: Feed, name: str, one: Subscription, wanted: tuple[str, ...], file: Path
) -> Answered:
    if not file.exists():
        return Answered(name, one, wanted, Problem.SILENT, has_answer=False)
    try:
        said = verify(owner, one, read_most(file, MAX_ANSWER))
        number, own = said.batch.body.number, feed.batch.body.number
        if number != own:
            raise DoesNotHold(Problem.OLD_ROOT if number < own else Problem.OTHER_INTERVAL)
        if said.batch.digest != feed.batch.digest:
            raise DoesNotHold(Problem.FORKED)
    except DoesNotHold as error:
        return Answered(name, one, wanted, error.problem)
    return Answered(name, one, wanted, None)
