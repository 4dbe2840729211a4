"""The TMR-tree of a batch: an R-tree whose nodes know the words below them, under one hash, and its words.

Yan and others 2017, section 3.1, with BLAKE2b for SHA-1 and any fan-out. It is canonical: the same messages,
in whatever order, give the same root. It is packed by sort-tile-recursive on the integers of places: slabs
along x, strips along y in each, runs along z in each, then the same with the nodes. A message is a node, too,
with a point for its box. A node is hashed with its box and what lies below: how many messages each child has,
and its hash. The words are hashed beside the tree, all of them in one list, with the numbers of messages that
have them (`postings`): in every node, as published, they made most of each proof.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import isqrt
from typing import TypeVar

from hushcast_protocol.base.crypto.hashes import Domain, digest
from hushcast_protocol.base.wire import encode
from hushcast_protocol.spatial.located_messages import LocatedMessage, content_digest
from hushcast_protocol.spatial.places import Box, Place, around
from hushcast_protocol.spatial.postings import pack
from hushcast_protocol.spatial.word_pages import PagedWords

MAX_FAN_OUT = 64  # children of a node; a proof shows them all where one of them is opened
MAX_DEPTH = 14  # nodes above a message: 16,384 messages at a fan-out of 2
EMPTY = digest(Domain.LOCATED_NODE)  # the root of a batch without messages


class TreePart:
    """What nodes and messages have in common: a box, the words in it, and a hash.

    The messages in it have the numbers from `first` on, `count` of them.
    """

    __slots__ = ("below", "box", "count", "first", "hash", "words")

    def __init__(self, box: Box, words: frozenset[str], count: int, below: bytes) -> None:
        self.box, self.words, self.count, self.below = box, words, count, below
        self.first = 0
        self.hash = b""


class TreeEntry(TreePart):
    """A message in its place in the tree."""

    __slots__ = ("message",)

    def __init__(self, message: LocatedMessage) -> None:
        content = content_digest(message.number, message.id, message.payload)
        super().__init__((message.place, message.place), frozenset(message.words), 1, content)
        self.message = message
        self.hash = entry_hash(message.place, content)


class TreeNode(TreePart):
    """A node above messages or nodes."""

    __slots__ = ("children",)

    def __init__(self, children: Sequence[TreePart]) -> None:
        words = frozenset().union(*(child.words for child in children))
        counts = tuple(child.count for child in children)
        below = below_hash(counts, b"".join(child.hash for child in children))
        super().__init__(around(child.box for child in children), words, sum(counts), below)
        self.children = tuple(children)
        self.hash = node_hash(self.box, self.below)


def entry_hash(place: Place, content: bytes) -> bytes:
    """Hash a message, by its place and the hash of its content."""
    return digest(Domain.LOCATED_ENTRY, encode(place), content)


def node_hash(box: Box, below: bytes) -> bytes:
    """Hash a node, by its box and what lies below."""
    return digest(Domain.LOCATED_NODE, encode(box), below)


def below_hash(counts: tuple[int, ...], hashes: bytes) -> bytes:
    """Hash a node's children: how many messages each has, and their hashes one after the other."""
    return digest(Domain.LOCATED_BELOW, encode(counts), hashes)


def grow(messages: Iterable[LocatedMessage], fan_out: int) -> TreeNode | None:
    """Return the root of the tree over messages with distinct ids, `None` where there are none."""
    parts: list[TreePart] = [TreeEntry(one) for one in sorted(messages, key=lambda one: one.id)]
    if not parts:
        return None
    while True:
        nodes = [TreeNode(tile) for tile in _tiles(parts, fan_out)]
        if len(nodes) == 1:
            break
        parts = list(nodes)
    _number(nodes[0], 0)
    return nodes[0]


def _number(part: TreePart, first: int) -> None:
    part.first = first
    if isinstance(part, TreeNode):
        for child in part.children:
            _number(child, first)
            first += child.count


def root_hash(root: TreeNode | None) -> bytes:
    """Return what the owner signs of a tree."""
    return EMPTY if root is None else root.hash


def entries_of(part: TreePart | None) -> Iterator[TreeEntry]:
    """Yield the messages of a tree, from one end to the other."""
    if isinstance(part, TreeEntry):
        yield part
    elif isinstance(part, TreeNode):
        for child in part.children:
            yield from entries_of(child)


class BatchWords:
    """All words of a batch: the numbers of the messages that have each, and pages that show them."""

    __slots__ = ("numbers", "paged")

    def __init__(self, root: TreeNode | None) -> None:
        self.numbers: dict[str, list[int]] = {}
        for entry in entries_of(root):
            for word in entry.words:
                self.numbers.setdefault(word, []).append(entry.first)
        words = sorted(self.numbers)
        self.paged = PagedWords(words, postings=[pack(self.numbers[word]) for word in words])


PartT = TypeVar("PartT", bound=TreePart)


def _tiles(parts: list[PartT], size: int) -> list[list[PartT]]:
    """Cut parts into tiles of `size` that lie near each other; equal places stay in the order given."""
    tiles = -(-len(parts) // size)
    slabs = _root_up(tiles, 3)
    found = []
    for slab in _cut(sorted(parts, key=_middle), size * -(-tiles // slabs)):
        of_slab = -(-len(slab) // size)
        strips = _root_up(of_slab, 2)
        for strip in _cut(sorted(slab, key=lambda one: _middle(one)[1]), size * -(-of_slab // strips)):
            found += _cut(sorted(strip, key=lambda one: _middle(one)[2]), size)
    return found


def _cut(parts: list[PartT], size: int) -> list[list[PartT]]:
    return [parts[at : at + size] for at in range(0, len(parts), size)]


def _middle(part: TreePart) -> Place:
    (x, y, z), (east, north, up) = part.box
    return x + east, y + north, z + up


def _root_up(number: int, power: int) -> int:
    """Return the least integer whose power is `number` or more."""
    root = isqrt(number) if power == 2 else round(number ** (1 / 3))
    while root > 1 and (root - 1) ** power >= number:
        root -= 1
    while root**power < number:
        root += 1
    return root
