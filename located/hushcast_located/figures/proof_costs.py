"""What proofs take beside a signature for each message (the paper's baseline BL): bytes and time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean
from time import process_time

from hushcast_located.prover import Prover
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.crypto.signatures import SignaturePurpose, Signed, check, sign
from hushcast_protocol.base.wire import decoder, encode
from hushcast_protocol.spatial.located_answer import ProviderBatch
from hushcast_protocol.spatial.located_messages import LocatedMessage
from hushcast_protocol.spatial.located_subscription import LocatedSubscription
from hushcast_protocol.spatial.places import square
from hushcast_protocol.spatial.similarity import WeightedSubscription
from hushcast_protocol.spatial.tmr_tree import entries_of
from hushcast_protocol.spatial.verifier import verify

MANY = 10
"""Messages to a subscriber from which on a proof is to be compared with a signature for each."""

_PURPOSE = SignaturePurpose.LOCATED_BATCH  # the baseline has none of its own: nobody ever reads it
_decode: Callable[[bytes], LocatedMessage] = decoder(LocatedMessage, "message", 1 << 20)


@dataclass(frozen=True)
class ProofComparison:
    """Means of some subscribers: messages, bytes of an answer and of signed messages, seconds to verify.

    `_all` is of all messages of the batch, signed: what it takes to prove with them that nothing is missing.
    """

    subscribers: int
    messages: float
    size: float
    size_signed: float
    verifying: float
    verifying_signed: float
    size_all: int
    verifying_all: float


@dataclass(frozen=True)
class ProofCosts:
    """Seconds to make an answer, and what answers take, of all and of those with `MANY` messages."""

    making: float
    all: ProofComparison
    many: ProofComparison | None


@dataclass(frozen=True)
class _One:
    messages: int
    size: int
    size_signed: int
    verifying: float
    verifying_signed: float


def measure_proofs(
    owner: Seed, feed: ProviderBatch, asked: Sequence[WeightedSubscription], verified: int
) -> ProofCosts:
    """Answer subscriptions as the provider does, and verify the answers of some of them."""
    subscriptions = [
        LocatedSubscription(one.place, tuple(sorted(one.weights)), one.alpha, one.threshold) for one in asked
    ]
    began = process_time()
    prover = Prover(feed)
    step = max(len(asked) // verified, 1)
    made = enumerate(prover.answers(subscriptions))
    answers = [answer for at, (answer, _) in made if at % step == 0]  # all of them may take gigabytes
    making = (process_time() - began) / len(asked)
    messages = {entry.message.id: entry.message for entry in entries_of(feed.root)}
    signed = {name: encode(sign(owner, _PURPOSE, one)) for name, one in messages.items()}
    found = [
        _one(owner, one, subscription, answer, signed)
        for one, subscription, answer in zip(asked[::step], subscriptions[::step], answers, strict=True)
    ]
    began = process_time()
    for data in signed.values():
        _check_signed(owner.public(), asked[0], data)
    whole = sum(map(len, signed.values())), process_time() - began
    many = [one for one in found if one.messages >= MANY]
    return ProofCosts(making, _compared(found, whole), _compared(many, whole) if many else None)


def _one(
    owner: Seed,
    asked: WeightedSubscription,
    subscription: LocatedSubscription,
    answer: bytes,
    signed: dict[str, bytes],
) -> _One:
    public = owner.public()
    began = process_time()
    said = verify(public, subscription, answer)
    verifying = process_time() - began
    each = [signed[one.id] for one in said.messages]
    began = process_time()
    for data in each:
        assert _check_signed(public, asked, data)
    return _One(len(each), len(answer), sum(map(len, each)), verifying, process_time() - began)


_decode_signed: Callable[[bytes], Signed] = decoder(Signed, "message", 1 << 20)


def _check_signed(owner: bytes, asked: WeightedSubscription, data: bytes) -> bool:
    """Do what a subscriber does with a message that is signed by itself."""
    signed = _decode_signed(data)
    check(owner, _PURPOSE, signed.body, signed.signature)
    one = _decode(signed.body)
    common = sum(weight for word, weight in asked.weights.items() if word in one.words)
    return asked.reaches(common, square(asked.place, one.place))


def _compared(found: Sequence[_One], whole: tuple[int, float]) -> ProofComparison:
    return ProofComparison(
        len(found),
        fmean(one.messages for one in found),
        fmean(one.size for one in found),
        fmean(one.size_signed for one in found),
        fmean(one.verifying for one in found),
        fmean(one.verifying_signed for one in found),
        *whole,
    )
