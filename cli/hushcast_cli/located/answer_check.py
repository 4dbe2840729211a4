"""Checks an answer of a located feed, and tells people what it says or why it does not hold."""

from __future__ import annotations

from pathlib import Path

from hushcast_cli.choices import Choices
from hushcast_cli.output import json_line, text_line, write
from hushcast_located.keys import read_public
from hushcast_located.meanings import MEANING, when
from hushcast_protocol.base.errors import Refusal, UsageError
from hushcast_protocol.spatial.answer_problems import InvalidAnswer
from hushcast_protocol.spatial.batch import Batch
from hushcast_protocol.spatial.keywords import NEWEST, WordRule
from hushcast_protocol.spatial.located_answer import MAX_ANSWER
from hushcast_protocol.spatial.located_subscription import LocatedSubscription, read_subscription
from hushcast_protocol.spatial.places import degrees_of
from hushcast_protocol.spatial.verifier import VerifiedAnswer, batch_of, rule_of, verify
from hushcast_runtime.files import read_most


def tell(choices: Choices, answer: Path, owner: str, subscription: str, after: Path | None) -> None:
    """Print what an answer says; raise `Refusal` where it does not hold, `UsageError` for what was typed."""
    public, line = read_public(owner), subscription.encode(errors="surrogatepass")
    _asked(line, NEWEST)  # what was typed is told first, whatever the answer is
    try:
        data = read_most(answer, MAX_ANSWER)
        said = verify(public, _asked(line, rule_of(public, data)), data, _before(public, after))
    except InvalidAnswer as error:
        if choices.json:
            write(json_line({"verified": False, "messages": [], "problem": str(error.problem)}))
        raise Refusal(f"{answer} does not hold: {error.problem} ({MEANING[error.problem]})") from None
    if choices.json:
        ids = [one.id for one in said.messages]
        write(json_line({"verified": True, "messages": ids, "problem": None}))
        return
    _print(said)


def _asked(line: bytes, rule: WordRule) -> LocatedSubscription:
    try:
        return read_subscription(line, rule)[1]
    except UsageError as error:
        raise UsageError(f"--subscription: {error}") from None


def _print(said: VerifiedAnswer) -> None:
    body = said.batch.body
    found = f"{len(said.messages):,} of {body.count:,} messages"
    write(text_line(f"batch {body.number}, {body.seconds} s from {when(body.start)}: verified, {found}"))
    for one in said.messages:
        latitude, longitude = degrees_of(one.place)
        write(text_line(f"{one.id}  {latitude:.5f} {longitude:.5f}  {one.payload.decode(errors='replace')}"))


def _before(owner: bytes, after: Path | None) -> Batch | None:
    if after is None:
        return None
    try:
        return batch_of(owner, read_most(after, MAX_ANSWER))
    except InvalidAnswer as error:
        raise UsageError(
            f"--after {after}: that is no answer from this owner's feed: {error.problem}"
        ) from None
