"""Who is subscribed to what: for each topic, the clients that get its messages and how, remembered.

A client whose subscriptions overlap gets one message, at the highest QoS of them and with all their
identifiers (section 3.3.4); where there are rules, of those subscriptions that they let it have it by.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from hushcast_protocol.mqtt.interfaces import UsageRules
from hushcast_protocol.mqtt.limits import MAX_PLANS
from hushcast_protocol.mqtt.mqtt_messages import MqttMessage
from hushcast_protocol.mqtt.mqtt_session import GrantedSubscription, MqttSession
from hushcast_protocol.mqtt.shared_subscriptions import SharedGroup
from hushcast_protocol.mqtt.topics.filter_tree import FilterTree
from hushcast_protocol.mqtt.topics.topic_filters import matches, normal
from hushcast_protocol.mqtt.topics.topic_names import NamedTopic
from hushcast_protocol.mqtt.wire.fields import text


class Recipient:
    """A client that gets a message: at most at this QoS, with these identifiers of subscriptions."""

    __slots__ = ("ids", "own", "qos", "retain_as_published", "session", "spares_own", "subscriptions")

    def __init__(self, session: MqttSession, subscriptions: list[GrantedSubscription]) -> None:
        self.session = session
        self.subscriptions = subscriptions
        self.qos = max(one.qos for one in subscriptions)
        self.retain_as_published = any(one.retain_as_published for one in subscriptions)
        self.ids = tuple(one.identifier for one in subscriptions if one.identifier)
        others = [one for one in subscriptions if not one.no_local]
        self.spares_own = len(others) < len(subscriptions)
        """Whether what the client itself published reaches it otherwise than other messages."""
        self.own: Recipient | None = Recipient(session, others) if others and self.spares_own else None
        """How that reaches it, `None` for not at all."""


class DeliveryPlan:
    """Who gets the messages of one topic."""

    __slots__ = ("by_session", "groups", "is_plain", "names", "recipients", "withheld", "written")

    def __init__(
        self,
        by_session: Mapping[MqttSession, Recipient],
        groups: list[SharedGroup],
        names: NamedTopic | None,
        withheld: int,
    ) -> None:
        """`names` are the topic's if clients may publish to it and it does not belong to the network beyond.

        `withheld` are those who are subscribed and get nothing by the rules.
        """
        self.by_session = by_session
        self.recipients = list(by_session.values())
        self.groups = groups
        self.withheld = withheld
        self.names = names
        self.written = b"" if names is None else text(names)
        """The topic as packets have it."""
        is_simple = not groups and not any(one.ids or one.spares_own for one in self.recipients)
        self.is_plain = is_simple and names is not None
        """Whether a PUBLISH of QoS 0 without properties goes to all of them as it came."""


class _Leaf:
    """The subscriptions to one filter."""

    __slots__ = ("groups", "plain")

    def __init__(self) -> None:
        self.plain: dict[MqttSession, GrantedSubscription] = {}
        self.groups: dict[str, SharedGroup] = {}


class Subscribers:
    """All subscriptions of all clients."""

    def __init__(self, names: Callable[[str], NamedTopic | None], rules: UsageRules | None = None) -> None:
        """`names` tells those of a topic to which clients may publish, and which is delivered here.

        `None` for another; the answer never changes.
        """
        self._names = names
        self._rules = rules
        self._remembers = rules is None or rules.remembers
        self._tree: FilterTree[_Leaf] = FilterTree()
        self._wholes: dict[str, DeliveryPlan] = {}
        self._plans: dict[str, DeliveryPlan] = {}
        self.count = 0

    def add(self, session: MqttSession, granted: GrantedSubscription) -> bool:
        """Add a subscription or put it in place of the same; return whether the filter had no other."""
        self._wholes.clear()
        self._plans.clear()
        leaf = self._tree.get(granted.wanted)
        is_first = leaf is None
        if leaf is None:
            leaf = _Leaf()
            self._tree.put(granted.wanted, leaf)
        if granted.share:
            group = leaf.groups.get(granted.share)
            if group is None:
                group = leaf.groups[granted.share] = SharedGroup(f"{granted.share}/{granted.wanted}")
            members = group.members
        else:
            members = leaf.plain
        self.count += session not in members
        members[session] = granted
        return is_first

    def remove(self, session: MqttSession, granted: GrantedSubscription) -> bool:
        """Take a subscription away; return whether nobody is left at its filter."""
        self._wholes.clear()
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

    def group(self, name: str) -> SharedGroup | None:
        """Return the group that shares a subscription, by `GROUP/FILTER`."""
        share, _, wanted = name.partition("/")
        leaf = self._tree.get(wanted)
        return None if leaf is None else leaf.groups.get(share)

    def is_known(self, topic: str) -> bool:
        """Tell whether a topic is known to be one that clients may publish to and that is delivered here."""
        plan = self._wholes.get(topic)
        return plan is not None and plan.names is not None

    def plan(self, topic: str) -> DeliveryPlan:
        """Return who gets the messages of a topic that have no properties."""
        plan = self._plans.get(topic)
        if plan is None:
            plan = self._let_have(self._whole(topic), MqttMessage(topic, b""))
            if self._remembers:
                _keep(self._plans, topic, plan)
        return plan

    def plan_of(self, message: MqttMessage) -> DeliveryPlan:
        """Return who gets a message."""
        if message.properties and self._rules is not None and self._rules.has_terms(message.properties):
            return self._let_have(self._whole(message.topic), message)
        return self.plan(message.topic)

    def forget(self, wanted: str | None) -> None:
        """Draw the plans of all topics that a filter matches in some spelling anew, of all for `None`."""
        plans = self._plans
        if wanted is None:
            plans.clear()
            return
        if not plans:
            return
        wanted = normal(wanted)
        begins = wanted.partition("+")[0].partition("#")[0].rstrip("/")  # most topics are told apart by that
        every = "\n" + "\n".join(plans)  # one look at them all takes a fraction of one at each
        if not every.isascii():
            near = [one for one in plans if normal(one).startswith(begins)]
        elif f"\n{begins}" in every:  # as they are written they are compared
            near = [one for one in plans if one.startswith(begins)]
        else:
            return
        for topic in [one for one in near if matches(wanted, normal(one))]:
            del plans[topic]

    def _whole(self, topic: str) -> DeliveryPlan:
        """Return the plan of all who are subscribed to a topic, whatever the rules say."""
        plan = self._wholes.get(topic)
        if plan is None:
            by_session: dict[MqttSession, list[GrantedSubscription]] = {}
            groups: list[SharedGroup] = []
            for leaf in self._tree.match(topic):
                for session, granted in leaf.plain.items():
                    by_session.setdefault(session, []).append(granted)
                groups += leaf.groups.values()
            recipients = {session: Recipient(session, found) for session, found in by_session.items()}
            plan = DeliveryPlan(recipients, groups, self._names(topic), 0)
            _keep(self._wholes, topic, plan)
        return plan

    def _let_have(self, plan: DeliveryPlan, message: MqttMessage) -> DeliveryPlan:
        """Return the plan without those subscriptions by which the rules let nobody have a message."""
        if self._rules is None:
            return plan
        may_have = self._rules.may_have
        found: dict[MqttSession, Recipient] = {}
        is_whole = True
        for session, recipient in plan.by_session.items():
            all_of = recipient.subscriptions
            allowed = [one for one in all_of if may_have(session, one, message)]
            if len(allowed) == len(all_of):
                found[session] = recipient
                continue
            is_whole = False
            if allowed:
                found[session] = Recipient(session, allowed)
        if is_whole:
            return plan
        return DeliveryPlan(found, plan.groups, plan.names, len(plan.recipients) - len(found))


def _keep(plans: dict[str, DeliveryPlan], topic: str, plan: DeliveryPlan) -> None:
    if len(plans) >= MAX_PLANS:
        plans.clear()
    plans[topic] = plan
