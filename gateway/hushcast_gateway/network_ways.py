"""The ways of a configuration: where each topic travels, by which keys, and for what it may be opened.

Broker, network and purposes go by this one value, so that they know a message by the same names.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from hushcast.handles import is_handle
from hushcast.keys import read_link
from hushcast_gateway.settings import GatewaySettings, NetworkTopicsSection
from hushcast_protocol.base.errors import UsageError
from hushcast_protocol.content.attributes import Label, parse_label
from hushcast_protocol.content.predicates import Equals, Predicate, write_where
from hushcast_protocol.content.topics import LINK_SCHEME, Topic, parse_topic
from hushcast_protocol.mqtt.reason_codes import Reason
from hushcast_protocol.mqtt.topics.ways import OWN, Way, Ways
from hushcast_protocol.purposes.purpose_keyring import PurposeKeyring
from hushcast_protocol.purposes.purpose_names import Purpose, ancestors


class NetworkSubscription(NamedTuple):
    """A subscription in the network."""

    topic: str
    """The topic's name, or its link."""
    where: str

    def __repr__(self) -> str:
        """Show neither."""
        return "NetworkSubscription(...)"


class TopicWay(NamedTuple):
    """How a message of a topic travels now."""

    link: str
    """The name of the network's topic, or its link."""
    path: str
    """What stands for the topic inside the seal."""
    attributes: Mapping[str, str]
    """What relays route it by."""
    keyed: PurposeKeyring | None
    """What it is sealed by, for purposes; `None` where it is for whoever has the link."""
    use: str
    """What all who have the link use it for; empty for anything."""
    carries: bool
    """Whether it goes with its reservations, to gateways that go by them."""
    has_places: bool
    """Whether each message has an envelope, with its place among its topic's."""
    topics: tuple[str, ...]
    """What it is called here; the first name is the one that its reader's gateways have, too."""

    def __repr__(self) -> str:
        """Show nothing of it."""
        return "TopicWay(...)"


class NetworkWays(Ways):
    """Ways with what each is in the network; without links there are those of open topics alone."""

    def __init__(
        self,
        topics: NetworkTopicsSection | None = None,
        links: Mapping[str, str] = MappingProxyType({}),
        keyed: Mapping[str, PurposeKeyring] = MappingProxyType({}),
    ) -> None:
        """`links` are the aliases' by name, `keyed` the keys of those that have some."""
        topics = topics or NetworkTopicsSection()
        self.labels = {one.name: one.label for one in topics.alias if one.label is not None}
        """By alias, the label attribute by which it is split."""
        self.keyed = dict(keyed)
        """By alias, the keys of now."""
        self._links = links
        self._plain = {one.name for one in topics.alias if one.plain}
        self._uses = {one.name: one.purpose or "" for one in topics.alias}
        self._carrying = {one.name for one in topics.alias if one.reservations}
        super().__init__(links, {one.from_: one.to for one in topics.map}, self.labels, _is_label)

    def way_of(self, topic: str) -> TopicWay | None:
        """Return how a topic travels, `None` where it does not, or does not any more."""
        found = self.of_topic(topic)
        link = None if found is None else self._link_of(found[0])
        if found is None or link is None:
            return None
        way, path = found
        label = self.label_of(way, path)
        attributes = {self.labels[way.name]: label} if label else {}
        use = "" if way.is_open else self._uses.get(way.name, "")
        has_places = not way.is_open and (bool(path) or way.name not in self._plain)
        topics = self.topics(way, path)
        carries = not way.is_open and way.name in self._carrying
        return TopicWay(link, path, attributes, self.keys_of(way), use, carries, has_places, topics)

    def source_of(self, way: Way) -> NetworkSubscription | None:
        """Return what is subscribed to for a way; `None` where it is none, or is not configured any more."""
        link, label, keyed = self._link_of(way), self.labels.get(way.name), self.keys_of(way)
        if link is None or (way.first and label is None):
            return None
        condition = (Equals(Label(label), way.first),) if label is not None and way.first else ()
        tags = frozenset[str]() if keyed is None else keyed.tags
        return NetworkSubscription(link, write_where(Predicate(condition, tags)))

    def keys_of(self, way: Way) -> PurposeKeyring | None:
        """Return what a way is sealed and opened by, `None` where it needs no keys."""
        return None if way.is_open else self.keyed.get(way.name)

    def readable(self, wanted: str) -> frozenset[Way]:
        """Return the ways that a filter opens and something is held for that opens what comes."""
        ways = self.of_filter(wanted)
        # A session from disk may have what an earlier configuration granted.
        found = frozenset[Way]() if isinstance(ways, Reason) else ways
        return frozenset(way for way in found if (keyed := self.keys_of(way)) is None or keyed.granted)

    def sealed_as(self, topic: str) -> str | None:
        """Return by which of its names a topic travels sealed, `None` where it does not."""
        found = self.of_topic(topic)
        return None if found is None or self.keys_of(found[0]) is None else self.topics(*found)[0]

    def granted(self, topic: str) -> frozenset[Purpose] | None:
        """Return for which purposes what comes to a topic may be opened, `None` if it needs no keys."""
        found = self.of_topic(topic)
        keyed = None if found is None else self.keys_of(found[0])
        return None if keyed is None else keyed.granted

    def may_open(self, wanted: str, purpose: Purpose | None) -> bool:
        """Tell whether a filter's messages may open for a purpose; those of a map are of the house, too."""
        ways = self.of_filter(wanted) if wanted.startswith(OWN) else frozenset[Way]()
        if isinstance(ways, Reason):
            return True  # which `GatewayNetwork.grants` refuses
        above = () if purpose is None else ancestors(purpose)
        keyed = [self.keys_of(way) for way in ways]
        return all(one is None or not one.granted.isdisjoint(above) for one in keyed)

    def _link_of(self, way: Way) -> str | None:
        if not way.is_open:
            return self._links.get(way.name)
        # A link is a secret and has no place in an MQTT topic; a handle is a topic of other programs.
        is_open_name = not (way.name.lstrip().startswith(LINK_SCHEME) or is_handle(way.name))
        return way.name if is_open_name else None


def read_links(settings: GatewaySettings) -> dict[str, str]:
    """Return the aliases' links by name; raises `UsageError` where one cannot be used.

    Two of one topic could not be told apart by who denies or reserves what one of them carries.
    """
    links: dict[str, str] = {}
    topics: dict[str, Topic] = {}
    for alias in settings.gateway.alias:
        links[alias.name] = read_link(alias.link_file)
        topic = topics[alias.name] = parse_topic(links[alias.name])
        for name, other in topics.items():
            if name != alias.name and (other.name, other.secret) == (topic.name, topic.secret):
                raise UsageError(
                    f"gateway.alias {alias.name}: {name} is an alias of the same topic: take one out"
                )
        if alias.label is not None and alias.label not in {
            one.name for one in topic.attributes if isinstance(one, Label)
        }:
            raise UsageError(f"gateway.alias {alias.name}: the topic of its link has no label {alias.label}")
    return links


def _is_label(level: str) -> bool:
    try:
        return parse_label(level, "") == level
    except UsageError:
        return False
