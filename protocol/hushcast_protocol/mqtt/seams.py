"""What a broker needs from outside: a way to each client, what a client may do, and what lies beyond it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from hushcast_protocol.mqtt.packets import Properties

Done = Callable[[int], None]
"""Told once, with a reason code, when a message has been taken over durably or was refused."""


class Outlet(Protocol):
    """The way to one client."""

    def send(self, data: bytes) -> None:
        """Send encoded packets, in order, soon."""

    def has_room(self) -> bool:
        """Tell whether more messages may be sent; after a no, `Broker.drained` says when."""

    def close(self, last: bytes) -> None:
        """Send the last packet, if there is one, and close. What the client sends from now on is ignored."""


class Permissions(Protocol):
    """What one client may do. Asked for every message: answers must be quick, and may change."""

    user: str
    """Whose client it is, empty for anybody's: users with the same client id have sessions apart."""

    def may_publish(self, topic: str) -> bool:
        """Tell whether it may publish to a topic; its will, too, when that is published."""

    def may_subscribe(self, wanted: str) -> bool:
        """Tell whether it may subscribe to a filter, given without `$share/GROUP/`."""

    def may_receive(self, topic: str) -> bool:
        """Tell whether it may get a message of this topic now, fresh, retained or queued."""


class Everything:
    """Permissions of a client that may do everything."""

    def __init__(self, user: str = "") -> None:
        """`user` keeps its sessions apart."""
        self.user = user

    def may_publish(self, topic: str) -> bool:
        """Yes."""
        return True

    def may_subscribe(self, wanted: str) -> bool:
        """Yes."""
        return True

    def may_receive(self, topic: str) -> bool:
        """Yes."""
        return True


class Beyond(Protocol):
    """The network beyond this broker, to which some topics belong.

    What is published to those is handed over, and given to this broker's own clients once that is done; at
    once where these have the topic without the network, too.
    `Broker.arrived` brings what others published.
    """

    def takes(self, topic: str) -> bool:
        """Tell whether a topic belongs to the network; the answer never changes."""

    def is_local_too(self, topic: str) -> bool:
        """Tell whether a topic that does is one of this broker's clients, whatever becomes of it beyond."""

    def topics(self, topic: str) -> tuple[str, ...]:
        """Return all topics here of what is published to one that belongs to the network."""

    def publish(
        self, topic: str, payload: bytes, qos: int, retain: bool, properties: Properties, done: Done
    ) -> None:
        """Take over a message; `done` hears `Reason.SUCCESS` once it is durable, or why it is refused."""

    def will(self, topic: str, payload: bytes, retain: bool, properties: Properties) -> None:
        """Take over the will of a client that is gone; nobody waits for it."""

    def grants(self, wanted: str, qos: int) -> int:
        """Return the QoS granted to a filter, or the reason code of the refusal."""

    def wanted(self, wanted: str) -> None:
        """Hear that somebody subscribed to a filter to which nobody was subscribed."""

    def unwanted(self, wanted: str) -> None:
        """Hear that nobody is subscribed to a filter any more."""


class Nothing:
    """No network: all topics are this broker's."""

    def takes(self, topic: str) -> bool:
        """No."""
        return False

    def is_local_too(self, topic: str) -> bool:
        """Never called."""
        raise AssertionError("no topic belongs to a network")

    def topics(self, topic: str) -> tuple[str, ...]:
        """Never called."""
        raise AssertionError("no topic belongs to a network")

    def publish(
        self, topic: str, payload: bytes, qos: int, retain: bool, properties: Properties, done: Done
    ) -> None:
        """Never called."""
        raise AssertionError("no topic belongs to a network")

    def will(self, topic: str, payload: bytes, retain: bool, properties: Properties) -> None:
        """Never called."""
        raise AssertionError("no topic belongs to a network")

    def grants(self, wanted: str, qos: int) -> int:
        """Grant what was asked for."""
        return qos

    def wanted(self, wanted: str) -> None:
        """Nobody needs to know."""

    def unwanted(self, wanted: str) -> None:
        """Nobody needs to know."""
