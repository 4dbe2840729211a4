"""The judge of messages: what one may be used for, by the reservations that reach it and by its own terms."""

from __future__ import annotations

from collections.abc import Container, Sequence

from hushcast_protocol.base.errors import UsageError
from hushcast_protocol.purposes.carried_reservations import known, read_clauses, write_clauses
from hushcast_protocol.purposes.clauses import Clause, of_message
from hushcast_protocol.purposes.message_purposes import (
    RESERVED,
    Pairs,
    UnreadablePurposes,
    digest_in,
    is_opened_for,
    read_terms,
)
from hushcast_protocol.purposes.purpose_decision import decide
from hushcast_protocol.purposes.purpose_keyring import PurposeKeyring
from hushcast_protocol.purposes.purpose_names import Purpose
from hushcast_protocol.purposes.reservations import Reservations
from hushcast_protocol.purposes.vocabulary import Vocabulary


class MessageJudge:
    """Decides about a message by its topic, whichever of its names, and by what stands beside it."""

    def __init__(self, reservations: Reservations, vocabulary: Vocabulary, strict: bool) -> None:
        """`strict`: what nobody reserved is given to nobody."""
        self._reservations = reservations
        self._vocabulary = vocabulary
        self._strict = strict
        self._last_terms: tuple[Pairs, tuple[Clause, ...]] | None = None
        self._last_decided: tuple[str, Pairs, dict[Purpose | None, bool]] | None = None

    def go_by(self, vocabulary: Vocabulary, strict: bool) -> None:
        """Decide by another configuration from now on."""
        self._vocabulary, self._strict = vocabulary, strict
        self._last_terms = None
        self.forget()

    def forget(self) -> None:
        """Decide anew: a reservation has changed."""
        self._last_decided = None

    def check(self, publisher: str, topic: str, given: Pairs) -> None:
        """Raise `UnreadablePurposes` or `UsageError` where a message's own terms mean nothing."""
        self._read(publisher, topic, given)

    def may_be_used(
        self,
        topic: str,
        given: Pairs,
        purpose: Purpose | None,
        granted: Container[str] | None,
        is_decided: bool,
    ) -> bool:
        """Tell whether a reader may have a message for a purpose.

        `granted` is for what the topic's messages may be opened still, `None` where they come unsealed;
        `is_decided`: all of the reader's subscription may have what has no terms of its own.
        """
        if not is_opened_for(given, purpose, granted):
            return False
        try:
            own = self._terms(topic, given)
        except (UnreadablePurposes, UsageError):
            return False
        if not own and is_decided:
            return True
        # Once for all subscriptions of a purpose.
        last = self._last_decided
        if last is None or last[0] != topic or last[1] is not given:
            last = self._last_decided = topic, given, {}
        found = last[2].get(purpose)
        if found is None:
            found = last[2][purpose] = self._decide(topic, own, purpose)
        return found

    def may_leave(self, topic: str, given: Pairs, use: str) -> bool:
        """Tell whether a message may go unsealed to readers who use it so; for anything if empty."""
        clauses = self._clauses(topic, given)
        return clauses is not None and decide(clauses, Purpose(use) if use else None, self._strict).allowed

    def seal(
        self, keyed: PurposeKeyring, content: bytes, topic: str, given: Pairs, is_deletion: bool, now: float
    ) -> tuple[bytes, frozenset[str]] | None:
        """Seal what a message travels as for what it may be used for; return that and its tags.

        `None` where its own terms mean nothing; raises as `PurposeKeyring.seal`. `is_deletion`: it deletes
        what is retained. `now` is Unix seconds.
        """
        clauses, strict = self._clauses(topic, given), self._strict
        if clauses is None:
            return None
        if is_deletion:
            # Gateways that keep a message delete it, also those that may not read the next one any more.
            clauses, strict = (), False
        return keyed.seal(content, clauses, strict, now, digest_in(given))

    def carried(self, topic: str, given: Pairs, is_deletion: bool) -> str | None:
        """Return the reservations that travel with a message, in writing; empty if it is for anything.

        `None` where its own terms mean nothing, or where all of it is too long. `is_deletion`: it deletes
        what is retained, and is for all who may have that.
        """
        clauses = () if is_deletion else self._clauses(topic, given)
        return None if clauses is None else write_clauses(clauses, self._strict and not is_deletion)

    def _clauses(self, topic: str, given: Pairs) -> Sequence[Clause] | None:
        """Return all clauses that reach a message; `None` if its own mean nothing."""
        try:
            own = self._terms(topic, given)
        except (UnreadablePurposes, UsageError):
            return None
        return (*self._reservations.covering(topic), *own)

    def _decide(self, topic: str, own: tuple[Clause, ...], purpose: Purpose | None) -> bool:
        if not own:
            return self._reservations.decide(topic, purpose, self._strict).allowed
        # What it brings decides for most readers of a busy topic: the others only take away.
        if not decide(own, purpose).allowed:
            return False
        return decide([*self._reservations.covering(topic), *own], purpose, self._strict).allowed

    def _terms(self, topic: str, given: Pairs) -> tuple[Clause, ...]:
        """Return the clauses that a message brings, which the last did, too, more often than not."""
        if not given:
            return ()
        last = self._last_terms
        if last is not None and last[0] is given:
            return last[1]
        own = self._read("", topic, given)
        self._last_terms = given, own
        return own

    def _read(self, publisher: str, topic: str, given: Pairs) -> tuple[Clause, ...]:
        """Read its own clause, and the reservations that it came with; errors as `check`."""
        written = [value for name, value in given if name == RESERVED]
        found = read_terms(given)
        if found is None and not written:
            return ()
        own = [] if found is None else [of_message(publisher, topic, found.aip, found.pip, self._vocabulary)]
        came = (one for number, text in enumerate(written, 1) for one in read_clauses(text, number))
        return (*own, *known(came, self._vocabulary))
