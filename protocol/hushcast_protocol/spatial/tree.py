"""The TMR-tree of a batch: an R-tree whose nodes know the words below them, hashed up to one root.

Yan and others 2017, section 3.1, with BLAKE2b for SHA-1 and any fan-out. It is canonical: the same messages,
in whatever order, give the same root. It is packed by sort-tile-recursive on the integers of places: slabs
along x, strips along y in each, runs along z in each, then the same with the nodes. A message is a node, too,
with a point for its box. Each node is hashed with its box, its number of messages, the root of its words as
`pages` has them, and what lies below.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import isqrt
from typing import TypeVar

from hushcast_protocol.base.hashes import Domain, digest
from hushcast_protocol.base.wire import encode
from hushcast_protocol.spatial.messages import LocatedMessage, content_digest
from hushcast_protocol.spatial.pages import PagedWords
from hushcast_protocol.spatial.places import Box, Place, around

MAX_FAN_OUT = 64  # children of a node; a proof shows them all where one of them is opened
MAX_MESSAGES = 16_384  # of one batch, eight times the paper's
MAX_DEPTH = 14  # nodes above a message: 16,384 messages at a fan-out of 2
EMPTY = digest(Domain.LOCATED_NODE)  # the root of a batch without messages


class Part:
    """What nodes and messages have in common: a box, the words in it, and a hash."""

    __slots__ = ("below", "box", "count", "hash", "paged", "words")

    def __init__(self, box: Box, words: frozenset[str], count: int, below: bytes) -> None:
        self.box, self.words, self.count, self.below = box, words, count, below
        self.paged = PagedWords(sorted(words))
        self.hash = b""


class Entry(Part):
    """A message in its place in the tree."""

    __slots__ = ("message",)

    def __init__(self, message: LocatedMessage) -> None:
        content = content_digest(message.number, message.id, message.payload)
        super().__init__((message.place, message.place), frozenset(message.words), 1, content)
        self.message = message
        self.hash = entry_hash(message.place, self.paged.root, content)


class Node(Part):
    """A node above messages or nodes."""

    __slots__ = ("children",)

    def __init__(self, children: Sequence[Part]) -> None:
        words = frozenset().union(*(child.words for child in children))
        count = sum(child.count for child in children)
        super().__init__(
            around(child.box for child in children),
            words,
            count,
            below_hash(child.hash for child in children),
        )
        self.children = tuple(children)
        self.hash = node_hash(count, self.box, self.paged.root, self.below)


def entry_hash(place: Place, words: bytes, content: bytes) -> bytes:
    """Hash a message, by its place, the root of its words and the hash of its content."""
    return digest(Domain.LOCATED_ENTRY, encode(place), words, content)


def node_hash(count: int, box: Box, words: bytes, below: bytes) -> bytes:
    """Hash a node, by its number of messages, box, root of words and what lies below."""
    return digest(Domain.LOCATED_NODE, encode((count, box)), words, below)


def below_hash(children: Iterable[bytes]) -> bytes:
    """Hash the hashes of a node's children."""
    return digest(Domain.LOCATED_BELOW, b"".join(children))


def grow(messages: Iterable[LocatedMessage], fan_out: int) -> Node | None:
    """Return the root of the tree over messages with distinct ids, `None` where there are none."""
    parts: list[Part] = [Entry(one) for one in sorted(messages, key=lambda one: one.id)]
    if not parts:
        return None
    while True:
        nodes = [Node(tile) for tile in _tiles(parts, fan_out)]
        if len(nodes) == 1:
            return nodes[0]
        parts = list(nodes)


def root_hash(root: Node | None) -> bytes:
    """Return what the owner signs of a tree."""
    return EMPTY if root is None else root.hash


PartT = TypeVar("PartT", bound=Part)


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


def _middle(part: Part) -> Place:
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
