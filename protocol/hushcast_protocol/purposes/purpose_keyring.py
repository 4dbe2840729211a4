"""The keyring: what a topic is sealed and opened by whose messages are for purposes alone.

A gateway seals and opens so for its clients, a program for itself: what one sealed the other opens.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable

from hushcast_protocol.base.crypto.hashes import LABEL
from hushcast_protocol.base.crypto.secrets import Randomness
from hushcast_protocol.purposes.clauses import Clause
from hushcast_protocol.purposes.cover_tags import element_tags, message_tags, reader_tags
from hushcast_protocol.purposes.grants import Grant
from hushcast_protocol.purposes.inner_content import (
    InnerContent,
    read_inside,
    write_message,
    write_withdrawal,
)
from hushcast_protocol.purposes.key_cover import CoverElement, cover_by, granted
from hushcast_protocol.purposes.purpose_names import Purpose, ancestors
from hushcast_protocol.purposes.purpose_problems import PurposeError, PurposeProblem
from hushcast_protocol.purposes.sealed_messages import OpenedContent, Opener, Sealer
from hushcast_protocol.purposes.signed_vocabulary import SignedVocabulary

MAX_COVERS = 256  # covers that are remembered, by the clauses that they follow from


class PurposeKeyring:
    """A vocabulary to seal by, and the grants to open by."""

    def __init__(
        self, issued: SignedVocabulary, grants: Iterable[Grant], each_message: bool, randomness: Randomness
    ):
        held = tuple(grants)
        self.issued = issued
        self._randomness = randomness
        self._sealer = Sealer(issued, randomness, each_message)
        self._opener = Opener(held)
        self._covers: OrderedDict[tuple[frozenset[Clause], bool], tuple[CoverElement, ...]] = OrderedDict()
        self.granted = frozenset(one.purpose for one in held)
        """The purposes for which anything was granted, now or once."""
        self.tags = reader_tags(issued.body.issuer, self.granted)
        """What relays are asked for; none: everything."""

    def seal(
        self,
        content: bytes,
        clauses: Iterable[Clause],
        strict: bool,
        now: float,
        withdrawn_by: bytes | None = None,
    ) -> tuple[bytes, frozenset[str]]:
        """Seal for what the clauses that reach a message allow; return it and the tags that it travels by.

        `withdrawn_by` is the digest of the lock that withdraws it; without one nobody can. Raises
        `PurposeError` where the vocabulary has no keys for `now`.
        """
        message = write_message(content, withdrawn_by, self._randomness)
        return self._seal(message, frozenset(clauses), strict, now)

    def withdraw(self, lock: bytes, now: float) -> tuple[bytes, frozenset[str]]:
        """Return what withdraws all messages with a lock's digest, sealed for all readers, and its tags."""
        return self._seal(write_withdrawal(lock), frozenset(), False, now)

    def open(self, data: bytes) -> tuple[OpenedContent, InnerContent]:
        """Return for which purposes a message opens, and what is inside; raise `PurposeError`."""
        opened = self._opener.open(data)
        return opened, read_inside(opened.content)

    def _seal(
        self, inside: bytes, clauses: frozenset[Clause], strict: bool, now: float
    ) -> tuple[bytes, frozenset[str]]:
        elements = self._cover(clauses, strict)
        # One for nobody has a tag, too, which nobody asks for: a message without any has fewer tokens.
        tags = message_tags(self.issued.body.issuer, elements) or {self._randomness(LABEL).hex()}
        return self._sealer.seal(elements, inside, now), frozenset(tags)

    def _cover(self, clauses: frozenset[Clause], strict: bool) -> tuple[CoverElement, ...]:
        place = clauses, strict
        found = self._covers.get(place)
        if found is None:
            found = self._covers[place] = cover_by(clauses, strict, self.issued.vocabulary)
            if len(self._covers) > MAX_COVERS:
                self._covers.popitem(last=False)
        self._covers.move_to_end(place)
        return found


class PurposeReader:
    """A reader for one purpose, who opens by the grants for it and for those above it, and by no others."""

    def __init__(self, issued: SignedVocabulary, grants: Iterable[Grant], purpose: Purpose) -> None:
        above = ancestors(purpose)
        self.grants = tuple(one for one in grants if one.purpose in above)
        """Those that serve; without any nothing opens."""
        self._purpose = purpose
        self._opener = Opener(self.grants)
        elements = {
            element
            for grant in self.grants
            for element in granted(grant.purpose)
            if element.whole or element.purpose == purpose
        }
        self.tags = element_tags(issued.body.issuer, elements)
        """What relays are asked for; none: everything."""

    def open(self, data: bytes) -> InnerContent:
        """Return what is in a message that is for the purpose; raise `PurposeError`."""
        opened = self._opener.open(data)
        if not opened.is_for(self._purpose):
            raise PurposeError("message", PurposeProblem.NOT_GRANTED)
        return read_inside(opened.content)
