"""Hold rule: whether a message waits a drawn while until its letter is due, so that presence names nobody."""

from __future__ import annotations

from enum import Enum


class HoldRule(Enum):
    """What a daemon does with messages of which nothing else is said; the value is what settings call it."""

    AUTO = "auto"
    """Holds them unless the daemon was there in nearly all rounds of two weeks."""
    ALWAYS = "always"
    NEVER = "never"

    def is_held(self, is_always_there: bool) -> bool:
        """Tell whether a message is held at a daemon that is always there, or is not."""
        return self is HoldRule.ALWAYS or (self is HoldRule.AUTO and not is_always_there)
