"""Progress of work that takes an unknown time: not every step is worth a word."""

from __future__ import annotations

import time
from collections.abc import Callable

_EVERY = 1.0  # seconds between two words of progress, at first; each takes twice as long up to a minute


def now_and_then(tell: Callable[[str], None]) -> Callable[[str], None]:
    """Pass on what is told after a second, and then ever more seldom, up to once a minute."""
    pause, due = _EVERY, time.monotonic() + _EVERY

    def progress(text: str) -> None:
        nonlocal pause, due
        if (now := time.monotonic()) >= due:
            tell(text)
            pause, due = min(60.0, 2 * pause), now + pause

    return progress
