"""Verification objects: what a provider shows of a tree, so that a subscriber sees that nothing is missing.

Yan and others 2017, algorithm 2, mended: a node is opened for a subscription exactly if its own bound reaches
theta, and every subscription gets a proof, also one without results. The bound is of the least distance to
the node's box, and of the most that a message below has in common with the subscription: which words each
has, the subscriber knows from the pages of words beside the proof. What cannot reach by its words alone is
hidden: a number of messages and a hash, no place. What cannot by words and place is closed, or apart if it is
a message: with its place, and no text, so that nobody gets to read what is not wanted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import msgspec

from hushcast_protocol.base.wire import Bytes32, Counter, Wire
from hushcast_protocol.spatial.messages import MAX_MESSAGES, MessageId, Payload
from hushcast_protocol.spatial.places import Box, Place, square_to_box
from hushcast_protocol.spatial.postings import common_weights
from hushcast_protocol.spatial.similarity import Asked
from hushcast_protocol.spatial.tree import MAX_FAN_OUT, Entry, Node, Part, Said

Count = Annotated[int, msgspec.Meta(ge=1, le=MAX_MESSAGES)]


class Hidden(Wire, frozen=True, tag="hidden"):
    """A node or a message, by its hash: nothing in it is wanted, wherever it is."""

    count: Count
    hash: Bytes32


class Closed(Wire, frozen=True, tag="closed"):
    """A node below which nothing is wanted, by the words there and its box."""

    count: Count
    box: Box
    below: Bytes32


class Apart(Wire, frozen=True, tag="apart"):
    """A message that is not wanted, by its words and its place."""

    place: Place
    content: Bytes32


class Wanted(Wire, frozen=True, tag="wanted"):
    """A message that is wanted."""

    number: Counter
    id: MessageId
    place: Place
    payload: Payload


class Opened(Wire, frozen=True, tag="opened"):
    """A node whose bound reaches theta, and all that is right below it.

    Its box is that around its children, and is shown where one of them is hidden.
    """

    box: Box | None
    children: Annotated[tuple[Shown, ...], msgspec.Meta(min_length=1, max_length=MAX_FAN_OUT)]


Shown = Opened | Hidden | Closed | Apart | Wanted


def prove(root: Node | None, said: Said, asked: Asked) -> Shown | None:
    """Return what is shown of a tree, with these words, to a subscription."""
    if root is None:
        return None
    return _shown(root, asked, common_weights(asked.weights, said.numbers, root.count))


def wanted(proof: Shown | None) -> list[Wanted]:
    """Return the messages in a proof."""
    if isinstance(proof, Opened):
        return [one for child in proof.children for one in wanted(child)]
    return [proof] if isinstance(proof, Wanted) else []


def _shown(part: Part, asked: Asked, common: Sequence[int]) -> Shown:
    most = max(common[part.first : part.first + part.count])
    if not asked.reaches(most, 0):
        return hidden(part)
    if not asked.reaches(most, square_to_box(asked.place, part.box)):
        return closed(part)
    if isinstance(part, Node):
        return opened(part, [_shown(child, asked, common) for child in part.children])
    return shown_whole(part)


def hidden(part: Part) -> Hidden:
    """Show of a part that it is there."""
    return Hidden(part.count, part.hash)


def closed(part: Part) -> Closed | Apart:
    """Show where a part is."""
    return (
        Closed(part.count, part.box, part.below) if isinstance(part, Node) else Apart(part.box[0], part.below)
    )


def opened(node: Node, children: Sequence[Shown]) -> Opened:
    """Show a node by what is shown of its children."""
    box = node.box if any(isinstance(child, Hidden) for child in children) else None
    return Opened(box, tuple(children))


def shown_whole(part: Part) -> Wanted:
    """Show a message."""
    assert isinstance(part, Entry)
    one = part.message
    return Wanted(one.number, one.id, one.place, one.payload)
