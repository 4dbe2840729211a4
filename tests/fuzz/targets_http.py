"""Targets: requests over HTTP as strangers send them, and messages as strangers published them."""

from __future__ import annotations

from fuzzing import Target

from hushcast_protocol.http.exchanges import connect_of
from hushcast_protocol.http.http_request import HttpRequest
from hushcast_protocol.http.ntfy_message import message_event, written
from hushcast_protocol.http.publication_request import PublicationRequest
from hushcast_protocol.http.refusals import HttpRefusal
from hushcast_protocol.http.routes import route
from hushcast_protocol.http.subscription_request import StreamForm, SubscriptionRequest
from hushcast_protocol.http.unified_push import MatrixNotification
from hushcast_protocol.mqtt.reason_codes import PacketError
from hushcast_protocol.mqtt.wire.codec import Decoder, encode
from hushcast_protocol.mqtt.wire.packets import V5, Packet, Publish

EXAMPLES = [
    b"POST /a/b?title=x&tags=a,b\nx-priority: high\nactions: view, Open, https://e.org, clear=true\n\nhello",
    b'POST /\ntitle: =?UTF-8?B?w7w=?=\n\n{"topic": "a", "message": "m", "priority": 5, "tags": ["t"]}',
    b"GET /a,b/%23/sse?since=10m&poll=1&p=high,low\nauthorization: Basic YTpi\n\n",
    b"GET /a/send?m=x&auth=QmFzaWMgWVRwaQ\n\n",
    b"PUT /upAbCdEfGhIjKl?up=1\ncontent-type: text/markdown\n\n\xff\x00",
    b'POST /_matrix/push/v1/notify\nhost: h\n\n{"notification": {"devices": [{"pushkey": "http://h/upAbCdEfGhIjKl"}]}}',
]


def _request(data: bytes) -> object:
    """A request: it means something or is refused, and what it means is packets that a broker reads."""
    head, _, body = data.partition(b"\n\n")
    first, *lines = head.split(b"\n")
    method, _, target = first.decode("latin-1").partition(" ")
    headers = [line.partition(b": ") for line in lines]
    request = HttpRequest(
        method, target, tuple((name.decode("latin-1").lower(), value) for name, _, value in headers)
    )
    found = route(request, 1_000_000, b"")
    _read(connect_of(request.credentials()))
    if isinstance(found, SubscriptionRequest):
        return _read(found.subscribe())
    if isinstance(found, PublicationRequest | MatrixNotification):
        packet = found.with_body(body, bytes)
        _message(packet)
        return _read(packet)
    return found


def _read(packet: Packet) -> Packet | None:
    """Have a broker's decoder read a packet; what has no room in one, or breaks the standard, is refused."""
    decoder = Decoder(1_000_000)
    decoder.version = V5 if packet.__class__.__name__ != "Connect" else 0
    try:
        found = decoder.feed(encode(packet, V5))
    except (PacketError, ValueError):
        return None
    return found[0] if found else None


def _message(packet: Publish) -> None:
    event = message_event(packet, 1_000_000, bytes)
    assert len(event["id"]) == 12
    written(event)
    for form in StreamForm:
        form.written(event)


TARGETS = [Target("http-request", _request, lambda: EXAMPLES, (HttpRefusal,), weight=10)]
