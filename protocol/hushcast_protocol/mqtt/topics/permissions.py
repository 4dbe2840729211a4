"""Permissions: what a client may do, by all names of a topic, and what its messages get besides."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple, Protocol

from hushcast_protocol.mqtt.topics.topic_names import NamedTopic


class Permissions(Protocol):
    """What one client may do. Asked for every message: answers must be quick, and may change.

    It is asked by all names of a topic; `OuterNetwork` tells them.
    """

    user: str
    """Whose client it is, empty for anybody's: users with the same client id have sessions apart."""

    def may_publish(self, topic: NamedTopic) -> bool:
        """Tell whether it may publish to a topic; its will, too, when that is published."""

    def may_subscribe(self, wanted: NamedTopic) -> bool:
        """Tell whether it may subscribe to a filter, given without `$share/GROUP/`."""

    def may_receive(self, topic: NamedTopic) -> bool:
        """Tell whether it may get a message of this topic now, fresh, retained or queued."""

    def keeps_back(self, filters: Iterable[str]) -> bool:
        """Tell whether it may not get what some of these filters match, though it be subscribed to it."""


PermissionsOf = Callable[[str, str], Permissions]
"""Tells what a client that is away may do, by user and client identifier; one of an unknown user, nothing."""


class FullPermissions:
    """Permissions of a client that may do everything."""

    def __init__(self, user: str = "") -> None:
        """`user` keeps its sessions apart."""
        self.user = user

    def may_publish(self, topic: NamedTopic) -> bool:
        """Yes."""
        return True

    def may_subscribe(self, wanted: NamedTopic) -> bool:
        """Yes."""
        return True

    def may_receive(self, topic: NamedTopic) -> bool:
        """Yes."""
        return True

    def keeps_back(self, filters: Iterable[str]) -> bool:
        """No."""
        return False


class AddedProperty(NamedTuple):
    """A user property that a client's messages get, by the filters of their topics."""

    by_filter: Mapping[str, tuple[str, str]] = MappingProxyType({})
    unless: frozenset[str] = frozenset()
    """Not those messages which have a user property with one of these names."""
