"""Names of topics, lists and reservations by plain sets: it shares no code with what it judges."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, field

from hushcast_protocol.mqtt.topics.access import Access

NFC, NFD = "caf\u00e9", "cafe\u0301"
ALIASES = ("home", "garden")
MAPS = {"z/#": "home", "a/b/#": "home", f"{NFC}/#": "garden", f"d/{NFD}/#": "garden"}
PATHS = (
    "z",
    "z/x",
    "z/x/y",
    "a/b",
    "a/b/x",
    "a/c",
    f"{NFC}/x",
    f"{NFD}/x",
    f"d/{NFC}",
    f"d/{NFD}/x",
    "x",
    "",
)
TOPICS = (
    *(path for path in PATHS if path),
    *(f"hush/{alias}/{path}" for alias in ALIASES for path in PATHS),
    *(f"hush/{alias}" for alias in ALIASES),
    *(f"hush/open/{name}" for name in ("n", NFC, NFD, "a/b")),
)
FILTERS = (
    *TOPICS,
    *("#", "+/#", "+/x", "+/+/x", "z/#", "z/+", "a/#", "a/+/#", f"{NFD}/#", f"d/{NFC}/#", "d/#"),
    *("hush/#", "hush/+/z/#", "hush/home/#", "hush/home/+", "hush/home/+/x", "hush/garden/#", "hush/open/#"),
    *("+/home/z/#", "hush/+", "hush/+/", f"hush/garden/{NFD}/#", "hush/home/a/+", "+/+", "+/+/#"),
)
PURPOSES = ("operations", "operations/billing", "marketing", "research")
USERS = ("alice", "bob", "eve")


def normal(text: str) -> str:
    return unicodedata.normalize("NFC", text)


def covers(wanted: str, topic: str) -> bool:
    return _covers(wanted.split("/"), topic.split("/"))


def _covers(wanted: list[str], topic: list[str]) -> bool:
    if not wanted or wanted == ["#"]:
        return bool(wanted) or not topic
    return bool(topic) and wanted[0] in ("+", topic[0]) and _covers(wanted[1:], topic[1:])


def any_of(filters: Iterable[str], topic: str) -> bool:
    return any(covers(one, topic) for one in filters)


def grants(allowed: str, wanted: str) -> bool:
    """Tell whether a list's filter covers all of another: that has no more to say than a topic's levels."""
    if not covers(allowed, wanted) or not wanted.endswith("#"):
        return covers(allowed, wanted)
    return allowed.endswith("#") and allowed.count("/") <= wanted.count("/")


def is_below(purpose: str, some: Iterable[str]) -> bool:
    return any(purpose == one or purpose.startswith(f"{one}/") for one in some)


@dataclass
class Drawn:
    """A configuration, what was reserved, and who may what."""

    aliases: dict[str, str]
    """With what readers of each use it for; empty for anything."""
    maps: dict[str, str]
    strict: bool
    lists: dict[str, Access]
    reserved: dict[tuple[str, str], tuple[frozenset[str], frozenset[str]]] = field(default_factory=dict)

    def names(self, topic: str) -> set[str]:
        """All names of a topic, in one spelling."""
        found = {normal(topic)}
        for _ in range(3):
            for wanted, alias in self.maps.items():
                level = normal(wanted).removesuffix("/#")
                pairs = [(f"hush/{alias}/{name}", name) for name in found]
                pairs += [(name, name.removeprefix(f"hush/{alias}/")) for name in found]
                for own, name in pairs:
                    if own == f"hush/{alias}/{name}" and (name == level or name.startswith(f"{level}/")):
                        found = found | {own, name}
            for alias in self.aliases:
                if found & {f"hush/{alias}", f"hush/{alias}/"}:
                    found |= {f"hush/{alias}", f"hush/{alias}/"}
        return found

    def handed_out_as(self, topic: str) -> list[str] | None:
        """The topics under which a message comes; `None` where it is refused."""
        alias, path = "", ""
        for wanted, to in self.maps.items():
            if covers(wanted, topic):
                alias, path = to, topic
        if not alias:
            if not topic.startswith("hush/"):
                return [topic]
            if topic.startswith("hush/open/"):
                return [normal(topic)] if topic != "hush/open/" else None
            alias, _, path = topic.removeprefix("hush/").partition("/")
            if alias not in self.aliases:
                return None
        own = [f"hush/{alias}/{path}" if path else f"hush/{alias}"]
        return own + [path] * any(
            to == alias and covers(wanted, path) for wanted, to in self.maps.items() if path
        )

    def may_publish(self, user: str, topic: str) -> bool:
        out, its = self.handed_out_as(topic), self.lists[user]
        shown = {topic} if out is None or topic in out else {topic, out[0]}
        denied = any(any_of(map(normal, its.deny_publish), name) for name in self.names(topic))
        return all(any_of(its.publish, name) for name in shown) and not denied

    def may_receive(self, user: str, topic: str) -> bool:
        its = self.lists[user]
        denied = any(any_of(map(normal, its.deny_subscribe), name) for name in self.names(topic))
        return any_of(its.subscribe, topic) and not denied

    def allowed(self, topic: str, purpose: str) -> bool:
        names = self.names(topic)
        owners: dict[str, list[tuple[frozenset[str], frozenset[str]]]] = {}
        for (owner, wanted), sets in self.reserved.items():
            if any(covers(normal(wanted), name) for name in names):
                owners.setdefault(owner, []).append(sets)
        if not owners:
            return not self.strict
        every = [sets for theirs in owners.values() for sets in theirs]
        if not purpose or any(not aip or is_below(purpose, pip) for aip, pip in every):
            return False
        return all(any(is_below(purpose, aip) for aip, _ in theirs) for theirs in owners.values())

    def leaves(self, topic: str) -> bool:
        """Tell whether a message may go to the network."""
        alias = (self.handed_out_as(topic) or [""])[0].split("/")[1]
        return self.allowed(topic, self.aliases.get(alias, ""))

    def is_spread(self, topic: str) -> bool:
        """Tell whether clients here are given what is published: at once, or since the network has it."""
        is_local = not topic.startswith("hush/")
        return self.handed_out_as(topic) is not None and (is_local or self.leaves(topic))
