"""What a user may do: topic filters that allow and deny, and what they say of a topic or a filter.

What is allowed is allowed by the name that is used, as it is written; what is denied is denied by all names
of it, in every spelling (`topic_names.py`). So a list names once what a user may do, and what it protects.

`%u` stands for the user's name and `%c` for the client identifier, each as a whole level and never the first:
a name must not choose the tree.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from hushcast_protocol.mqtt.topics.topic_filters import covers, intersects, is_filter, normal, split_share
from hushcast_protocol.mqtt.topics.topic_names import NamedTopic

USER, CLIENT = "%u", "%c"
MAX_REMEMBERED = 256  # answers about topics that are remembered: a client writes to few, again and again
REMEMBERED_LENGTH = 128  # characters of a topic that is; with both, some 100 kB at worst

Filters = tuple[str, ...]


class Access(msgspec.Struct, frozen=True):
    """The filters of a user, as `problem` finds them good. What is denied is taken from what is allowed."""

    publish: Filters = ()
    subscribe: Filters = ()
    deny_publish: Filters = ()
    deny_subscribe: Filters = ()


def problem(wanted: str) -> str | None:
    """Return why this cannot be a filter of an access list, `None` if it can."""
    if split_share(wanted) is not None:
        return "name the filter behind $share/GROUP/ alone: it holds for shared subscriptions, too"
    if not is_filter(wanted):
        return "not a topic filter: `+` and `#` fill a whole level, and `#` is the last"
    first, *rest = wanted.split("/")
    if "%" in first:
        return f"{USER} and {CLIENT} stand behind a first level of their own: users/{USER}/#"
    if any("%" in level and level not in (USER, CLIENT) for level in rest):
        return (
            f"a level with % is {USER}, the user's name, or {CLIENT}, the client identifier, and nothing else"
        )
    return None


def is_level(name: str) -> bool:
    """Tell whether a name can fill one level of a topic: not empty, without separators and wildcards."""
    return bool(name) and name.isprintable() and not set(name) & set("/+#")


class _List:
    """Filters that allow without those that deny, taken apart once: both are asked for every message."""

    def __init__(self, allowed: Iterable[str], denied: Iterable[str]) -> None:
        self._allowed = [_Levels(one) for one in allowed]
        self._denied = [_Levels(normal(one)) for one in denied]
        self._remembered: dict[str, bool] = {}

    def has(self, topic: NamedTopic) -> bool:
        """Tell whether a topic is allowed and not denied."""
        if (known := self._remembered.get(topic)) is not None:
            return known
        found = all(_any(self._allowed, one) for one in topic.shown) and not any(
            _any(self._denied, one) for one in topic.every
        )
        if len(topic) <= REMEMBERED_LENGTH:
            if len(self._remembered) >= MAX_REMEMBERED:
                self._remembered.clear()
            self._remembered[topic] = found
        return found


def _any(filters: Iterable[_Levels], topic: str) -> bool:
    levels = topic.split("/")
    return any(one.match(levels) for one in filters)


class _Levels:
    """A filter's levels; matches as `topic_filters.matches`, at a glance where the first level differs."""

    __slots__ = ("_count", "_is_open", "_levels")

    def __init__(self, wanted: str) -> None:
        levels = wanted.split("/")
        self._is_open = levels[-1] == "#"
        self._levels = levels[:-1] if self._is_open else levels
        self._count = len(self._levels)

    def match(self, topic: list[str]) -> bool:
        if len(topic) < self._count or (len(topic) > self._count and not self._is_open):
            return False
        if topic[0].startswith("$") and (not self._levels or self._levels[0] == "+"):
            return False
        for wanted, level in zip(self._levels, topic, strict=False):  # noqa: SIM110 - a generator takes longer
            if wanted not in (level, "+"):
                return False
        return True


class AccessPermissions:
    """The answers that an access list gives to one user at one client identifier."""

    def __init__(self, access: Access, user: str, client_id: str) -> None:
        """Filters with a name that cannot fill a level are left out: they allow nothing."""
        self.user = user
        self._client_id = client_id
        self.replace(access)

    def replace(self, access: Access) -> None:
        """Answer by another list from now on."""
        self._publish = _List(filled(access.publish, self.user, self._client_id), access.deny_publish)
        self._subscribe = tuple(filled(access.subscribe, self.user, self._client_id))
        self._deny_subscribe = tuple(map(normal, access.deny_subscribe))
        self._receive = _List(self._subscribe, access.deny_subscribe)

    def may_publish(self, topic: NamedTopic) -> bool:
        """Tell whether a message may be published to a topic."""
        return self._publish.has(topic)

    def may_receive(self, topic: NamedTopic) -> bool:
        """Tell whether a message on a topic may be shown."""
        return self._receive.has(topic)

    def may_subscribe(self, wanted: NamedTopic) -> bool:
        """Tell whether a subscription to a filter, without `$share/GROUP/`, may be made.

        One allowed filter covers it, and no denied one does. What is denied of a wider subscription is kept
        back message by message.
        """
        return any(covers(one, wanted) for one in self._subscribe) and not any(
            covers(one, name) for one in self._deny_subscribe for name in wanted.every
        )

    def keeps_back(self, filters: Iterable[str]) -> bool:
        """Tell whether messages that some of these filters match are denied, whatever is allowed."""
        return any(intersects(one, normal(each)) for one in self._deny_subscribe for each in filters)


def filled(filters: Iterable[str], user: str, client_id: str) -> Iterable[str]:
    """Yield filters with the names put in; those that a name cannot be a level of are left out."""
    names = {USER: user, CLIENT: client_id}
    for one in filters:
        if "%" not in one:
            yield one
            continue
        levels = one.split("/")
        if all(is_level(names[level]) for level in levels if level in names):
            yield "/".join(names.get(level, level) for level in levels)
