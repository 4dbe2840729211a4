"""All names of a topic: whoever decides by a topic is given them all, and cannot ask by one.

A message may be known by a map's name and by its alias's, and each may be spelled in several ways of Unicode.
`ways.Ways` tells which names there are; of what does not travel there is one, in several spellings.
"""

from __future__ import annotations

from functools import lru_cache

from hushcast_protocol.mqtt.topics.topic_filters import normal

MAX_REMEMBERED = 1_000  # topics whose names are remembered; some 4 kB each at worst


class NamedTopic(str):
    """A topic or filter as somebody wrote it, or is shown it, with all names of it."""

    __slots__ = ("every", "shown")

    shown: tuple[str, ...]
    """Those that must all be allowed: as it is written, and what it is called where it is handed out."""
    every: tuple[str, ...]
    """All, in Unicode normal form C, of which none may be denied."""

    def __new__(cls, written: str, shown: tuple[str, ...], every: tuple[str, ...]) -> NamedTopic:
        """`written` is one of `shown`."""
        made = super().__new__(cls, written)
        made.shown, made.every = shown, every
        return made


@lru_cache(maxsize=MAX_REMEMBERED)
def alone(written: str) -> NamedTopic:
    """Return a topic or filter that has no other name."""
    return NamedTopic(written, (written,), (normal(written),))
