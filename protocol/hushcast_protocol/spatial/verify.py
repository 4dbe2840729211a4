"""The verifier: whether an answer is sound and complete, by the owner's key and the subscription alone.

Sound: every message is in the tree whose root the owner signed. Complete: nothing that is not shown can be
wanted, since the bound of each closed node stays below theta. The paper has sizes and times (figures 8, 9);
its proof of completeness (section 4.2.4) holds with the nodes that `proof` opens.
"""

from __future__ import annotations

from dataclasses import dataclass

from hushcast_protocol.base.errors import DecodeError
from hushcast_protocol.base.wire import PublicKey
from hushcast_protocol.spatial.answer import Answer, decode_answer
from hushcast_protocol.spatial.batch import Batch, check_batch, check_next
from hushcast_protocol.spatial.messages import content_digest
from hushcast_protocol.spatial.pages import page_with, root_of
from hushcast_protocol.spatial.places import Box, around, square_to_box
from hushcast_protocol.spatial.problems import DoesNotHold, Problem
from hushcast_protocol.spatial.proof import Apart, Closed, Opened, Shown, ShownWords, Wanted, is_dead_end
from hushcast_protocol.spatial.similarity import Asked
from hushcast_protocol.spatial.subscription import Subscription
from hushcast_protocol.spatial.table import asked_by_excerpt, check_table, table_digest
from hushcast_protocol.spatial.tree import EMPTY, MAX_DEPTH, below_hash, entry_hash, node_hash


@dataclass(frozen=True)
class Verified:
    """An answer that holds: the batch, and all of its messages that the subscription wants."""

    batch: Batch
    messages: tuple[Wanted, ...]


def verify(
    owner: PublicKey, subscription: Subscription, data: bytes, before: Batch | None = None
) -> Verified:
    """Return what an answer says, if it holds; `before` is the batch of the answer before it, if any.

    Raises `DoesNotHold`, whose `problem` says why. Without `before` any batch that the owner ever signed
    will do: who was answered before must say so to notice an old batch, or a missing one.
    """
    try:
        answer = decode_answer(data)
        return _verified(owner, subscription, answer, before)
    except DecodeError:
        raise DoesNotHold(Problem.FORM) from None


def batch_of(owner: PublicKey, data: bytes) -> Batch:
    """Return the batch that an answer is for, without looking at the rest; raise `DoesNotHold`."""
    try:
        return check_batch(decode_answer(data).batch, owner)
    except DecodeError:
        raise DoesNotHold(Problem.FORM) from None


def _verified(owner: PublicKey, subscription: Subscription, answer: Answer, before: Batch | None) -> Verified:
    if answer.subscription != subscription.digest:
        raise DoesNotHold(Problem.OTHER_SUBSCRIPTION)
    batch = check_batch(answer.batch, owner)
    if answer.number != batch.body.number:
        raise DoesNotHold(Problem.OTHER_INTERVAL)
    if before is not None:
        check_next(batch, before)
    if table_digest(answer.table) != batch.body.table:
        raise DoesNotHold(Problem.WEIGHTS)
    asked = asked_by_excerpt(subscription, check_table(answer.table, owner), answer.weights)
    walk = _Walk(asked, batch.body.number)
    if answer.proof is None:
        seen_hash, count = EMPTY, 0
    else:
        seen = walk.see(answer.proof, 0)
        seen_hash, count = seen.hash, seen.count
    if seen_hash != batch.body.root:
        raise DoesNotHold(_why_another_root(walk, count, batch))
    for problem in (Problem.LEFT_OUT, Problem.PADDED):
        if problem in walk.problems:
            raise DoesNotHold(problem)
    return Verified(batch, tuple(walk.messages))


def _why_another_root(walk: _Walk, count: int, batch: Batch) -> Problem:
    """Name what was done to a proof that leads to another root than the owner signed."""
    if any(one.number != batch.body.number for one in walk.messages):
        return Problem.OTHER_INTERVAL
    if count != batch.body.count:
        return Problem.LEFT_OUT if count < batch.body.count else Problem.INVENTED
    return Problem.CHANGED


@dataclass(frozen=True)
class _Seen:
    """What is known of a part that is shown, once it has been looked at."""

    hash: bytes
    box: Box
    count: int


class _Walk:
    """Looks at all that is shown, from the root down, and hashes it on the way up."""

    def __init__(self, asked: Asked, number: int) -> None:
        self._asked = asked
        self._number = number
        self.messages: list[Wanted] = []
        self.problems: set[Problem] = set()

    def see(self, shown: Shown, depth: int) -> _Seen:
        """Look at one part and all below it; raise `DecodeError` for one that no tree has."""
        if depth > MAX_DEPTH:
            raise DecodeError("a proof is deeper than any tree")
        if isinstance(shown, Opened):
            return self._opened(shown, depth)
        if isinstance(shown, Wanted):
            return self._wanted(shown)
        box = (shown.low, shown.high) if isinstance(shown, Closed) else (shown.place, shown.place)
        words, absent = self._absent(shown.words)
        if self._reaches(box, self._asked.whole - absent):
            self.problems.add(Problem.LEFT_OUT)
        if isinstance(shown, Apart):
            return _Seen(entry_hash(shown.place, words, shown.content), box, 1)
        return _Seen(node_hash(shown.count, box, words, shown.below), box, shown.count)

    def _opened(self, node: Opened, depth: int) -> _Seen:
        children = [self.see(child, depth + 1) for child in node.children]
        box = around(child.box for child in children)
        words, there = self._there(node.words)
        if is_dead_end(node.children) and not self._reaches(box, there):
            self.problems.add(Problem.PADDED)
        count = sum(child.count for child in children)
        below = below_hash(child.hash for child in children)
        return _Seen(node_hash(count, box, words, below), box, count)

    def _wanted(self, message: Wanted) -> _Seen:
        self.messages.append(message)
        box = (message.place, message.place)
        words, there = self._there(message.words)
        if not self._reaches(box, there):
            self.problems.add(Problem.PADDED)
        content = content_digest(message.number, message.id, message.payload)
        return _Seen(entry_hash(message.place, words, content), box, 1)

    def _there(self, words: ShownWords) -> tuple[bytes, int]:
        """Return the root of a list, and what the subscription's words weigh that are shown to be in it."""
        return self._shown(words, there=True)

    def _absent(self, words: ShownWords) -> tuple[bytes, int]:
        """Return the root of a list, and what the subscription's words weigh that are shown to be absent."""
        return self._shown(words, there=False)

    def _shown(self, words: ShownWords, there: bool) -> tuple[bytes, int]:
        if isinstance(words, bytes):
            return words, 0
        root = root_of(words)  # first: it refuses pages that are no list's
        total, used = 0, set()
        for word, weight in self._asked.weights.items():
            page = page_with(words, word)
            if page is not None and (word in page.words) is there:
                total += weight
                used.add(page.words)
        if len(used) < len(words.pages):
            self.problems.add(Problem.PADDED)
        return root, total

    def _reaches(self, box: Box, common: int) -> bool:
        return self._asked.reaches(common, square_to_box(self._asked.place, box))
