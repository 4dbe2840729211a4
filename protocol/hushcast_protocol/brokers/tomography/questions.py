"""Questions about the way between two brokers, and answers that the service signs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import msgspec

from hushcast_protocol.base.crypto.hashes import Domain, digest
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.crypto.signatures import SignaturePurpose, Signed, check, sign
from hushcast_protocol.base.errors import AuthenticationError
from hushcast_protocol.base.wire import Counter, PublicKey, Wire, decoder, encode
from hushcast_protocol.brokers.anonymity_conditions import AnonymityCondition
from hushcast_protocol.brokers.clear_words import ShownFilter
from hushcast_protocol.brokers.tomography.statements import MAX_CROWD, Pseudonym

MAX_SPREAD = 64  # edge brokers that a crowd may be asked to come from
MAX_ANSWER = 20 * MAX_CROWD + 1024  # bytes; most of it the sources that the asker named


class TomographyQuestion(Wire, frozen=True, tag="question"):
    """Is the filter k-anonymous from one broker to another, by a crowd of at least `spread` edge brokers?

    `sources` are those who are behind it at `origin` and not stated yet: an edge broker asks before it shows
    a filter. With `is_real` no bogus sources count, and of those who come the same way only who is behind the
    filter itself: where it is shown, nothing that it covers is shown beside it.
    """

    filter: ShownFilter
    origin: PublicKey
    target: PublicKey
    k: Annotated[int, msgspec.Meta(ge=1, le=MAX_CROWD)]
    condition: AnonymityCondition
    spread: Annotated[int, msgspec.Meta(ge=1, le=MAX_SPREAD)]
    is_real: bool
    sources: Annotated[tuple[Pseudonym, ...], msgspec.Meta(max_length=MAX_CROWD)]


class TomographyAnswer(Wire, frozen=True, tag="answer/1"):
    """Whether it is, and until when that may be believed (Unix time)."""

    question: TomographyQuestion
    is_anonymous: bool
    until: Counter


_decode: Callable[[bytes], TomographyAnswer] = decoder(TomographyAnswer, "answer", MAX_ANSWER)


def question_digest(question: TomographyQuestion) -> bytes:
    """Return 32 bytes that name a question, which a stamp for it is bound to."""
    return digest(Domain.STAMP, b"question", encode(question))


def answered(seed: Seed, answer: TomographyAnswer) -> Signed:
    """Sign an answer with the service's key."""
    return sign(seed, SignaturePurpose.ANSWER, answer)


def read_answer(
    signed: Signed, service: PublicKey, question: TomographyQuestion, now: float
) -> TomographyAnswer:
    """Return the service's answer to a question; raise `PeerError` if it is none, or is over."""
    answer = _decode(signed.body)
    check(service, SignaturePurpose.ANSWER, signed.body, signed.signature)
    if answer.question != question:
        raise AuthenticationError("an answer is to another question")
    if answer.until <= now:
        raise AuthenticationError("an answer is no longer valid")
    return answer
