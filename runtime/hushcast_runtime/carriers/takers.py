"""Takers: who has a message that is handed over, where nothing else of it matters."""

from __future__ import annotations


class Takers:
    """Hears who takes a message; implements `Handover`."""

    def __init__(self, names: list[bytes] | None = None) -> None:
        """`names` are those who have it already; others join them there."""
        self.names = [] if names is None else names
        """As carriers name them; one that was handed it twice may be here twice."""

    def note_try(self, taker: bytes) -> None:
        """Take notice of an attempt."""

    def note_receipt(self, taker: bytes) -> None:
        """Note that somebody has it."""
        self.names.append(taker)

    def note_failure(self, reason: str) -> None:
        """Take notice that somebody did not take it: nothing follows from it."""
