"""Labels of items: what a message has instead of tokens on its way down.

The control part that comes down is byte for byte the item that went up (Tables IV and V of the paper), so the
item's name stands for it, and look-up is a dictionary. Beside it is what opens the message, under the item's
layers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from hushcast_protocol.base.crypto.hashes import LABEL
from hushcast_protocol.base.errors import DecodeError
from hushcast_protocol.base.wire import PublicKey
from hushcast_protocol.brokers.full.rows import Rows
from hushcast_protocol.content.messages import MAX_TOKENS

_TOKENS = 3  # that a label takes
MAX_LABELS = MAX_TOKENS // _TOKENS  # of one copy of a message; more go with another


class ItemLabel(NamedTuple):
    """One item that a message matches."""

    name: bytes
    content: bytes
    """An element, 32 bytes."""


def read_labels(tokens: Sequence[bytes]) -> tuple[ItemLabel, ...]:
    """Return a message's labels; raise `DecodeError` where its tokens are none, or name an item twice."""
    if len(tokens) % _TOKENS or not tokens:
        raise DecodeError("a message's tokens are not labels")
    found = tuple(
        ItemLabel(tokens[at], tokens[at + 1] + tokens[at + 2]) for at in range(0, len(tokens), _TOKENS)
    )
    if len({one.name for one in found}) < len(found):
        raise DecodeError("a message has a label twice")
    return found


def as_tokens(labels: Sequence[ItemLabel]) -> list[tuple[bytes, ...]]:
    """Return the tokens of as many copies of a message as its labels take."""
    return [
        tuple(part for one in labels[at : at + MAX_LABELS] for part in _parts(one))
        for at in range(0, len(labels), MAX_LABELS)
    ]


def onward(rows: Rows, day: int, labels: Iterable[ItemLabel]) -> dict[PublicKey, list[ItemLabel]]:
    """Return a message's labels for each child that it goes to; at the root, of the labels of its words.

    Raises `AuthenticationError` where what a label has beside a name that is known is no element.
    """
    found: dict[PublicKey, dict[bytes, ItemLabel]] = {}
    for label in labels:
        for child, name, key in rows.matching(day, label.name):
            mine = found.setdefault(child, {})
            if name not in mine:
                mine[name] = ItemLabel(name, rows.keys.action.wrap(key, label.content))
    return {child: list(mine.values()) for child, mine in found.items()}


def _parts(label: ItemLabel) -> tuple[bytes, bytes, bytes]:
    return label.name, label.content[:LABEL], label.content[LABEL:]
