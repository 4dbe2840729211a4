"""A shared subscription: each message goes to one member of the group (section 4.8.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hushcast_protocol.mqtt.messages import Message
from hushcast_protocol.mqtt.seams import Rules

if TYPE_CHECKING:
    from hushcast_protocol.mqtt.session import Granted, Session


class Group:
    """Members in turn. Who is connected goes before who is away, and nobody gets what it may not have."""

    def __init__(self, name: str) -> None:
        """`name` is `GROUP/FILTER`."""
        self.name = name
        self.members: dict[Session, Granted] = {}
        self._next = 0

    def choose(self, message: Message, rules: Rules | None = None) -> tuple[Session, Granted] | None:
        """Return who gets a message and by which subscription; `None` if nobody can.

        Members that are away get it only if it can wait for them: of QoS 1 or 2, in a session that stays.
        """
        members = list(self.members.items())
        waiting: tuple[Session, Granted] | None = None
        for step in range(len(members)):
            session, granted = members[(self._next + step) % len(members)]
            link = session.link
            if link is not None and not link.permissions.may_receive(message.topic):
                continue
            if rules is not None and not rules.may_have(session, granted, message):
                continue
            if link is not None and link.has_room():
                self._next = (self._next + step + 1) % len(members)
                return session, granted
            if waiting is None and min(message.qos, granted.qos):
                waiting = session, granted
        if waiting is not None:
            self._next += 1
        return waiting
