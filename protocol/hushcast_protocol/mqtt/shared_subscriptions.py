"""A shared subscription: each message goes to one member of the group (section 4.8.2)."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from hushcast_protocol.mqtt.interfaces import UsageRules
from hushcast_protocol.mqtt.limits import MAX_LOOKED_AT
from hushcast_protocol.mqtt.mqtt_messages import MqttMessage
from hushcast_protocol.mqtt.topics.topic_names import NamedTopic

if TYPE_CHECKING:
    from hushcast_protocol.mqtt.mqtt_session import GrantedSubscription, MqttSession


class SharedGroup:
    """Members in turn. Who is connected goes before who is away, and nobody gets what it may not have."""

    def __init__(self, name: str) -> None:
        """`name` is `GROUP/FILTER`."""
        self.name = name
        self.members: dict[MqttSession, GrantedSubscription] = {}

    def choose(
        self,
        message: MqttMessage,
        topic: NamedTopic,
        rules: UsageRules | None = None,
        most: int = MAX_LOOKED_AT,
    ) -> tuple[MqttSession, GrantedSubscription] | None:
        """Return who gets a message and by which subscription; `None` if nobody can. `topic` is its topic.

        Of a large group only `most` whose turn is next are looked at: its size is not to cost others time.
        Members that are away get it only if it can wait for them: of QoS 1 or 2, in a session that stays.
        """
        chosen: tuple[MqttSession, GrantedSubscription] | None = None
        looked_at = list(islice(self.members.items(), most))
        for session, granted in looked_at:
            link = session.link
            if not session.permissions.may_receive(topic):
                continue
            if rules is not None and not rules.may_have(session, granted, message):
                continue
            if link is not None and link.has_room():
                chosen = session, granted
                break
            if chosen is None and min(message.qos, granted.qos):
                chosen = session, granted
        else:
            # None of them is here: others may be, so these come behind them the next time.
            if len(self.members) > most:
                for session, granted in looked_at:
                    del self.members[session]
                    self.members[session] = granted
        if chosen is not None:
            del self.members[chosen[0]]
            self.members[chosen[0]] = chosen[1]
        return chosen
