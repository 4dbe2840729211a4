"""Exchanges: one request as a client of the broker, from its CONNECT to what is answered.

No I/O: packets of the broker in; packets to it, and what goes to the HTTP client, out. `Server` serves an
exchange as any client's stream: what a request may do is decided where it is decided for MQTT.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import msgspec

from hushcast_protocol.base.crypto.secrets import Randomness
from hushcast_protocol.http.http_request import HttpCredentials
from hushcast_protocol.http.ntfy_message import message_event, new_id
from hushcast_protocol.http.publication_request import PublicationRequest
from hushcast_protocol.http.refusals import TOO_MUCH, HttpRefusal, refusal_of
from hushcast_protocol.http.subscription_request import StreamForm, SubscriptionRequest
from hushcast_protocol.http.unified_push import MatrixNotification
from hushcast_protocol.mqtt.limits import LARGEST_PACKET, MESSAGE_OVERHEAD
from hushcast_protocol.mqtt.reason_codes import Reason
from hushcast_protocol.mqtt.wire.codec import encode
from hushcast_protocol.mqtt.wire.packets import (
    V5,
    ConnAck,
    Connect,
    Disconnect,
    Packet,
    PingReq,
    PingResp,
    PubAck,
    Publish,
    SubAck,
)
from hushcast_protocol.mqtt.wire.properties import MAX_PROPERTIES, write_properties

MAX_WAITING = (
    1024 * 1024
)  # bytes of fresh messages that wait for what was kept to be given; then the stream ends

_FAILURE = 0x80
_NO_ANSWER = {Reason.KEEP_ALIVE_TIMEOUT, Reason.SERVER_BUSY, Reason.SERVER_SHUTTING_DOWN}
_NOT_KNOWN = partial(HttpRefusal, 50401, "not acknowledged in time: it may be delivered all the same")
_UNSAID = partial(HttpRefusal, 40101, "unauthorized: give a user that may do this")


class HttpAnswer(msgspec.Struct, frozen=True):
    """A whole answer, which ends the exchange."""

    status: int
    body: bytes
    content_type: str = "application/json"


class StreamBegin(msgspec.Struct, frozen=True):
    """The head of a stream."""

    content_type: str


class StreamPart(msgspec.Struct, frozen=True):
    """Bytes of a stream: one event."""

    data: bytes


class StreamEnd(msgspec.Struct, frozen=True):
    """The end of a stream, and of the exchange."""


class BodyWanted(msgspec.Struct, frozen=True):
    """The body is to be read now, of so many bytes at most, and given to `PublishExchange.body`."""

    most: int


HttpStep = Packet | HttpAnswer | StreamBegin | StreamPart | StreamEnd | BodyWanted


def connect_of(credentials: HttpCredentials | None) -> Connect:
    """Return the CONNECT of a request's client, whose identifier the broker draws."""
    if credentials is None:
        return Connect(V5, "")
    return Connect(V5, "", username=credentials.name, password=credentials.password)


def answer_of(refusal: HttpRefusal) -> HttpAnswer:
    """Return a refusal as an answer."""
    return HttpAnswer(refusal.status, refusal.body)


class _Exchange:
    def __init__(self, credentials: HttpCredentials | None, randomness: Randomness) -> None:
        self._randomness = randomness
        self._connect = connect_of(credentials)
        self.is_over = False
        """Whether all is answered; the client leaves the broker."""

    def begin(self) -> Iterator[HttpStep]:
        """Give what comes first."""
        yield self._connect

    def _refused(self, reason: int) -> Iterator[HttpStep]:
        """Answer what the broker refuses; who has said nothing of itself is asked who it is."""
        is_nobody = self._connect.username is None and reason == Reason.NOT_AUTHORIZED
        yield from self._end(answer_of(_UNSAID() if is_nobody else refusal_of(reason)))

    def _end(self, last: HttpAnswer | StreamEnd) -> Iterator[HttpStep]:
        self.is_over = True
        yield last
        yield Disconnect()


