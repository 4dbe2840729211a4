"""Tree rule: whether trees lead to what a daemon subscribes to.

Rosters list when a relay is up. Relays that are told of a tree see that its owner is there then, and over
days that names an owner who runs a relay. Where others keep what is published, a host asks for it whether or
not the owner is there, and nobody needs to be told.
"""

from __future__ import annotations

from enum import Enum


class TreeRule(Enum):
    """Where a daemon plants trees; the value is what settings call it."""

    AUTO = "auto"
    """Not where it runs a relay and what is published is kept."""
    ALWAYS = "always"

    def plants(self, is_relay: bool, is_kept: bool) -> bool:
        """Tell whether trees are planted for a day of which what is published is kept, or is not."""
        return self is TreeRule.ALWAYS or not (is_relay and is_kept)
