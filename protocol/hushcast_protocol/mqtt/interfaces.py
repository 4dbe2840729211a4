"""What a broker needs from outside: what messages may be used for, and what lies beyond it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from hushcast_protocol.base.budget import Budget
from hushcast_protocol.mqtt.reason_codes import Reason
from hushcast_protocol.mqtt.topics.permissions import AddedProperty, Permissions
from hushcast_protocol.mqtt.topics.topic_names import NamedTopic, alone
from hushcast_protocol.mqtt.wire.packets import Properties, Publish

if TYPE_CHECKING:
    from hushcast_protocol.mqtt.mqtt_messages import MqttMessage
    from hushcast_protocol.mqtt.mqtt_session import GrantedSubscription, MqttSession
    from hushcast_protocol.mqtt.network_publication import NetworkPublication


class ResolvedFilter(NamedTuple):
    """What a client means by a filter of its SUBSCRIBE."""

    wanted: str
    """The filter, `$share/GROUP/` included."""
    purpose: str = ""
    """What it wants the messages for, kept with the subscription; empty where it says nothing."""


class UsageRules(Protocol):
    """What messages may be used for: asked for each subscription that a message would reach.

    A broker without rules gives a message to all who may receive it. Answers change: one is asked for when a
    message is handed out, not when it is queued. Where an answer cannot be found it is no: `may_have` never
    raises. Rules leave topics of the broker's own, under `$`, alone.
    """

    remembers: bool
    """Whether answers about a topic, with no properties, hold until `MqttBroker.rules_changed`."""

    def is_command(self, topic: str) -> bool:
        """Tell whether what is published to a topic is for the rules: it is never delivered or retained.

        The answer never changes.
        """

    def meant(
        self, permissions: Permissions, client_id: str, wanted: str, given: Properties
    ) -> ResolvedFilter | int:
        """Return what a filter of a SUBSCRIBE with these properties means, or that it means nothing."""

    def budget(self) -> Budget:
        """Return what deciding about all filters of one SUBSCRIBE may take."""

    def refuses(self, permissions: Permissions, client_id: str, meant: ResolvedFilter, budget: Budget) -> int:
        """Return the reason that refuses a subscription, 0 for none.

        Asked last: a client that may not subscribe to a filter learns nothing of what others say of it.
        """

    def filter_of(self, wanted: str) -> str:
        """Return the filter that `meant` finds, for UNSUBSCRIBE."""

    def published(self, permissions: Permissions, client_id: str, topic: str, packet: Publish) -> int | None:
        """Hear a PUBLISH with properties, or to a topic that is a command.

        Return its reason if it was a command; `None` if it is a message, which may go on.
        """

    def owned(self, user: str, topic: str, properties: Properties) -> Properties:
        """Return the properties of a user's message that goes beyond, with what its rules add to them."""

    def added(self, permissions: Permissions) -> AddedProperty | None:
        """Return what a connected client has asked to be added to its messages, `None` for nothing.

        Asked after its commands.
        """

    def has_terms(self, properties: Properties) -> bool:
        """Tell whether a message with these properties is decided apart from its topic's others."""

    def may_have(
        self, session: MqttSession, granted: GrantedSubscription | None, message: MqttMessage
    ) -> bool:
        """Tell whether a message may be handed out now by a subscription; `None`: by one that is no more."""

    def subscribed(self, session: MqttSession, granted: GrantedSubscription) -> None:
        """Hear that a subscription counts, a new one or one from disk."""

    def unsubscribed(self, session: MqttSession, granted: GrantedSubscription) -> None:
        """Hear that it counts no longer."""


class OuterNetwork(Protocol):
    """The network beyond this broker, to which some topics belong.

    What is published to those is handed over, and given to this broker's own clients once that is answered;
    at once where these have the topic without the network, too.
    `MqttBroker.answered` brings the answers, `MqttBroker.arrived` what others published.
    """

    def takes(self, topic: str) -> bool:
        """Tell whether a topic belongs to the network; the answer never changes."""

    def is_local_too(self, topic: str) -> bool:
        """Tell whether a topic that does is one of this broker's clients, whatever becomes of it beyond."""

    def topics(self, topic: str) -> tuple[str, ...]:
        """Return all topics here of what is published to one that belongs to the network."""

    def names(self, topic: str) -> NamedTopic:
        """Return a topic, of the network or not, with all names of it."""

    def names_of_filter(self, wanted: str) -> NamedTopic:
        """Return a filter, without `$share/GROUP/`, with all filters for the same messages."""

    def publish(self, publication: NetworkPublication) -> int | None:
        """Take over a message, or the will of a client that is gone; return why it is refused at once.

        Where it is not, `MqttBroker.answered` hears `Reason.SUCCESS` once it is durable, or the reason then.
        """

    def grants(self, user: str, wanted: str, qos: int) -> int:
        """Return the QoS granted to a user's filter, or the reason code of the refusal."""

    def wanted(self, user: str, wanted: str) -> None:
        """Hear that a user subscribed to a filter to which nobody was subscribed."""

    def unwanted(self, wanted: str) -> None:
        """Hear that nobody is subscribed to a filter any more."""


class NoNetwork:
    """No network: all topics are this broker's, and what would be handed over is refused."""

    def takes(self, topic: str) -> bool:
        """No."""
        return False

    def is_local_too(self, topic: str) -> bool:
        """No."""
        return False

    def topics(self, topic: str) -> tuple[str, ...]:
        """There are none."""
        return ()

    def names(self, topic: str) -> NamedTopic:
        """There is one."""
        return alone(topic)

    def names_of_filter(self, wanted: str) -> NamedTopic:
        """There is one."""
        return alone(wanted)

    def publish(self, publication: NetworkPublication) -> int | None:
        """Refuse."""
        return Reason.TOPIC_NAME_INVALID

    def grants(self, user: str, wanted: str, qos: int) -> int:
        """Grant what was asked for, or refuse what would be read from the network."""
        return Reason.TOPIC_FILTER_INVALID if self.takes(wanted) else qos

    def wanted(self, user: str, wanted: str) -> None:
        """Nobody needs to know."""

    def unwanted(self, wanted: str) -> None:
        """Nobody needs to know."""


def has_way(beyond: OuterNetwork, topic: str) -> bool:
    """Tell whether a topic is this broker's own, or travels as the network is configured now."""
    return not beyond.takes(topic) or bool(beyond.topics(topic))
