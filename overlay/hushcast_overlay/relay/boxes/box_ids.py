"""Box ids: which messages boxes have had, so that keepers are asked for the others alone."""

from __future__ import annotations

# Ids that a host remembers of all its boxes' sought days, some 100 bytes each: 26 MB. A box whose ids gave
# way gets some messages again, which its owner knows.
MAX_BOX_IDS = 262_144


class BoxIds:
    """The ids of what came for boxes, by box and day; in memory, as a repeat does no harm."""

    def __init__(self) -> None:
        self._had: dict[tuple[bytes, int], set[bytes]] = {}
        self._count = 0

    def __len__(self) -> int:
        """Return how many are remembered."""
        return self._count

    def note(self, box: bytes, day: int, message: bytes) -> bool:
        """Remember that a message came for a box; return whether it is not known to have come before.

        Of too many those of the box and day with most are forgotten.
        """
        had = self._had.setdefault((box, day), set())
        if message in had:
            return False
        had.add(message)
        self._count += 1
        if self._count > MAX_BOX_IDS:
            self._drop(max(self._had, key=lambda one: len(self._had[one])))
        return True

    def has(self, box: bytes, day: int, message: bytes) -> bool:
        """Tell whether a message is known to have come for a box."""
        return message in self._had.get((box, day), ())

    def forget(self, box: bytes, day: int) -> None:
        """Forget what came for a box on a day."""
        if (box, day) in self._had:
            self._drop((box, day))

    def _drop(self, one: tuple[bytes, int]) -> None:
        self._count -= len(self._had.pop(one))
