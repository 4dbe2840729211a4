"""A message in ntfy's words: from a PUBLISH to its JSON, and the properties that carry its fields.

Fields of a message travel as user properties, so that MQTT clients read and write them, too. The one that
publishes over HTTP gives a message its `id`; the gateway that keeps it gives it its `time`.
"""

from __future__ import annotations

import base64
from hashlib import blake2b
from typing import Any

import msgspec

from hushcast_protocol.base.crypto.secrets import Randomness
from hushcast_protocol.http.ntfy_actions import read_actions
from hushcast_protocol.http.ntfy_fields import PRIORITIES
from hushcast_protocol.mqtt.kept.message_history import ID, ID_LENGTH, TIME, is_message_id, message_id
from hushcast_protocol.mqtt.wire.packets import Publish

_AS_THEY_ARE = ("title", "click", "icon")
_encode = msgspec.json.Encoder().encode


def new_id(randomness: Randomness) -> str:
    """Draw an id."""
    return message_id(randomness(ID_LENGTH))


def id_of(topic: str, payload: bytes) -> str:
    """Return the id of a retained message that has none: the same whenever it is asked for."""
    told = blake2b(payload, key=b"http-retained-id", digest_size=ID_LENGTH)
    told.update(topic.encode())
    return message_id(told.digest())


def message_event(packet: Publish, now: int, randomness: Randomness) -> dict[str, Any]:
    """Return a message as ntfy's JSON has it; `now` is Unix time in seconds.

    What strangers wrote into its properties is left out where it is not what ntfy's clients expect.
    """
    said: dict[str, str] = {}
    for name, value in packet.properties.get("user_property", ()):
        said.setdefault(name, value)
    given = said.get(ID, "")
    if not is_message_id(given):
        given = id_of(packet.topic, packet.payload) if packet.retain else new_id(randomness)
    time = said.get(TIME, "")
    event: dict[str, Any] = {
        "id": given,
        "time": int(time) if time.isdecimal() and len(time) < 12 else now,
        "event": "message",
        "topic": packet.topic,
    }
    if (seconds := packet.properties.get("message_expiry_interval")) is not None:
        event["expires"] = now + seconds
    try:
        event["message"] = packet.payload.decode()
    except UnicodeDecodeError:
        event["message"] = base64.b64encode(packet.payload).decode()
        event["encoding"] = "base64"
    event |= {name: said[name] for name in _AS_THEY_ARE if name in said}
    if priority := PRIORITIES.get(said.get("priority", "")):
        event["priority"] = priority
    if tags := [one for one in said.get("tags", "").split(",") if one]:
        event["tags"] = tags
    if attach := said.get("attach"):
        event["attachment"] = {"name": said.get("filename") or attach.rsplit("/", 1)[-1], "url": attach}
    if "actions" in said and (actions := read_actions(said["actions"])) is not None:
        event["actions"] = actions
    if packet.properties.get("content_type") == "text/markdown":
        event["content_type"] = "text/markdown"
    return event


def written(event: dict[str, Any]) -> bytes:
    """Return an event as a line of JSON, without its end."""
    return _encode(event)
