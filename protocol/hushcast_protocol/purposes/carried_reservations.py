"""Carried reservations: under which clauses a message was published, as they go with it to another house.

    mark, an epoch that never comes, kind, length of the clauses, clauses, content

The head is that of a sealed message which no key opens: whoever does not know of carried reservations takes
it for such, and gives it to nobody. Clauses travel without filters and without the names of owners, who are
told apart all the same, since each must allow a purpose: `aip|pip` each, those of one owner between `;`,
owners between spaces. `operations,marketing|marketing/individualized research|` is of two owners, `|` allows
nothing.

A message that is retained can be followed by an *update*: other clauses for the same payload, whose digest
it has in the payload's place.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from hushcast_protocol.base.crypto.hashes import Domain, digest
from hushcast_protocol.purposes.clauses import Clause
from hushcast_protocol.purposes.message_purposes import UnreadablePurposes
from hushcast_protocol.purposes.purpose_names import Purpose, ancestors, is_purpose
from hushcast_protocol.purposes.sealed_messages import MARK
from hushcast_protocol.purposes.vocabulary import Vocabulary

MAX_CARRIED = 4_096  # characters of the clauses: as much as an envelope may have beside its payload
NOTHING = "|"
"""A clause that allows nothing."""

_NEVER = b"\xff" * 8  # the epoch
_MESSAGE, _UPDATE = b"m", b"u"
_LENGTH = 2  # bytes
_HEAD = len(MARK) + len(_NEVER) + 1 + _LENGTH


class CarriedContent(NamedTuple):
    """A message with the clauses that it came under, or an update of these."""

    clauses: str
    """As `write_clauses` writes them; empty only in an update, for what nobody reserves any more."""
    content: bytes
    """A payload, or an envelope; of an update, an envelope around the payload's digest."""
    is_update: bool = False

    def __repr__(self) -> str:
        """Show nothing of it."""
        return "CarriedContent(...)"


def write_clauses(clauses: Iterable[Clause], strict: bool) -> str | None:
    """Write the clauses that reach a message, those of the message itself included.

    Empty where nobody reserved it; `None` for more than `MAX_CARRIED` characters. What strict rules close
    here, since nobody reserved it who is still there, is closed elsewhere, too.
    """
    found = list(clauses)
    if strict and all(one.of_nobody for one in found):
        return NOTHING
    groups: dict[tuple[str, bool], set[str]] = {}
    for one in found:
        written = f"{','.join(sorted(one.aip))}|{','.join(sorted(one.pip))}"
        groups.setdefault((one.owner, one.of_message), set()).add(written)
    # Sorted, and each once: neither who reserved nor how many of one mind did shows.
    text = " ".join(sorted({";".join(sorted(group)) for group in groups.values()}))
    return text if len(text) <= MAX_CARRIED else None


def read_clauses(text: str, number: int = 1) -> tuple[Clause, ...]:
    """Return clauses of owners who are nobody else's; raise `UnreadablePurposes` where the text has none.

    `number` tells the texts beside one message apart: their owners are not the same.
    """
    if not 0 < len(text) <= MAX_CARRIED:
        raise UnreadablePurposes(f"carried reservations have 1 to {MAX_CARRIED} characters")
    return tuple(
        _clause(f"owner {number}.{owner} elsewhere", written)
        for owner, group in enumerate(text.split(" "), 1)
        for written in group.split(";")
    )


def known(clauses: Iterable[Clause], vocabulary: Vocabulary) -> tuple[Clause, ...]:
    """Return clauses in the words of another vocabulary.

    What is allowed and not known there allows nobody. What is prohibited and not known is prohibited with the
    next that is above it: who reads for that may do what it cannot tell apart.
    """
    return tuple(
        Clause(one.owner, one.filter, one.aip, frozenset(_lifted(one.pip, vocabulary)), of_message=True)
        for one in clauses
    )


def payload_digest(payload: bytes) -> bytes:
    """Return by what an update names the message that it is for."""
    return digest(Domain.PURPOSE_CARRIED, payload, size=32)


def write_carried(one: CarriedContent) -> bytes:
    """Return what travels in place of the content."""
    clauses = one.clauses.encode("ascii")
    kind = _UPDATE if one.is_update else _MESSAGE
    return b"".join((MARK, _NEVER, kind, len(clauses).to_bytes(_LENGTH, "big"), clauses, one.content))


def read_carried(data: bytes) -> CarriedContent | None:
    """Return what travelled, `None` where it is no such thing, or one that means nothing."""
    end = _HEAD + int.from_bytes(data[_HEAD - _LENGTH : _HEAD], "big")
    kind = data[len(MARK) + len(_NEVER) : _HEAD - _LENGTH]
    if not data.startswith(MARK + _NEVER) or kind not in (_MESSAGE, _UPDATE) or len(data) < max(end, _HEAD):
        return None
    try:
        clauses = data[_HEAD:end].decode("ascii")
        if clauses or kind == _MESSAGE:
            read_clauses(clauses)
    except (UnicodeDecodeError, UnreadablePurposes):
        return None
    return CarriedContent(clauses, data[end:], kind == _UPDATE)


def _clause(owner: str, written: str) -> Clause:
    allowed, separator, prohibited = written.partition("|")
    if not separator:
        raise UnreadablePurposes("a carried reservation is written as aip|pip")
    return Clause(owner, "", _purposes(allowed), _purposes(prohibited), of_message=True)


def _purposes(text: str) -> frozenset[Purpose]:
    found = text.split(",") if text else []
    if not all(map(is_purpose, found)):
        raise UnreadablePurposes("a carried reservation names what is no purpose")
    return frozenset(map(Purpose, found))


def _lifted(purposes: Iterable[Purpose], vocabulary: Vocabulary) -> Iterable[Purpose]:
    for purpose in purposes:
        yield from [one for one in ancestors(purpose) if one in vocabulary][:1]
