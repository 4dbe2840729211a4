"""Ways: which MQTT topics the network carries, and by which of its topics.

`hush/open/NAME` is the open topic NAME; `hush/ALIAS/…` travels inside the private topic that the gateway's
configuration names ALIAS; so do topics under a map's levels, whatever they begin with. A message has a *path*
inside an alias's topic, so that each gateway tells it by its own names.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping

import msgspec

from hushcast_protocol.mqtt.reasons import Reason
from hushcast_protocol.mqtt.topics import intersects, matches

FIRST, OPEN = "hush", "open"
MAX_OPEN_NAME = 256  # bytes after NFC: a topic of the network has no longer name


class Way(msgspec.Struct, frozen=True):
    """A topic of the network as this gateway knows it."""

    name: str
    """Of the open topic, or of the alias."""
    is_open: bool

    def __repr__(self) -> str:
        """Show no name."""
        return f"Way(is_open={self.is_open})"


class Ways:
    """What the gateway's configuration says of topics; pure."""

    def __init__(self, aliases: Iterable[str] = (), maps: Mapping[str, str] | None = None) -> None:
        """`maps` leads from filters as `home/#` to aliases."""
        self._aliases = {alias: Way(alias, False) for alias in aliases}
        self._maps = {wanted: self._aliases[alias] for wanted, alias in (maps or {}).items()}

    def takes(self, topic: str) -> bool:
        """Tell whether a topic is the network's, or would be if it had an alias."""
        return topic.startswith(f"{FIRST}/") or self._map_of(topic) is not None

    def of_topic(self, topic: str) -> tuple[Way, str] | None:
        """Return by which way a topic travels and its path there; `None` where there is no such way."""
        if (mapped := self._map_of(topic)) is not None:
            return mapped, topic
        first, _, rest = topic.partition("/")
        if first != FIRST:
            return None
        second, _, path = rest.partition("/")
        if second == OPEN:
            way = open_way(path)
            return None if way is None else (way, "")
        alias = self._aliases.get(second)
        return None if alias is None else (alias, path)

    def topics(self, way: Way, path: str) -> tuple[str, ...]:
        """Return the MQTT topics of a message that came by a way with this path."""
        if way.is_open:
            return (f"{FIRST}/{OPEN}/{way.name}",)
        own = f"{FIRST}/{way.name}/{path}" if path else f"{FIRST}/{way.name}"
        return (own, path) if self._map_of(path) == way else (own,)

    def of_filter(self, wanted: str) -> Reason | frozenset[Way]:
        """Return the ways that a subscription opens, or why it is refused.

        A wildcard in the first level, or in the second of `hush/`, opens none: it gets what comes by ways
        that others open.
        """
        levels = wanted.split("/")
        if levels[0] == FIRST and len(levels) > 1:
            return self._of_own(levels)
        if levels[0] in ("#", "+"):
            return frozenset()
        return frozenset(way for mapped, way in self._maps.items() if intersects(mapped, wanted))

    def _of_own(self, levels: list[str]) -> Reason | frozenset[Way]:
        if levels[1] in ("#", "+"):
            return frozenset()
        if levels[1] == OPEN:
            if "+" in levels or "#" in levels:
                return Reason.WILDCARD_SUBSCRIPTIONS_NOT_SUPPORTED
            way = open_way("/".join(levels[2:]))
        else:
            way = self._aliases.get(levels[1])
        return Reason.TOPIC_FILTER_INVALID if way is None else frozenset({way})

    def _map_of(self, topic: str) -> Way | None:
        for wanted, way in self._maps.items():
            if matches(wanted, topic):
                return way
        return None


def open_way(name: str) -> Way | None:
    """Return the way of an open topic, `None` where no topic has such a name."""
    normal = unicodedata.normalize("NFC", name)
    return Way(normal, True) if 0 < len(normal.encode()) <= MAX_OPEN_NAME else None
