"""How a client hears that a subscription of its rests, or goes on: by a message, or by a disconnect."""

from __future__ import annotations

import json

from hushcast_protocol.mqtt.mqtt_session import GrantedSubscription, MqttSession
from hushcast_protocol.mqtt.reason_codes import Reason
from hushcast_protocol.mqtt.topics.topic_filters import matches
from hushcast_protocol.mqtt.wire.packets import Publish

TOPIC = "$SYS/hush/purposes"
"""Each client that is subscribed to it is told of its own subscriptions, and of nobody else's."""


def tell(
    session: MqttSession, how: str, granted: GrantedSubscription, purpose: str | None, rests: bool
) -> None:
    """Tell a client that is here that a subscription rests from now on, or rests no more.

    By "reason" it is disconnected; when it subscribes again, it is refused with a reason.
    """
    link = session.link
    if link is None or link.is_closed:
        return
    if how == "reason":
        if rests:
            link.close(Reason.ADMINISTRATIVE_ACTION)
    else:
        said = {"filter": granted.wanted, "group": granted.share, "purpose": purpose, "paused": rests}
        answer(session, TOPIC, json.dumps(said).encode())


def answer(session: MqttSession, topic: str, payload: bytes) -> None:
    """Send a client a message on a topic of its own, if it is subscribed to that."""
    link = session.link
    if link is not None and any(matches(one.wanted, topic) for one in session.filters.values()):
        link.publish(Publish(topic, payload))