class PublishExchange(_Exchange):
    """A publication, until it is acknowledged: in safety, as for MQTT at QoS 1."""

    def __init__(
        self,
        request: PublicationRequest | MatrixNotification,
        credentials: HttpCredentials | None,
        randomness: Randomness,
    ) -> None:
        super().__init__(credentials, randomness)
        self._request = request
        self._packet: Publish | None = None
        self._most = LARGEST_PACKET

    def heard(self, packet: Packet, now: int) -> Iterator[HttpStep]:
        """Take a packet of the broker; `now` is Unix time."""
        if self.is_over:
            return
        if isinstance(packet, ConnAck):
            if packet.reason:
                refused = packet.reason
                if refused == Reason.NOT_AUTHORIZED and self._connect.username is not None:
                    refused = Reason.BAD_USER_NAME_OR_PASSWORD
                yield from self._refused(refused)
                return
            self._most = packet.properties.get("maximum_packet_size", LARGEST_PACKET)
            yield BodyWanted(self._most)
        elif isinstance(packet, PubAck) and self._packet is not None:
            if packet.reason >= _FAILURE:
                yield from self._refused(packet.reason)
            else:
                yield from self._end(
                    HttpAnswer(200, self._request.receipt(self._packet, now, self._randomness))
                )
        elif isinstance(packet, Disconnect):
            yield from self._unanswered(packet.reason)

    def body(self, data: bytes) -> Iterator[HttpStep]:
        """Take the body."""
        try:
            packet = self._request.with_body(data, self._randomness)
            if len(encode(packet, V5)) > self._most:
                raise refusal_of(Reason.PACKET_TOO_LARGE)
            if len(write_properties(packet.properties)) > MAX_PROPERTIES:
                raise TOO_MUCH()
        except HttpRefusal as refusal:
            yield from self._end(answer_of(refusal))
        except ValueError:  # a field that no packet has room for
            yield from self._end(answer_of(refusal_of(Reason.IMPLEMENTATION_SPECIFIC_ERROR)))
        else:
            self._packet = packet
            yield packet

    def refused(self, refusal: HttpRefusal) -> Iterator[HttpStep]:
        """Answer what is wrong with a body that cannot be read."""
        yield from self._end(answer_of(refusal))

    def cut(self) -> Iterator[HttpStep]:
        """Answer when the broker's side has ended without a word."""
        if not self.is_over:
            yield from self._unanswered(Reason.SERVER_BUSY)

    def _unanswered(self, reason: int) -> Iterator[HttpStep]:
        if self._packet is not None and reason in _NO_ANSWER:
            yield from self._end(answer_of(_NOT_KNOWN()))
        else:
            yield from self._refused(reason)


class StreamExchange(_Exchange):
    """A subscription, until its client leaves, or has all that was kept."""

    def __init__(
        self, request: SubscriptionRequest, credentials: HttpCredentials | None, randomness: Randomness
    ) -> None:
        super().__init__(credentials, randomness)
        self._request = request
        self._has_begun = False
        self._is_granted = False
        self._waiting: list[Publish] = []
        self._waiting_bytes = 0

    def heard(self, packet: Packet, now: int) -> Iterator[HttpStep]:
        """Take a packet of the broker; `now` is Unix time.

        What is kept comes before the SUBACK, and is marked as retained; what is fresh waits behind it.
        """
        if self.is_over:
            return
        if isinstance(packet, ConnAck):
            if packet.reason:
                yield from self._refused(packet.reason)
            else:
                yield self._request.subscribe()
        elif isinstance(packet, SubAck):
            yield from self._granted(packet, now)
        elif isinstance(packet, Publish):
            yield from self._message(packet, now)
        elif isinstance(packet, PingResp) and self._is_granted:
            yield from self._event("keepalive", now)
        elif isinstance(packet, Disconnect):
            if self._has_begun:
                yield from self._end(StreamEnd())
            else:
                yield from self._refused(packet.reason)

    def keep_alive(self) -> Iterator[HttpStep]:
        """Ask the broker for a sign of life, which the client gets, too."""
        if not self.is_over:
            yield PingReq()

    def cut(self) -> Iterator[HttpStep]:
        """Answer when the broker's side has ended without a word."""
        if self.is_over:
            return
        if self._has_begun:
            yield from self._end(StreamEnd())
        else:
            yield from self._refused(Reason.SERVER_BUSY)

    def _granted(self, packet: SubAck, now: int) -> Iterator[HttpStep]:
        if (reason := max(packet.reasons)) >= _FAILURE:
            yield from self._refused(reason)
            return
        if self._request.form is StreamForm.AUTH:
            yield from self._end(HttpAnswer(200, b'{"success":true}\n'))
            return
        yield from self._begun(now)
        self._is_granted = True
        if self._request.poll:
            yield from self._end(StreamEnd())
            return
        for one in self._waiting:
            yield from self._given(one, now)
        self._waiting = []

    def _message(self, packet: Publish, now: int) -> Iterator[HttpStep]:
        if self._is_granted or packet.retain:
            yield from self._begun(now)
            yield from self._given(packet, now)
        elif not self._request.poll:
            self._waiting.append(packet)
            self._waiting_bytes += len(encode(packet, V5)) + MESSAGE_OVERHEAD
            if self._waiting_bytes > MAX_WAITING:
                yield from self._end(StreamEnd())

    def _begun(self, now: int) -> Iterator[HttpStep]:
        if not self._has_begun:
            self._has_begun = True
            yield StreamBegin(self._request.form.content_type)
            if not self._request.poll:
                yield from self._event("open", now)

    def _given(self, packet: Publish, now: int) -> Iterator[HttpStep]:
        event = message_event(packet, now, self._randomness)
        if self._request.wanted.has(event):
            yield StreamPart(self._request.form.written(event))

    def _event(self, kind: str, now: int) -> Iterator[HttpStep]:
        event: dict[str, Any] = {"id": new_id(self._randomness), "time": now, "event": kind}
        yield StreamPart(self._request.form.written(event | {"topic": self._request.name}))


HttpExchange = PublishExchange | StreamExchange
