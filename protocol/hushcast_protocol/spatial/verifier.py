"""The verifier: whether an answer is sound and complete, by the owner's key and the subscription alone.

Sound: every message is in the tree whose root the owner signed. Complete: nothing that is not shown can be
wanted, since the bound of each closed node stays below theta. The paper has sizes and times (figures 8, 9);
its proof of completeness (section 4.2.4) holds with the nodes that `proof` opens.
"""

from __future__ import annotations

from dataclasses import dataclass

from hushcast_protocol.base.errors import DecodeError
from hushcast_protocol.base.wire import PublicKey
from hushcast_protocol.spatial.answer_problems import AnswerProblem, InvalidAnswer
from hushcast_protocol.spatial.batch import Batch, BatchBody, check_by, check_next
from hushcast_protocol.spatial.keywords import WordRule
from hushcast_protocol.spatial.located_answer import LocatedAnswer, decode_answer
from hushcast_protocol.spatial.located_messages import content_digest
from hushcast_protocol.spatial.located_subscription import LocatedSubscription
from hushcast_protocol.spatial.owner_keys import OwnerKeys
from hushcast_protocol.spatial.places import Box, around, square_to_box
from hushcast_protocol.spatial.postings import common_weights, unpack
from hushcast_protocol.spatial.similarity import WeightedSubscription
from hushcast_protocol.spatial.tmr_tree import EMPTY, MAX_DEPTH, below_hash, entry_hash, node_hash
from hushcast_protocol.spatial.verification_object import (
    HiddenPart,
    OpenedNode,
    ShownPart,
    UnwantedMessage,
    WantedMessage,
)
from hushcast_protocol.spatial.weight_table import asked_by_excerpt, check_table, table_digest
from hushcast_protocol.spatial.word_pages import ShownPages, pages_of, root_of


@dataclass(frozen=True)
class VerifiedAnswer:
    """An answer that holds: the batch, all of its messages that the subscription wants, and how their texts
    were cut into words."""

    batch: Batch
    messages: tuple[WantedMessage, ...]
    rule: WordRule


def verify(
    owner: PublicKey, subscription: LocatedSubscription, data: bytes, before: Batch | None = None
) -> VerifiedAnswer:
    """Return what an answer says, if it holds; `before` is the batch of the answer before it, if any.

    `owner` is a key by which the feed is known: its owner's, or one that this handed over from.

    Raises `InvalidAnswer`, whose `problem` says why. Without `before` any batch that the owner ever signed
    will do: who was answered before must say so to notice an old batch, or a missing one.
    """
    try:
        answer = decode_answer(data)
        return verify_answer(OwnerKeys.read(owner, answer.keys), subscription, answer, before)
    except DecodeError:
        raise InvalidAnswer(AnswerProblem.FORM) from None


def batch_of(owner: PublicKey, data: bytes) -> Batch:
    """Return the batch that an answer is for, without looking at the rest; raise `InvalidAnswer`."""
    try:
        answer = decode_answer(data)
        return check_by(answer.batch, OwnerKeys.read(owner, answer.keys))
    except DecodeError:
        raise InvalidAnswer(AnswerProblem.FORM) from None


def rule_of(owner: PublicKey, data: bytes) -> WordRule:
    """Return by which rule the owner has texts cut in the batch of an answer; raise `InvalidAnswer`."""
    try:
        answer = decode_answer(data)
        return check_table(answer.table, OwnerKeys.read(owner, answer.keys).of(answer.number)).rule
    except DecodeError:
        raise InvalidAnswer(AnswerProblem.FORM) from None


def verify_answer(
    keys: OwnerKeys, subscription: LocatedSubscription, answer: LocatedAnswer, before: Batch | None = None
) -> VerifiedAnswer:
    """Return what an answer says, as `verify`; `keys` are the owner's, as they are known by now.

    Raises `DecodeError` where it has no answer's form.
    """
    if answer.subscription != subscription.digest:
        raise InvalidAnswer(AnswerProblem.OTHER_SUBSCRIPTION)
    batch = check_by(answer.batch, keys)
    if answer.number != batch.body.number:
        raise InvalidAnswer(AnswerProblem.OTHER_INTERVAL)
    if before is not None:
        check_next(batch, before)
    if table_digest(answer.table) != batch.body.table:
        raise InvalidAnswer(AnswerProblem.WEIGHTS)
    table = check_table(answer.table, keys.of(batch.body.number))
    asked = asked_by_excerpt(subscription, table, answer.weights)
    walk = _Walk(asked, batch.body, answer.words)
    if not walk.all_of(answer.proof):
        raise InvalidAnswer(_why_another_root(walk, batch))
    for problem in (AnswerProblem.LEFT_OUT, AnswerProblem.PADDED):
        if problem in walk.problems:
            raise InvalidAnswer(problem)
    return VerifiedAnswer(batch, tuple(walk.messages), table.rule)


