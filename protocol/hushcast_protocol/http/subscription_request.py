"""A subscription that a request asks for: topics, since when, which of the messages, and in which form."""

from __future__ import annotations

import re
from enum import Enum
from typing import Any

import msgspec

from hushcast_protocol.http import ntfy_fields as fields
from hushcast_protocol.http.http_request import HttpRequest, Parameters, segments
from hushcast_protocol.http.ntfy_message import written
from hushcast_protocol.http.refusals import HttpRefusal
from hushcast_protocol.mqtt.kept.message_history import ALL, ID_LENGTH, LATEST, SINCE, is_message_id
from hushcast_protocol.mqtt.topics.topic_filters import is_filter, split_share
from hushcast_protocol.mqtt.wire.packets import Properties, RequestedSubscription, Subscribe

MAX_STREAM_TOPICS = 100  # topics of one stream: each is a subscription; a phone has some dozens

_DURATION = re.compile(r"(\d{1,9})(s|m|h|d)\Z")
_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}


class StreamForm(Enum):
    """How events are written, by the last part of the path."""

    JSON = "json"
    """A line of JSON each."""
    SSE = "sse"
    """Server-sent events, for `EventSource`."""
    RAW = "raw"
    """The message alone, a line each."""
    WS = "ws"
    """JSON, a message of a WebSocket each."""
    AUTH = "auth"
    """Nothing: whether it may be subscribed to."""

    @property
    def content_type(self) -> str:
        """What it is in HTTP."""
        return _CONTENT_TYPES[self]

    def written(self, event: dict[str, Any]) -> bytes:
        """Return an event."""
        is_message = event["event"] == "message"
        if self is StreamForm.RAW:
            text: str = event.get("message", "") if is_message else ""
            return re.sub(r"[\r\n]+", " ", text).encode() + b"\n"
        data: bytes = written(event)
        if self is not StreamForm.SSE:
            return data if self is StreamForm.WS else data + b"\n"
        kind: bytes = b"id: " + event["id"].encode() if is_message else b"event: " + event["event"].encode()
        return kind + b"\ndata: " + data + b"\n\n"


_CONTENT_TYPES = {
    StreamForm.JSON: "application/x-ndjson; charset=utf-8",
    StreamForm.SSE: "text/event-stream; charset=utf-8",
    StreamForm.RAW: "text/plain; charset=utf-8",
    StreamForm.WS: "",
    StreamForm.AUTH: "application/json",
}


class WantedMessages(msgspec.Struct, frozen=True):
    """Which of the messages a client wants; empty fields want all."""

    id: str = ""
    message: str = ""
    title: str = ""
    priorities: frozenset[int] = frozenset()
    tags: frozenset[str] = frozenset()

    def has(self, event: dict[str, Any]) -> bool:
        """Tell whether a message is wanted."""
        return (
            (not self.id or event["id"] == self.id)
            and (not self.message or event["message"] == self.message)
            and (not self.title or event.get("title", "") == self.title)
            and (not self.priorities or event.get("priority", 3) in self.priorities)
            and self.tags <= frozenset(event.get("tags", ()))
        )


class SubscriptionRequest(msgspec.Struct, frozen=True):
    """A stream that a client asks for."""

    topics: tuple[str, ...]
    """Names or filters."""
    form: StreamForm
    poll: bool = False
    """Whether it ends once all that is kept was given."""
    since: str = ""
    """`all`, `latest`, a Unix time or an id; empty for nothing that was."""
    purpose: str = ""
    wanted: WantedMessages = WantedMessages()

    def __repr__(self) -> str:
        """Show no topic."""
        return f"SubscriptionRequest({self.form.name})"

    @property
    def name(self) -> str:
        """The topics as events name them."""
        return ",".join(self.topics)

    def subscribe(self) -> Subscribe:
        """Return the SUBSCRIBE: at QoS 0, as a stream has nothing to acknowledge by."""
        asked = [RequestedSubscription(one, 0, retain_handling=0 if self.since else 2) for one in self.topics]
        beside = [(SINCE, self.since)] if self.since else []
        if self.purpose:
            beside.append(("ap", self.purpose))
        properties: Properties = {"user_property": beside} if beside else {}
        return Subscribe(1, asked, properties)


def read_subscription_request(
    request: HttpRequest, path: str, form: StreamForm, now: int
) -> SubscriptionRequest:
    """Return the stream of the topics in a path, separated by commas; `now` is Unix time.

    Raises `HttpRefusal`.
    """
    topics = tuple(dict.fromkeys("/".join(segments(one)) for one in path.split(",")))
    if not topics or any(not is_filter(one) or split_share(one) is not None for one in topics):
        raise HttpRefusal(40009, "invalid topic: empty, or with a + or # that is no whole level")
    if len(topics) > MAX_STREAM_TOPICS:
        raise HttpRefusal(40009, f"invalid topic: more than {MAX_STREAM_TOPICS} at once")
    parameters = request.parameters()
    poll = form is StreamForm.AUTH or parameters.flag(fields.POLL.names)
    since = _since(parameters, request.header("last-event-id"), poll, now)
    if form is StreamForm.AUTH:
        since = ""
    return SubscriptionRequest(
        topics, form, poll, since, parameters.get(fields.PURPOSE.names), _wanted(parameters)
    )


def _since(parameters: Parameters, last: str, poll: bool, now: int) -> str:
    given = parameters.get(fields.SINCE.names) or (last if is_message_id(last) else "")
    if not given:
        return ALL if poll else ""
    if given in (ALL, LATEST):
        return given
    if given == "none":
        return ""
    if (found := _DURATION.match(given)) is not None:
        return str(max(0, now - int(found[1]) * _SECONDS[found[2]]))
    if (given.isascii() and given.isdecimal() and len(given) < ID_LENGTH) or is_message_id(given):
        return given
    raise HttpRefusal(40008, f"invalid since: {fields.SINCE.means}")


def _wanted(parameters: Parameters) -> WantedMessages:
    priorities = set()
    for one in parameters.get(fields.PRIORITY.names).lower().split(","):
        if one.strip():
            number = fields.PRIORITIES.get(one.strip())
            if number is None:
                raise HttpRefusal(40007, f"invalid priority: {fields.PRIORITY.means}")
            priorities.add(number)
    return WantedMessages(
        parameters.get(fields.ID.names),
        parameters.get(fields.MESSAGE.names),
        parameters.get(fields.TITLE.names),
        frozenset(priorities),
        frozenset(one.strip() for one in parameters.get(fields.TAGS.names).split(",") if one.strip()),
    )
