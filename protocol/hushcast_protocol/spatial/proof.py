"""Verification objects: what a provider shows of a tree, so that a subscriber sees that nothing is missing.

Yan and others 2017, algorithm 2, mended: a node is opened for a subscription exactly if its own bound reaches
theta, and every subscription gets a proof, also one without results. Of a closed node the box is shown, and
of its words only that enough of the subscription's are absent; often the box alone says enough. Of an opened
node only the root of its words, unless nothing below shows why it had to be opened. A message that is not
wanted is shown as a closed node is, so that nobody gets to read it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated

import msgspec

from hushcast_protocol.base.wire import Bytes32, Counter, Wire
from hushcast_protocol.spatial.messages import MessageId, Payload
from hushcast_protocol.spatial.pages import ShownPages
from hushcast_protocol.spatial.places import Place, square_to_box
from hushcast_protocol.spatial.similarity import Asked
from hushcast_protocol.spatial.tree import MAX_FAN_OUT, MAX_MESSAGES, Entry, Node, Part

ShownWords = ShownPages | Bytes32
"""Some pages of a list of words, or its root alone."""


class Closed(Wire, frozen=True, tag="closed"):
    """A node below which nothing is wanted, by its box and the words that are shown to be absent."""

    count: Annotated[int, msgspec.Meta(ge=1, le=MAX_MESSAGES)]
    low: Place
    high: Place
    words: ShownWords
    below: Bytes32


class Apart(Wire, frozen=True, tag="apart"):
    """A message that is not wanted, by its place and the words that are shown to be absent."""

    place: Place
    words: ShownWords
    content: Bytes32


class Wanted(Wire, frozen=True, tag="wanted"):
    """A message that is wanted, and words that are shown to be there."""

    number: Counter
    id: MessageId
    place: Place
    words: ShownWords
    payload: Payload


class Opened(Wire, frozen=True, tag="opened"):
    """A node whose bound reaches theta, and all that is right below it.

    Where a child is opened or wanted, the node's own bound reaches, too; otherwise enough words are shown to
    be there.
    """

    words: ShownWords
    children: Annotated[tuple[Shown, ...], msgspec.Meta(min_length=1, max_length=MAX_FAN_OUT)]


Shown = Opened | Closed | Apart | Wanted


def prove(root: Node | None, asked: Sequence[Asked]) -> list[Shown | None]:
    """Return what is shown of a tree to each subscription, along one way through it."""
    return [None] * len(asked) if root is None else [*_shown(root, asked)]


def wanted(proof: Shown | None) -> list[Wanted]:
    """Return the messages in a proof."""
    if isinstance(proof, Opened):
        return [one for child in proof.children for one in wanted(child)]
    return [proof] if isinstance(proof, Wanted) else []


def _shown(part: Part, asked: Sequence[Asked]) -> list[Shown]:
    squares = [square_to_box(one.place, part.box) for one in asked]
    reached = [one.reaches(_common(one, part), square) for one, square in zip(asked, squares, strict=True)]
    if isinstance(part, Node):
        opening = [one for one, reaches in zip(asked, reached, strict=True) if reaches]
        below = (
            zip(*(_shown(child, opening) for child in part.children), strict=True) if opening else iter(())
        )
        return [
            _opened(part, one, square, next(below)) if reaches else _closed(part, one, square)
            for one, square, reaches in zip(asked, squares, reached, strict=True)
        ]
    assert isinstance(part, Entry)
    return [
        _wanted(part, one, square) if reaches else _apart(part, one, square)
        for one, square, reaches in zip(asked, squares, reached, strict=True)
    ]


def is_dead_end(children: Iterable[Shown]) -> bool:
    """Tell whether a node was opened though nothing right below it reaches theta."""
    return not any(isinstance(child, Opened | Wanted) for child in children)


def _opened(node: Node, asked: Asked, square: int, children: tuple[Shown, ...]) -> Opened:
    return Opened(_there(node, asked, square) if is_dead_end(children) else node.paged.root, children)


def _closed(node: Node, asked: Asked, square: int) -> Closed:
    return Closed(node.count, *node.box, _absent(node, asked, square), node.below)


def _apart(entry: Entry, asked: Asked, square: int) -> Apart:
    return Apart(entry.message.place, _absent(entry, asked, square), entry.below)


def _wanted(entry: Entry, asked: Asked, square: int) -> Wanted:
    one = entry.message
    return Wanted(one.number, one.id, one.place, _there(entry, asked, square), one.payload)


def _common(asked: Asked, part: Part) -> int:
    return sum(weight for word, weight in asked.weights.items() if word in part.words)


def _absent(part: Part, asked: Asked, square: int) -> ShownWords:
    """Show that so many words are absent, the heaviest first, that the rest does not reach theta."""
    most, at = asked.whole, set()
    words = iter(asked.weights.items())
    while asked.reaches(most, square):
        word, weight = next(words)  # it ends: all absent words together do not reach it
        if word not in part.words:
            at.add(part.paged.page_of(word))
            most -= weight
    return part.paged.shown(at) if at else part.paged.root


def _there(part: Part, asked: Asked, square: int) -> ShownWords:
    """Show that so many words are there, the heaviest first, that they reach theta."""
    least, at = 0, set()
    words = iter(asked.weights.items())
    while not asked.reaches(least, square):
        word, weight = next(words)
        if word in part.words:
            at.add(part.paged.page_of(word))
            least += weight
    return part.paged.shown(at) if at else part.paged.root