def _why_another_root(walk: _Walk, batch: Batch) -> AnswerProblem:
    """Name what was done to an answer that leads to other hashes than the owner signed."""
    if any(one.number != batch.body.number for one in walk.messages):
        return AnswerProblem.OTHER_INTERVAL
    if walk.count != batch.body.count:
        return AnswerProblem.LEFT_OUT if walk.count < batch.body.count else AnswerProblem.INVENTED
    return AnswerProblem.CHANGED


_Seen = tuple[bytes, Box | None]
"""What is known of a part once it has been looked at: its hash, and its box if that is not hidden."""


class _Walk:
    """Looks at all that is shown, from one end to the other, and hashes it on the way up."""

    def __init__(self, asked: WeightedSubscription, body: BatchBody, words: ShownPages) -> None:
        self._asked = asked
        self._body = body
        self.count = 0
        """Messages that were passed."""
        self.messages: list[WantedMessage] = []
        self.problems: set[AnswerProblem] = set()
        self._right = root_of(words) == body.words
        self._common = self._read(words) if self._right else [0] * body.count

    def all_of(self, proof: ShownPart | None) -> bool:
        """Look at a proof; tell whether it, and the words, are of the batch that was signed."""
        seen = EMPTY if proof is None else self._see(proof, 0)[0]
        return self._right and (seen, self.count) == (self._body.root, self._body.count)

    def _read(self, shown: ShownPages) -> list[int]:
        """Return what each message has in common with the subscription."""
        pages, padded = pages_of(shown, self._asked.weights)
        if len(pages) < len(self._asked.weights):
            self.problems.add(AnswerProblem.LEFT_OUT)
        if padded:
            self.problems.add(AnswerProblem.PADDED)
        said = {}
        for word, page in pages.items():
            if word in page.words and len(page.postings) == len(page.words):
                said[word] = unpack(page.postings[page.words.index(word)])
        return common_weights(self._asked.weights, said, self._body.count)

    def _see(self, shown: ShownPart, depth: int) -> _Seen:
        """Look at one part and all below it; raise `DecodeError` for one that no tree has."""
        if depth > MAX_DEPTH:
            raise DecodeError("a proof is deeper than any tree")
        if isinstance(shown, HiddenPart):
            if self._asked.reaches(self._passed(shown.count), 0):
                self.problems.add(AnswerProblem.LEFT_OUT)
            return shown.hash, None
        if isinstance(shown, OpenedNode):
            return self._opened(shown, depth)
        if isinstance(shown, WantedMessage):
            return self._wanted(shown)
        if isinstance(shown, UnwantedMessage):
            box = shown.place, shown.place
            self._apart(1, box)
            return entry_hash(shown.place, shown.content), box
        self._apart(shown.count, shown.box)
        return node_hash(shown.box, shown.below), shown.box

    def _apart(self, count: int, box: Box) -> None:
        """Look at what is said to be too far, for its words."""
        most = self._passed(count)
        if self._reaches(most, box):
            self.problems.add(AnswerProblem.LEFT_OUT)
        elif not self._asked.reaches(most, 0):
            self.problems.add(AnswerProblem.PADDED)  # its words alone would do

    def _opened(self, node: OpenedNode, depth: int) -> _Seen:
        first = self.count
        counts: list[int] = []
        hashes: list[bytes] = []
        boxes: list[Box] = []
        for child in node.children:
            before = self.count
            found, box = self._see(child, depth + 1)
            counts.append(self.count - before)
            hashes.append(found)
            if box is not None:
                boxes.append(box)
        around_all = self._box(node, boxes)
        # Whoever reaches below reaches here.
        for_nothing = not any(isinstance(child, OpenedNode | WantedMessage) for child in node.children)
        if for_nothing and not self._reaches(self._most(first), around_all):
            self.problems.add(AnswerProblem.PADDED)
        return node_hash(around_all, below_hash(tuple(counts), b"".join(hashes))), around_all

    def _box(self, node: OpenedNode, boxes: list[Box]) -> Box:
        """Return the box of a node with children of these boxes, some of which may be hidden."""
        if node.box is None:
            if len(boxes) < len(node.children):
                raise DecodeError("a node has no box, nor have all of its children")
            return around(boxes)
        if len(boxes) == len(node.children):
            self.problems.add(AnswerProblem.PADDED)
        return node.box

    def _wanted(self, message: WantedMessage) -> _Seen:
        self.messages.append(message)
        box = message.place, message.place
        if not self._reaches(self._passed(1), box):
            self.problems.add(AnswerProblem.PADDED)
        content = content_digest(message.number, message.id, message.payload)
        return entry_hash(message.place, content), box

    def _passed(self, count: int) -> int:
        """Pass so many messages, and return the most that one of them has in common."""
        first, self.count = self.count, self.count + count
        return self._most(first)

    def _most(self, first: int) -> int:
        return max(self._common[first : self.count], default=0)

    def _reaches(self, common: int, box: Box) -> bool:
        return self._asked.reaches(common, square_to_box(self._asked.place, box))
