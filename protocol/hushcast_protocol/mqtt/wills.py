"""Wills: when the message of a client that is gone is published (section 3.1.2.5)."""

from __future__ import annotations

from collections.abc import Callable

from hushcast_protocol.mqtt.mqtt_messages import may_be_published
from hushcast_protocol.mqtt.mqtt_session import MqttSession
from hushcast_protocol.mqtt.reason_codes import Reason
from hushcast_protocol.mqtt.topics.permissions import Permissions
from hushcast_protocol.mqtt.topics.topic_names import NamedTopic
from hushcast_protocol.mqtt.wire.packets import Will


def refusal(topic: str, names: Callable[[str], NamedTopic], permissions: Permissions) -> Reason | None:
    """Return why a client may not have a will on a topic, `None` if it may; `names` tells a topic's names.

    One to a topic of the server's leads nowhere, whoever leaves it, and so is no reason to refuse a client:
    mosquitto's bridge has such a one, `$SYS/broker/connection/NAME/state`, unless it is told otherwise.
    """
    if topic.startswith("$"):
        return None
    if not may_be_published(topic):
        return Reason.TOPIC_NAME_INVALID
    return None if permissions.may_publish(names(topic)) else Reason.NOT_AUTHORIZED


def delay_of(will: Will) -> int:
    """Return the seconds that a will waits for its client to come back."""
    return will.properties.get("will_delay_interval", 0)


def due(session: MqttSession, now: float) -> float | None:
    """Return when the will of a client that was lost now is published, `None` if it has none.

    That is after its delay, or when the session ends.
    """
    if session.will is None:
        return None
    return now + min(delay_of(session.will), session.expiry)


def survives(session: MqttSession, starts_anew: bool) -> bool:
    """Tell whether the will of a connection that another takes over stays unpublished.

    It does if it has a delay and the session goes on: the client is back before the delay is over.
    """
    return session.will is not None and not starts_anew and min(delay_of(session.will), session.expiry) > 0
