"""Filter and verification: which subscriptions want which messages, by an index of prefixes, pruned or not.

`plain` is the method SP of Hu and others: for each message, the lists of its words. `pruned` is algorithm 1
of Yan and others 2017: on the way down the tree each node keeps of the lists what can be wanted below it
(their proposition 2), so that messages look at shorter ones. Both give the same messages.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from hushcast_protocol.spatial.places import square, square_to_box
from hushcast_protocol.spatial.prefixes import DUMMY, prefix
from hushcast_protocol.spatial.similarity import WeightedSubscription
from hushcast_protocol.spatial.tmr_tree import TreeEntry, TreeNode, TreePart

PrefixIndex = Mapping[str, Sequence[tuple[int, int]]]
"""Under each word, subscriptions (by their place in the list) and the greatest squares of their distances."""


@dataclass
class MatchingCost:
    """What matching looked at, in all: figures 6 and 7 of the paper are made of it."""

    accessed: int = 0
    """Subscriptions met in the lists of messages, once for each list."""
    on_the_way: int = 0
    """Subscriptions met in the lists of nodes."""
    candidates: int = 0
    """Pairs of a message and a subscription that were compared exactly."""


def index_of(asked: Sequence[WeightedSubscription]) -> dict[str, list[tuple[int, int]]]:
    """File subscriptions under the words of their prefixes."""
    index: dict[str, list[tuple[int, int]]] = {}
    for number, one in enumerate(asked):
        for word, farthest in prefix(one):
            index.setdefault(word, []).append((number, farthest))
    return index


def plain(
    entries: Iterable[TreeEntry], asked: Sequence[WeightedSubscription], counted: MatchingCost
) -> Iterator[tuple[int, TreeEntry]]:
    """Yield each subscription's number with each message that it wants."""
    index = index_of(asked)
    for entry in entries:
        yield from _wanting(entry, _kept(entry, index, asked, counted), asked, counted)


def pruned(
    root: TreeNode | None, asked: Sequence[WeightedSubscription], counted: MatchingCost
) -> Iterator[tuple[int, TreeEntry]]:
    """Yield each subscription's number with each message that it wants, by algorithm 1."""
    waiting: list[tuple[TreePart, PrefixIndex]] = [] if root is None else [(root, index_of(asked))]
    while waiting:
        part, above = waiting.pop()
        index = _kept(part, above, asked, counted)
        if isinstance(part, TreeEntry):
            yield from _wanting(part, index, asked, counted)
        elif isinstance(part, TreeNode) and index:
            waiting += [(child, index) for child in part.children]


def _kept(
    part: TreePart, index: PrefixIndex, asked: Sequence[WeightedSubscription], counted: MatchingCost
) -> PrefixIndex:
    """Return what of an index can be wanted in a part: lists of its words, subscriptions near enough."""
    found = {}
    fewer = index if len(index) < len(part.words) else (*part.words, DUMMY)
    for word in fewer:
        if word not in index or (word != DUMMY and word not in part.words):
            continue
        if isinstance(part, TreeNode):
            counted.on_the_way += len(index[word])
        else:
            counted.accessed += len(index[word])
        near = [one for one in index[word] if square_to_box(asked[one[0]].place, part.box) <= one[1]]
        if near:
            found[word] = near
    return found


def _wanting(
    entry: TreeEntry, index: PrefixIndex, asked: Sequence[WeightedSubscription], counted: MatchingCost
) -> Iterator[tuple[int, TreeEntry]]:
    candidates = sorted({number for near in index.values() for number, _ in near})
    counted.candidates += len(candidates)
    for number in candidates:
        one = asked[number]
        common = sum(weight for word, weight in one.weights.items() if word in entry.words)
        if one.reaches(common, square(one.place, entry.message.place)):
            yield number, entry
