"""What stands beside a message about purposes: its own terms, for what it opened, and what withdraws it.

All of it are pairs of a name and a value, as MQTT's user properties are.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from typing import NamedTuple

from hushcast_protocol.base.errors import HushcastError
from hushcast_protocol.purposes.purpose_names import Purpose, ancestors
from hushcast_protocol.purposes.sealed_messages import OpenedContent

ALLOWED, PROHIBITED, WHAT = "aip", "pip", "reserve"
DAP_ALLOWED = "DAP-MP"
OPENED = "hushcast-opened-for"
"""What a gateway writes beside a message that came sealed: for which purposes it opened.

Each that was granted, with `/#` where it is for all below, too.
"""
WITHDRAWN_BY = "hushcast-withdrawn-by"
"""What a gateway writes beside a message: the digest of the lock that withdraws it."""
RESERVED = "hushcast-reserved"
"""What a gateway writes beside a message that came with reservations: these, as they are carried.

A client that writes this itself narrows: what it says counts beside what the gateways say.
"""
ALLOWING = frozenset({ALLOWED, DAP_ALLOWED})
OF_TERMS = frozenset({ALLOWED, PROHIBITED, DAP_ALLOWED, OPENED})
APART = OF_TERMS | {WITHDRAWN_BY, RESERVED}
MAX_NAMED = 64  # purposes of one command: as many as a packet may have user properties

Pairs = Sequence[tuple[str, str]]


class UnreadablePurposes(HushcastError):
    """Somebody wrote what means nothing; `str` says what, without what was written."""


class MessagePurposes(NamedTuple):
    """What a message of its own says it may be used for; without `aip`, what it must not be used for."""

    aip: tuple[str, ...] | None
    pip: tuple[str, ...]


def read_terms(given: Pairs) -> MessagePurposes | None:
    """Return the terms of a message that is no command, `None` for none; raises `UnreadablePurposes`."""
    if any(name == WHAT for name, _ in given):
        raise UnreadablePurposes("reservations are published to !RESERVE/FILTER")
    if not has_terms(given):
        return None
    allows = any(name in ALLOWING for name, _ in given)
    return MessagePurposes(purposes_in(given, ALLOWING) if allows else None, purposes_in(given, {PROHIBITED}))


def has_terms(given: Pairs) -> bool:
    """Tell whether a message has terms of its own."""
    return any(name in OF_TERMS for name, _ in given)


def is_apart(given: Pairs) -> bool:
    """Tell whether a message is decided apart from its topic's others.

    It has terms, came with reservations, or can be withdrawn.
    """
    return any(name in APART for name, _ in given)


def opened_for(given: Pairs, opened: OpenedContent) -> list[tuple[str, str]]:
    """Return what stands beside a message that came sealed, with the purposes for which it opened."""
    written = sorted(f"{one}/#" if one in opened.throughout else one for one in opened.purposes)
    return [*given, (OPENED, ",".join(written))]


def is_opened_for(given: Pairs, purpose: Purpose | None, granted: Container[str] | None) -> bool:
    """Tell whether a message opened for a purpose that is `granted` still, or did not come sealed.

    A client that writes this itself narrows: what it says and what the gateway says both count.
    """
    found = [value for name, value in given if name == OPENED]
    if not found or purpose is None:
        return not found
    still = [one for one in ancestors(purpose) if granted is None or one in granted]
    ways = {*(f"{above}/#" for above in still), *({purpose} & set(still))}
    return all(not ways.isdisjoint(value.split(",")) for value in found)


def marked(given: Pairs, digest: bytes) -> list[tuple[str, str]]:
    """Return what stands beside a message with the digest of the lock that withdraws it, and no other."""
    return [*unmarked(given), (WITHDRAWN_BY, digest.hex())]


def reserved_under(given: Pairs, clauses: str) -> list[tuple[str, str]]:
    """Return what stands beside a message with the reservations that it came with, and no others."""
    rest = [one for one in given if one[0] != RESERVED]
    return [*rest, (RESERVED, clauses)] if clauses else rest


def unmarked(given: Pairs) -> list[tuple[str, str]]:
    """Return what stands beside a message as it travels: digest and reservations stand inside the seal."""
    return [one for one in given if one[0] not in (WITHDRAWN_BY, RESERVED)]


def digest_in(given: Pairs) -> bytes | None:
    """Return the digest beside a message, `None` where there is none."""
    for name, value in given:
        if name == WITHDRAWN_BY:
            try:
                return bytes.fromhex(value)
            except ValueError:
                return None
    return None


def purposes_in(given: Pairs, names: Container[str]) -> tuple[str, ...]:
    """Return what all pairs with these names list, an empty value nothing; raises `UnreadablePurposes`."""
    return _bounded([one for name, value in given if name in names for one in read_list(value)])


def read_list(text: str) -> tuple[str, ...]:
    """Return purposes that are separated by commas; raises `UnreadablePurposes`."""
    return _bounded(text.split(",")) if text else ()


def _bounded(purposes: Iterable[str]) -> tuple[str, ...]:
    found = tuple(purposes)
    if len(found) > MAX_NAMED or not all(found):
        raise UnreadablePurposes(f"purposes are separated by commas, {MAX_NAMED} at most")
    return found
