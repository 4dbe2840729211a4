"""A publication that a request asks for: its topic and fields, and the PUBLISH that they become."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import msgspec

from hushcast_protocol.base.crypto.secrets import Randomness
from hushcast_protocol.http import ntfy_fields as fields
from hushcast_protocol.http.http_request import HttpRequest
from hushcast_protocol.http.ntfy_actions import MAX_ACTIONS, actions_as_json
from hushcast_protocol.http.ntfy_message import message_event, new_id, written
from hushcast_protocol.http.refusals import TOO_MUCH, HttpRefusal
from hushcast_protocol.mqtt.kept.message_history import ID, NO_HISTORY
from hushcast_protocol.mqtt.topics.topic_filters import is_name
from hushcast_protocol.mqtt.wire.packets import Properties, Publish
from hushcast_protocol.mqtt.wire.properties import MAX_PROPERTIES

EMPTY = b"triggered"  # the message of a request without one, as ntfy has it

_NO = ("no", "0", "false")
_NOT_JSON = partial(HttpRefusal, 40017, "invalid request: the body is not a message as JSON, with a topic")


class _Posted(msgspec.Struct, frozen=True):
    """What `POST /` has in its body; what it does not know is left alone."""

    topic: Annotated[str, msgspec.Meta(min_length=1)]
    message: str = ""
    title: str = ""
    priority: int | str = 0
    tags: msgspec.Raw = msgspec.Raw(b"[]")
    click: str = ""
    icon: str = ""
    attach: str = ""
    filename: str = ""
    actions: msgspec.Raw = msgspec.Raw(b"[]")
    markdown: bool = False
    delay: str = ""
    email: str = ""
    call: str = ""
    cache: str = ""
    retain: bool = False


class PublicationRequest(msgspec.Struct, frozen=True):
    """A publication before its body is there; an empty topic stands in the body, as JSON."""

    topic: str
    said: dict[str, str] = {}
    """By name of `ntfy_fields.TEXTS`, as user properties have it."""
    message: bytes = b""
    """The message, where it is not the body."""
    is_markdown: bool = False
    is_kept: bool = True
    retain: bool = False

    def __repr__(self) -> str:
        """Show nothing of it."""
        return "PublicationRequest(...)"

    def with_body(self, body: bytes, randomness: Randomness) -> Publish:
        """Return the PUBLISH, of QoS 1 and packet identifier 1; raises `HttpRefusal`.

        To a topic of the network where a payload alone can travel, a message alone goes without an id:
        programs that know nothing of MQTT read it there.
        """
        if not self.topic:
            return _posted(self, body).with_body(b"", randomness)
        payload = self.message or body or EMPTY
        beside = [*self.said.items()]
        if not self.is_kept:
            beside.append(NO_HISTORY)
        properties: Properties = {}
        if self.is_markdown:
            properties["content_type"] = "text/markdown"
        if beside or properties or self.retain or not _goes_alone(self.topic):
            properties["user_property"] = [(ID, new_id(randomness)), *beside]
        return Publish(self.topic, payload, 1, self.retain, packet_id=1, properties=properties)

    def receipt(self, packet: Publish, now: int, randomness: Randomness) -> bytes:
        """Return what the publisher hears once its message is in safety: the message, as readers get it."""
        return written(message_event(packet, now, randomness)) + b"\n"


def read_publication(request: HttpRequest, topic: str) -> PublicationRequest:
    """Return what a request publishes to a topic, empty where the body has it; raises `HttpRefusal`."""
    parameters = request.parameters()
    if request.header("content-encoding") not in ("", "identity"):
        raise HttpRefusal(41501, "a body is taken as it is: send it without Content-Encoding")
    for one, refusal in fields.NOT_OFFERED.items():
        if parameters.get(one.names):
            raise HttpRefusal(*refusal)
    if topic:
        _check_topic(topic)
    said = {one.name: parameters.get(one.names) for one in fields.TEXTS}
    if said["filename"] and not said["attach"]:
        raise HttpRefusal(40014, "attachments are not taken: put the file elsewhere, and give its address")
    kind = request.header("content-type").partition(";")[0].strip().lower()
    return PublicationRequest(
        topic,
        _checked(said),
        parameters.get(fields.MESSAGE.names).replace("\\n", "\n").encode(),
        is_markdown=parameters.flag(fields.MARKDOWN.names) or kind == "text/markdown",
        is_kept=parameters.get(fields.CACHE.names).lower() not in _NO,
        retain=parameters.flag(fields.RETAIN.names),
    )


def _posted(beside: PublicationRequest, body: bytes) -> PublicationRequest:
    """Read a message as JSON; what it does not say is as headers and query have it."""
    try:
        one = msgspec.json.decode(body, type=_Posted)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        raise _NOT_JSON() from None
    for name, given in (("delay", one.delay), ("email", one.email), ("call", one.call)):
        if given:
            raise HttpRefusal(*next(why for field, why in fields.NOT_OFFERED.items() if field.name == name))
    said = {
        "title": one.title,
        "priority": str(one.priority or ""),
        "tags": ",".join(_list_of(one.tags)),
        "click": one.click,
        "icon": one.icon,
        "attach": one.attach,
        "filename": one.filename,
        "actions": _few(one.actions).decode(),
    }
    _check_topic(one.topic)
    return PublicationRequest(
        one.topic,
        beside.said | _checked(said),
        one.message.encode() or beside.message or EMPTY,
        is_markdown=one.markdown or beside.is_markdown,
        is_kept=beside.is_kept and one.cache.lower() not in _NO,
        retain=one.retain or beside.retain,
    )


def _list_of(raw: msgspec.Raw) -> list[str]:
    try:
        return msgspec.json.decode(_few(raw) or b"[]", type=list[str])
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        raise _NOT_JSON() from None


def _few(raw: msgspec.Raw) -> bytes:
    """Return a part of a body that is to be a property; it is looked at no sooner than it is short enough."""
    if len(data := bytes(raw)) > MAX_PROPERTIES:
        raise TOO_MUCH()
    return b"" if data in (b"[]", b"null") else data


def _check_topic(topic: str) -> None:
    if not is_name(topic):
        raise HttpRefusal(40009, "invalid topic: empty, with + or #, or with control characters")


def _checked(said: dict[str, str]) -> dict[str, str]:
    """Return fields as properties have them, without those that are empty; raises `HttpRefusal`."""
    if said["priority"]:
        number = fields.PRIORITIES.get(said["priority"].lower())
        if number is None:
            raise HttpRefusal(40007, f"invalid priority: {fields.PRIORITY.means}")
        said["priority"] = str(number)
    said["tags"] = ",".join(one.strip() for one in said["tags"].split(",") if one.strip())
    if said["actions"]:
        actions = actions_as_json(said["actions"])
        if actions is None:
            raise HttpRefusal(40018, f"invalid actions: {MAX_ACTIONS} at most, with `action` and `label`")
        said["actions"] = actions
    for name, value in said.items():
        if "\x00" in value or (name != "title" and name != "actions" and not value.isprintable()):
            raise HttpRefusal(40000, f"invalid {name}: it has characters that cannot be shown")
    return {name: value for name, value in said.items() if value}


def _goes_alone(topic: str) -> bool:
    """Tell whether a payload alone may be what programs read at a topic: `hush/ALIAS`, `hush/open/NAME`."""
    first, _, rest = topic.partition("/")
    return first == "hush" and (rest.startswith("open/") or "/" not in rest)
