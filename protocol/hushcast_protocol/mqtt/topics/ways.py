"""Ways: which MQTT topics the network carries, and by which of its topics.

`hush/open/NAME` is the open topic NAME; `hush/ALIAS/…` travels inside the private topic that the gateway's
configuration names ALIAS; so do topics under a map's levels, whatever they begin with. A message has a *path*
inside an alias's topic, so that each gateway tells it by its own names. An alias may be *split* by the first
level of its paths: who wants one level alone then reads by a way of its own, to which relays send no others.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Mapping

import msgspec

from hushcast_protocol.mqtt.reason_codes import Reason
from hushcast_protocol.mqtt.topics.topic_filters import common, covers, intersects, matches, normal
from hushcast_protocol.mqtt.topics.topic_names import MAX_REMEMBERED, NamedTopic

FIRST, OPEN = "hush", "open"
OWN = f"{FIRST}/"
"""What topics that travel by their own names begin with."""
MAX_OPEN_NAME = 256  # bytes after NFC: a topic of the network has no longer name


class Way(msgspec.Struct, frozen=True):
    """A topic of the network as this gateway knows it."""

    name: str
    """Of the open topic, or of the alias."""
    is_open: bool
    first: str = ""
    """The one first level of paths that it carries, in Unicode normal form C; empty for all."""

    def __repr__(self) -> str:
        """Show no name."""
        return f"Way(is_open={self.is_open})"


class Ways:
    """What the gateway's configuration says of topics; pure."""

    def __init__(
        self,
        aliases: Iterable[str] = (),
        maps: Mapping[str, str] | None = None,
        split: Iterable[str] = (),
        is_label: Callable[[str], bool] = bool,
    ) -> None:
        """`maps` leads from filters as `home/#` to aliases; of these, those in `split` are.

        `is_label` tells whether relays can route by a level.
        """
        self._split = frozenset(split)
        self._is_label = is_label
        self._aliases = {alias: Way(alias, False) for alias in aliases}
        self._maps = {wanted: self._aliases[alias] for wanted, alias in (maps or {}).items()}
        # The same for who asks by a name: in one spelling, with what stands before the alias's names.
        self._pairs = [(normal(wanted), normal(f"{OWN}{way.name}/")) for wanted, way in self._maps.items()]
        self._bare = [normal(OWN + alias) for alias in self._aliases]
        self._names: dict[str, NamedTopic] = {}

    def takes(self, topic: str) -> bool:
        """Tell whether a topic is the network's, or would be if it had an alias."""
        return topic.startswith(OWN) or self._map_of(topic) is not None

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
        mapped = self._map_of(path) if path else None
        return (own, path) if mapped is not None and mapped.name == way.name else (own,)

    def names(self, topic: str) -> NamedTopic:
        """Return all names of a topic.

        Those of one message are the same, by whichever of them one asks, and in whatever spelling.
        """
        found = self._names.get(topic)
        if found is None:
            way = self.of_topic(topic)
            here = () if way is None else self.topics(*way)
            shown = (topic,) if topic in here else (topic, *here[:1])
            if len(self._names) >= MAX_REMEMBERED:
                self._names.clear()
            found = self._names[topic] = NamedTopic(topic, shown, self.equals(topic))
        return found

    def names_of_filter(self, wanted: str) -> NamedTopic:
        """Return all filters that match the same messages as one without `$share`, by other names."""
        return NamedTopic(wanted, (wanted,), self.equals(wanted))

    def equals(self, wanted: str) -> tuple[str, ...]:
        """Return, in one spelling, all topics or filters of which every topic is one of this one's."""
        written = normal(wanted)
        found = [written]
        for mapped, own in self._pairs:
            if covers(mapped, written):
                found.append(own + written)
            elif written.startswith(own) and covers(mapped, written.removeprefix(own)):
                found.append(written.removeprefix(own))
        for bare in self._bare:
            if written in (bare, f"{bare}/"):
                found.append(f"{bare}/" if written == bare else bare)
        return tuple(found)

    def images(self, wanted: str) -> tuple[str, ...]:
        """Return, in one spelling, filters that match each topic of which a filter matches any name."""
        written = normal(wanted)
        if not self._bare:  # which are all aliases
            return (written,)
        found = [written]
        for mapped, own in self._pairs:
            if (behind := _behind(own, written)) is not None and (by_map := common(behind, mapped)):
                found.append(by_map)
            if by_map := common(written, mapped):
                found.append(own + by_map)
        for bare in self._bare:
            found += [
                one for one in (bare, f"{bare}/") if matches(written, bare) != matches(written, f"{bare}/")
            ]
        return (written, *dict.fromkeys(one for one in found if not covers(written, one)))

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
        return frozenset(
            self._narrowed(way, levels[0]) for mapped, way in self._maps.items() if intersects(mapped, wanted)
        )

    def label_of(self, way: Way, path: str) -> str:
        """Return the label by which relays route a message with this path; empty where they cannot."""
        return self._narrowed(way, path.partition("/")[0]).first

    def _of_own(self, levels: list[str]) -> Reason | frozenset[Way]:
        if levels[1] in ("#", "+"):
            return frozenset()
        if levels[1] == OPEN:
            if "+" in levels or "#" in levels:
                return Reason.WILDCARD_SUBSCRIPTIONS_NOT_SUPPORTED
            way = open_way("/".join(levels[2:]))
        else:
            way = self._aliases.get(levels[1])
            if way is not None and len(levels) > 2:
                way = self._narrowed(way, levels[2])
        return Reason.TOPIC_FILTER_INVALID if way is None else frozenset({way})

    def _narrowed(self, way: Way, first: str) -> Way:
        normal = unicodedata.normalize("NFC", first)
        if way.name not in self._split or first in ("", "#", "+") or not self._is_label(normal):
            return way
        return Way(way.name, False, normal)

    def _map_of(self, topic: str) -> Way | None:
        for wanted, way in self._maps.items():
            if matches(wanted, topic):
                return way
        return None


def open_way(name: str) -> Way | None:
    """Return the way of an open topic, `None` where no topic has such a name."""
    normal = unicodedata.normalize("NFC", name)
    return Way(normal, True) if 0 < len(normal.encode()) <= MAX_OPEN_NAME else None


def _behind(own: str, wanted: str) -> str | None:
    """Return what a filter says of the levels behind `hush/ALIAS/`, `None` where it matches no such topic."""
    levels = wanted.split("/")
    for level in own.split("/")[:-1]:
        if levels[:1] == ["#"]:
            return "#"
        if levels[:1] not in (["+"], [level]):
            return None
        levels.pop(0)
    return "/".join(levels) if levels else None
