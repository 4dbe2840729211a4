"""Who is subscribed to what: for each topic, the clients that get its messages and how, remembered.

A client whose subscriptions overlap gets one message, at the highest QoS of them and with all their
identifiers (section 3.3.4).
"""

from __future__ import annotations

from collections.abc import Callable

from hushcast_protocol.mqtt.limits import MAX_PLANS
from hushcast_protocol.mqtt.session import Granted, Session
from hushcast_protocol.mqtt.shared import Group
from hushcast_protocol.mqtt.tree import FilterTree


class Recipient:
    """A client that gets a message: at most at this QoS, with these identifiers of subscriptions."""

    __slots__ = ("ids", "own", "qos", "retain_as_published", "session", "spares_own")

    def __init__(self, session: Session, subscriptions: list[Granted]) -> None:
        self.session = session
        self.qos = max(one.qos for one in subscriptions)
        self.retain_as_published = any(one.retain_as_published for one in subscriptions)
        self.ids = tuple(one.identifier for one in subscriptions if one.identifier)
        others = [one for one in subscriptions if not one.no_local]
        self.spares_own = len(others) < len(subscriptions)
        """Whether what the client itself published reaches it otherwise than other messages."""
        self.own: Recipient | None = Recipient(session, others) if others and self.spares_own else None
        """How that reaches it, `None` for not at all."""


class Plan:
    """Who gets the messages of one topic."""

    __slots__ = ("groups", "is_plain", "recipients")

    def __init__(self, recipients: list[Recipient], groups: list[Group], is_ours: bool) -> None:
        """`is_ours`: clients may publish to the topic, and it does not belong to the network beyond."""
        self.recipients = recipients
        self.groups = groups
        self.is_plain = is_ours and not groups and not any(one.ids or one.spares_own for one in recipients)
        """Whether a PUBLISH of QoS 0 without properties goes to all of them as it came."""


class _Leaf:
    """The subscriptions to one filter."""

    __slots__ = ("groups", "plain")

    def __init__(self) -> None:
        self.plain: dict[Session, Granted] = {}
        self.groups: dict[str, Group] = {}


class Subscribers:
    """All subscriptions of all clients."""

    def __init__(self, is_ours: Callable[[str], bool]) -> None:
        """`is_ours` tells whether clients may publish to a topic, and it is delivered here."""
        self._is_ours = is_ours
        self._tree: FilterTree[_Leaf] = FilterTree()
        self._plans: dict[str, Plan] = {}
        self.count = 0

    def add(self, session: Session, granted: Granted) -> bool:
        """Add a subscription or put it in place of the same; return whether the filter had no other."""
        self._plans.clear()
        leaf = self._tree.get(granted.wanted)
        is_first = leaf is None
        if leaf is None:
            leaf = _Leaf()
            self._tree.put(granted.wanted, leaf)
        if granted.share:
            group = leaf.groups.get(granted.share)
            if group is None:
                group = leaf.groups[granted.share] = Group(f"{granted.share}/{granted.wanted}")
            members = group.members
        else:
            members = leaf.plain
        self.count += session not in members
        members[session] = granted
        return is_first

    def remove(self, session: Session, granted: Granted) -> bool:
        """Take a subscription away; return whether nobody is left at its filter."""
        self._plans.clear()
        leaf = self._tree.get(granted.wanted)
        if leaf is None:
            return False
        members = leaf.plain
        if granted.share:
            group = leaf.groups.get(granted.share)
            if group is None:
                return False
            members = group.members
        self.count -= members.pop(session, None) is not None
        if granted.share and not members:
            del leaf.groups[granted.share]
        if leaf.plain or leaf.groups:
            return False
        self._tree.remove(granted.wanted)
        return True

    def group(self, name: str) -> Group | None:
        """Return the group that shares a subscription, by `GROUP/FILTER`."""
        share, _, wanted = name.partition("/")
        leaf = self._tree.get(wanted)
        return None if leaf is None else leaf.groups.get(share)

    def plan(self, topic: str) -> Plan:
        """Return who gets the messages of a topic."""
        plan = self._plans.get(topic)
        if plan is None:
            if len(self._plans) >= MAX_PLANS:
                self._plans.clear()
            plan = self._plans[topic] = self._draw(topic)
        return plan

    def _draw(self, topic: str) -> Plan:
        by_session: dict[Session, list[Granted]] = {}
        groups: list[Group] = []
        for leaf in self._tree.match(topic):
            for session, granted in leaf.plain.items():
                by_session.setdefault(session, []).append(granted)
            groups += leaf.groups.values()
        recipients = [Recipient(session, found) for session, found in by_session.items()]
        return Plan(recipients, groups, self._is_ours(topic))
