"""The engine `local`: which subscriptions want which messages, in one process, on arrays.

`plain` and `pruned` are those of `spatial/matching.py` of `protocol`, and give the same messages bit for bit.
`reach` decides of each pair.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hushcast_located.crowd import Crowd, Ints, Numbers
from hushcast_located.prefix_index import Lists, index_of
from hushcast_located.similarity_reach import reached
from hushcast_protocol.spatial.matching import MatchingCost
from hushcast_protocol.spatial.places import Place
from hushcast_protocol.spatial.tmr_tree import TreeEntry, TreeNode, TreePart

PRUNED_FROM = 128
"""Messages below a node that prunes: with fewer, its own lists take longer than they save below it."""


@dataclass
class MatchingWork(MatchingCost):
    """What matching looked at; candidates whose place settles it are counted, and not compared."""

    compared: int = 0


class LocalEngine:
    """Subscriptions under an index, for one batch after another."""

    def __init__(self, crowd: Crowd, pruned_from: int = PRUNED_FROM) -> None:
        self._crowd = crowd
        self._pruned_from = pruned_from
        self._index = index_of(crowd)
        self._weights = np.zeros(len(crowd.vocabulary) + 1, np.int64)
        self._weights[crowd.words] = crowd.weights
        self._said = np.zeros_like(self._weights)
        self._seen = np.zeros(len(crowd), np.int32)
        lengths = np.diff(crowd.starts)
        # Side by side, since memory is fetched in lines of 64 bytes.
        self._rows = np.column_stack([*crowd.places, *crowd.shares, crowd.whole, crowd.starts[:-1], lengths])

    def plain(self, entries: Iterable[TreeEntry], work: MatchingWork) -> Iterator[tuple[TreeEntry, Numbers]]:
        """Yield each message with the subscriptions that want it, as SP finds them: it compares all."""
        for entry in entries:
            words = self._words(entry)
            yield entry, self._wanting(entry, words, self._index.of(words), work)

    def settled(
        self, entries: Iterable[TreeEntry], work: MatchingWork
    ) -> Iterator[tuple[TreeEntry, Numbers]]:
        """Do as `plain`, but compare no candidate so near that one word is enough."""
        for entry in entries:
            words = self._words(entry)
            yield entry, self._settled(entry, words, self._index.of(words), work)

    def pruned(self, root: TreeNode | None, work: MatchingWork) -> Iterator[tuple[TreeEntry, Numbers]]:
        """Do as `settled`, with the lists that algorithm 1 leaves."""
        if root is None:
            return
        said: dict[int, Ints] = {}
        self._read(root, said)
        # Not the root itself: nothing of use is far from all messages at once.
        waiting: list[tuple[TreePart, Lists]] = [(child, self._index) for child in root.children]
        while waiting:
            part, lists = waiting.pop()
            if isinstance(part, TreeEntry):
                words = said[id(part)]
                yield part, self._settled(part, words, lists.of(words), work)
            elif isinstance(part, TreeNode):
                if id(part) in said:
                    lists = lists.of(said[id(part)])
                    work.on_the_way += len(lists)
                    lists = lists.near_to(part.box)
                waiting += [(child, lists) for child in part.children]

    def _read(self, part: TreePart, said: dict[int, Ints]) -> Ints:
        """Note the words of messages, and of nodes that prune; return those of a part, some of them twice."""
        if not isinstance(part, TreeNode):
            words = said[id(part)] = self._words(part)
            return words
        words = np.concatenate([self._read(child, said) for child in part.children])
        if part.count >= self._pruned_from:
            words = said[id(part)] = np.unique(words)
        return words

    def _words(self, part: TreePart) -> Ints:
        """Return the numbers of the words of a part that subscriptions have, and the dummy's."""
        known = self._crowd.vocabulary
        found = sorted(known[word] for word in part.words if word in known)
        return np.array([*found, len(known)], np.int64)

    def _wanting(self, entry: TreeEntry, words: Ints, lists: Lists, work: MatchingWork) -> Numbers:
        work.accessed += len(lists)
        some = self._once(lists.who[np.flatnonzero(lists.squares(entry.box) <= lists.near[3])])
        work.candidates += len(some)
        work.compared += len(some)
        found: Numbers = some[self._reached(entry.message.place, words, some)]
        return found

    def _settled(self, entry: TreeEntry, words: Ints, lists: Lists, work: MatchingWork) -> Numbers:
        work.accessed += len(lists)
        squares = lists.squares(entry.box)
        near = np.flatnonzero(squares <= lists.near[3])
        some, squares, enough = lists.who[near], squares[near], lists.near[4][near]
        sure = self._once(some[squares <= enough])
        self._seen[some] = 0
        self._seen[sure] = -1
        some = self._once(some[self._seen[some] == 0])
        work.candidates += len(sure) + len(some)
        work.compared += len(some)
        return np.concatenate([sure, some[self._reached(entry.message.place, words, some)]])

    def _once(self, some: Numbers) -> Numbers:
        """Return each of some subscriptions once: who stands in several lists is met as often."""
        at = np.arange(len(some), dtype=np.int32)
        self._seen[some] = at
        found: Numbers = some[self._seen[some] == at]
        return found

    def _reached(self, place: Place, words: Ints, some: Numbers) -> npt.NDArray[np.bool_]:
        """Tell which of some subscriptions want a message with these words, at this place."""
        rows = self._rows[some]
        common = self._common(words, rows[:, 6], rows[:, 7])
        square: Ints = ((rows[:, :3] - np.array(place, np.int64)) ** 2).sum(axis=1)
        return reached((rows[:, 3], rows[:, 4], rows[:, 5]), self._crowd.most, common, square)

    def _common(self, words: Ints, starts: Ints, lengths: Ints) -> Ints:
        """Return the weight that the words of some subscriptions have in common with these."""
        if not len(starts):
            return np.zeros(0, np.int64)
        ends = np.cumsum(lengths)
        at = np.repeat(starts - ends + lengths, lengths) + np.arange(ends[-1])
        self._said[words] = self._weights[words]
        sums: Ints = np.add.reduceat(self._said[self._crowd.words[at]], ends - lengths)
        self._said[words] = 0
        return sums
