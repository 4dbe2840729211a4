"""What a map shows: the messages of a batch, the subscriptions, and what each answer turned out to be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from hushcast_located.batch_folder import BatchFolder
from hushcast_located.engines import matches
from hushcast_located.input_lines import read_subscriptions
from hushcast_protocol.base.wire import PublicKey
from hushcast_protocol.spatial.answer_problems import AnswerProblem, InvalidAnswer
from hushcast_protocol.spatial.batch import Batch
from hushcast_protocol.spatial.located_answer import MAX_ANSWER, ProviderBatch
from hushcast_protocol.spatial.located_messages import LocatedMessage
from hushcast_protocol.spatial.located_subscription import LocatedSubscription
from hushcast_protocol.spatial.tmr_tree import entries_of
from hushcast_protocol.spatial.verifier import verify
from hushcast_runtime.files import read_most


@dataclass(frozen=True)
class MapSubscription:
    """A subscription, the ids of all that it wants, and what is wrong with its answer."""

    name: str
    subscription: LocatedSubscription
    wanted: tuple[str, ...]
    problem: AnswerProblem | None
    has_answer: bool = True


@dataclass(frozen=True)
class MapContents:
    """A batch with its messages by id, and who asked."""

    batch: Batch
    messages: Mapping[str, LocatedMessage]
    answered: list[MapSubscription]


def gather(batches: Path, number: int | None, subscriptions: Path, answers: Path) -> MapContents:
    """Read a batch (the newest unless told), subscriptions and answers; raise `UsageError`.

    What a subscription wants is found here from the messages, not from what its answer says.
    """
    folder = BatchFolder(batches)
    owner, feed = folder.read(folder.chosen(number))
    asked = read_subscriptions(subscriptions, feed.table.body.rule)
    wanted = matches(feed, list(asked.values()))
    messages = {entry.message.id: entry.message for entry in entries_of(feed.root)}
    answered = [
        _answered(owner, feed, name, one, tuple(ids), answers / f"{name}.answer")
        for (name, one), ids in zip(asked.items(), wanted, strict=True)
    ]
    return MapContents(feed.batch, messages, answered)


def _answered(
    owner: PublicKey,
    feed: ProviderBatch,
    name: str,
    one: LocatedSubscription,
    wanted: tuple[str, ...],
    file: Path,
) -> MapSubscription:
    if not file.exists():
        return MapSubscription(name, one, wanted, AnswerProblem.SILENT, has_answer=False)
    try:
        said = verify(owner, one, read_most(file, MAX_ANSWER))
        number, own = said.batch.body.number, feed.batch.body.number
        if number != own:
            raise InvalidAnswer(AnswerProblem.OLD_ROOT if number < own else AnswerProblem.OTHER_INTERVAL)
        if said.batch.digest != feed.batch.digest:
            raise InvalidAnswer(AnswerProblem.FORKED)
    except InvalidAnswer as error:
        return MapSubscription(name, one, wanted, error.problem)
    return MapSubscription(name, one, wanted, None)
