"""The tokens of one day, which elements are made of, and the names by which the root looks them up."""

from __future__ import annotations

from collections.abc import Sequence

from hushcast_protocol.base.crypto.hashes import LABEL, Domain, digest
from hushcast_protocol.brokers.full.group_action import GroupAction


def element_name(element: bytes) -> bytes:
    """Return the 16 bytes by which a message names an element that the root holds."""
    return digest(Domain.ELEMENT_NAME, element, size=LABEL)


def published_names(action: GroupAction, tokens: Sequence[bytes]) -> tuple[bytes, ...]:
    """Return what a message has instead of its tokens, padding included, in an order that tells nothing."""
    first, *others = (element_name(action.element(token)) for token in tokens)
    return (first, *sorted(others))
