"""An answer: all that a provider sends a subscriber for one interval, results and proof in one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from hushcast_protocol.base.crypto.signatures import Signed
from hushcast_protocol.base.wire import Bytes32, Counter, Wire, decoder
from hushcast_protocol.spatial.batch import Batch
from hushcast_protocol.spatial.located_subscription import LocatedSubscription
from hushcast_protocol.spatial.owner_keys import Handovers
from hushcast_protocol.spatial.tmr_tree import BatchWords, TreeNode
from hushcast_protocol.spatial.verification_object import ShownPart, prove
from hushcast_protocol.spatial.weight_table import WeightTable
from hushcast_protocol.spatial.word_pages import ShownPages

MAX_ANSWER = 16 * 1024 * 1024  # bytes; all of the largest batch, and 200 bytes of proof a message


class LocatedAnswer(Wire, frozen=True, tag="located-answer/1"):
    """To which subscription, for which batch, by which weights; which messages have its words; and the proof.

    The messages that are wanted stand in the proof.
    """

    number: Counter
    subscription: Bytes32
    batch: Signed
    table: Signed
    weights: ShownPages
    words: ShownPages
    proof: ShownPart | None
    keys: Handovers = ()
    """Of the owner, up to the key that signs."""


@dataclass(frozen=True)
class ProviderBatch:
    """A batch as a provider holds it: what is signed, the tree of its messages, and the table of weights."""

    batch: Batch
    root: TreeNode | None
    table: WeightTable

    @cached_property
    def said(self) -> BatchWords:
        """The words of its messages."""
        return BatchWords(self.root)

    def answers(self, subscriptions: Sequence[LocatedSubscription]) -> list[LocatedAnswer]:
        """Answer subscriptions, each by itself."""
        return [
            LocatedAnswer(
                self.batch.body.number,
                one.digest,
                self.batch.signed,
                self.table.whole.signed,
                self.table.excerpt(one),
                self.said.paged.showing(one.words),
                prove(self.root, self.said, self.table.asked(one)),
                self.table.whole.keys,
            )
            for one in subscriptions
        ]


decode_answer: Callable[[bytes], LocatedAnswer] = decoder(LocatedAnswer, "answer", MAX_ANSWER)
