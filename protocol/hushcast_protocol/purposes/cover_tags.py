"""Tags of covers: by which relays bring a message to readers that can open it, and to no others.

A tag stands for an element of a vocabulary's tree, whatever the epoch. Carriers make tokens of tags with the
topic's key of the day, so that only who has the topic's link can tell which elements these are for.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from hushcast_protocol.base.crypto.hashes import LABEL, Domain, digest
from hushcast_protocol.base.wire import PublicKey
from hushcast_protocol.purposes.key_cover import CoverElement, granted
from hushcast_protocol.purposes.purpose_names import Purpose

MAX_ELEMENT_TAGS = 32  # of a message, and of a reader: carriers take no more


def message_tags(issuer: PublicKey, elements: Collection[CoverElement]) -> frozenset[str]:
    """Return the tags of a message sealed under a cover.

    One with too many elements has the one tag that all readers ask for: their keys alone decide.
    """
    if len(elements) > MAX_ELEMENT_TAGS:
        return frozenset({_wide(issuer)})
    return frozenset(_tag(issuer, element) for element in elements)


def reader_tags(issuer: PublicKey, purposes: Iterable[Purpose]) -> frozenset[str]:
    """Return the tags that a reader asks for who was granted these purposes.

    None if there are too many: then it asks for the whole topic.
    """
    return element_tags(issuer, {element for purpose in purposes for element in granted(purpose)})


def element_tags(issuer: PublicKey, elements: Collection[CoverElement]) -> frozenset[str]:
    """Return the tags that a reader asks for who has the keys of these elements; none as `reader_tags`."""
    tags = frozenset({_wide(issuer), *(_tag(issuer, element) for element in elements)})
    return tags if len(tags) <= MAX_ELEMENT_TAGS else frozenset()


def _tag(issuer: PublicKey, element: CoverElement) -> str:
    kind = bytes([element.whole])
    return digest(Domain.PURPOSE_TAG, issuer, kind + element.purpose.encode(), size=LABEL).hex()


def _wide(issuer: PublicKey) -> str:
    return digest(Domain.PURPOSE_TAG, issuer, size=LABEL).hex()
