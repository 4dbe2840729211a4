"""A covered errand: what relays are to carry out for a daemon under cover, in a letter of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass


@dataclass(frozen=True, eq=False, repr=False)
class CoveredErrand:
    """One errand; it is sealed anew for each letter."""

    key: bytes
    """32 bytes by which its letters are known; no message has them."""
    body: Callable[[int], Awaitable[bytes]]
    """Returns the body of a letter that is due in a round; raises `Refusal` where there is none now."""
    end: Callable[[bool], None]
    """Hears that it was carried out, or that no letter brought it there in time."""
