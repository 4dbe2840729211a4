"""Filters inside topic names, where wildcards cannot stand: commands of the published form spell them."""

from __future__ import annotations

HASH, PLUS = "HASH", "PLUS"
_MEANT = {HASH: "#", PLUS: "+"}


def filter_of(spelled: str) -> str:
    """Return the filter that a topic name spells: its levels `HASH` and `PLUS` are `#` and `+`.

    Whole levels alone: `plant/HASHRATE` is a topic and no filter.
    """
    return "/".join([_MEANT.get(level, level) for level in spelled.split("/")])
