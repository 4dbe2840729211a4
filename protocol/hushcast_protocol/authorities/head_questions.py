"""Questions for heads, which every release asks and answers: in links of the wire `LASTING`, by anybody.

Who does not speak what a network speaks, or does not know what that is, learns it from a directory so.
Authorities ask each other in the same words, over the links that they have.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import msgspec

from hushcast_protocol.authorities.chain import MAX_TURNS
from hushcast_protocol.authorities.heads import MAX_CERTIFIED, CertifiedHead
from hushcast_protocol.base.wire import Counter, Lasting, decoder

MAX_HEADS_QUESTION = 256  # bytes; it has 21, and may grow
MAX_HEADS_ANSWER = (MAX_TURNS + 1) * MAX_CERTIFIED + 256  # bytes; as a rule one head, of 5 kB


class AskHeads(Lasting, frozen=True, tag="ask-heads"):
    """Ask how one comes from the head of an epoch, or from none, to the newest."""

    after: Counter | None


class Heads(Lasting, frozen=True, tag="heads"):
    """The newest head last; before it those that tell of changes of authorities. Or the two of a fork."""

    heads: Annotated[tuple[CertifiedHead, ...], msgspec.Meta(max_length=MAX_TURNS + 1)]


decode_heads_question: Callable[[bytes], AskHeads] = decoder(
    AskHeads, "question for heads", MAX_HEADS_QUESTION
)
decode_heads_answer: Callable[[bytes], Heads] = decoder(Heads, "answer of heads", MAX_HEADS_ANSWER)
