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
from hushcast_protocol.spatial.located_messages import MAX_MESSAGES, MessageId, Payload
from hushcast_protocol.spatial.places import Box, Place, square_to_box
from hushcast_protocol.spatial.postings import common_weights
from hushcast_protocol.spatial.similarity import WeightedSubscription
from hushcast_protocol.spatial.tmr_tree import MAX_FAN_OUT, BatchWords, TreeEntry, TreeNode, TreePart

Count = Annotated[int, msgspec.Meta(ge=1, le=MAX_MESSAGES)]


class HiddenPart(Wire, frozen=True, tag="hidden"):
    """A node or a message, by its hash: nothing in it is wanted, wherever it is."""

    count: Count
    hash: Bytes32


class ClosedNode(Wire, frozen=True, tag="closed"):
    """A node below which nothing is wanted, by the words there and its box."""

    count: Count
    box: Box
    below: Bytes32


class UnwantedMessage(Wire, frozen=True, tag="apart"):
    """A message that is not wanted, by its words and its place."""

    place: Place
    content: Bytes32


class WantedMessage(Wire, frozen=True, tag="wanted"):
    """A message that is wanted."""

    number: Counter
    id: MessageId
    place: Place
    payload: Payload


class OpenedNode(Wire, frozen=True, tag="opened"):
    """A node whose bound reaches theta, and all that is right below it.

    Its box is that around its children, and is shown where one of them is hidden.
    """

    box: Box | None
    children: Annotated[tuple[ShownPart, ...], msgspec.Meta(min_length=1, max_length=MAX_FAN_OUT)]


ShownPart = OpenedNode | HiddenPart | ClosedNode | UnwantedMessage | WantedMessage


def prove(root: TreeNode | None, said: BatchWords, asked: WeightedSubscription) -> ShownPart | None:
    """Return what is shown of a tree, with these words, to a subscription."""
    if root is None:
        return None
    return _shown(root, asked, common_weights(asked.weights, said.numbers, root.count))


def wanted(proof: ShownPart | None) -> list[WantedMessage]:
    """Return the messages in a proof."""
    if isinstance(proof, OpenedNode):
        return [one for child in proof.children for one in wanted(child)]
    return [proof] if isinstance(proof, WantedMessage) else []


def _shown(part: TreePart, asked: WeightedSubscription, common: Sequence[int]) -> ShownPart:
    most = max(common[part.first : part.first + part.count])
    if not asked.reaches(most, 0):
        return hidden(part)
    if not asked.reaches(most, square_to_box(asked.place, part.box)):
        return closed(part)
    if isinstance(part, TreeNode):
        return opened(part, [_shown(child, asked, common) for child in part.children])
    return shown_whole(part)


def hidden(part: TreePart) -> HiddenPart:
    """Show of a part that it is there."""
    return HiddenPart(part.count, part.hash)


def closed(part: TreePart) -> ClosedNode | UnwantedMessage:
    """Show where a part is."""
    return (
        ClosedNode(part.count, part.box, part.below)
        if isinstance(part, TreeNode)
        else UnwantedMessage(part.box[0], part.below)
    )


def opened(node: TreeNode, children: Sequence[ShownPart]) -> OpenedNode:
    """Show a node by what is shown of its children."""
    box = node.box if any(isinstance(child, HiddenPart) for child in children) else None
    return OpenedNode(box, tuple(children))


def shown_whole(part: TreePart) -> WantedMessage:
    """Show a message."""
    assert isinstance(part, TreeEntry)
    one = part.message
    return WantedMessage(one.number, one.id, one.place, one.payload)
