"""An answer: all that a provider sends a subscriber for one interval, results and proof in one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hushcast_protocol.base.signatures import Signed
from hushcast_protocol.base.wire import Bytes32, Counter, Wire, decoder
from hushcast_protocol.spatial.batch import Batch
from hushcast_protocol.spatial.pages import ShownPages
from hushcast_protocol.spatial.proof import Shown, prove
from hushcast_protocol.spatial.subscription import Subscription
from hushcast_protocol.spatial.table import Table
from hushcast_protocol.spatial.tree import Node

MAX_ANSWER = 16 * 1024 * 1024  # bytes; all of the largest batch, and 200 bytes of proof a message


class Answer(Wire, frozen=True, tag="located-answer/1"):
    """To which subscription, for which batch, by which weights; and the proof, which has the messages."""

    number: Counter
    subscription: Bytes32
    batch: Signed
    table: Signed
    weights: ShownPages
    proof: Shown | None


@dataclass(frozen=True)
class Feed:
    """A batch as a provider holds it: what is signed, the tree of its messages, and the table of weights."""

    batch: Batch
    root: Node | None
    table: Table

    def answers(self, subscriptions: Sequence[Subscription]) -> list[Answer]:
        """Answer subscriptions, all of them along one way through the tree."""
        proofs = prove(self.root, [self.table.asked(one) for one in subscriptions])
        return [
            Answer(
                self.batch.body.number,
                one.digest,
                self.batch.signed,
                self.table.whole.signed,
                self.table.excerpt(one),
                proof,
            )
            for one, proof in zip(subscriptions, proofs, strict=True)
        ]


decode_answer: Callable[[bytes], Answer] = decoder(Answer, "answer", MAX_ANSWER)
