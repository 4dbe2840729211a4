"""Exchanges: a request as a client of the broker, packet by packet."""

from __future__ import annotations

import json

import pytest

from hushcast_protocol.http.exchanges import (
    MAX_WAITING,
    BodyWanted,
    HttpAnswer,
    PublishExchange,
    StreamBegin,
    StreamEnd,
    StreamExchange,
    StreamPart,
)
from hushcast_protocol.http.http_request import HttpCredentials
from hushcast_protocol.http.publication_request import PublicationRequest
from hushcast_protocol.http.subscription_request import StreamForm, SubscriptionRequest
from hushcast_protocol.mqtt.reason_codes import Reason
from hushcast_protocol.mqtt.wire.packets import (
    ConnAck,
    Connect,
    Disconnect,
    Packet,
    PingReq,
    PingResp,
    PubAck,
    Publish,
    SubAck,
    Subscribe,
)

NOW = 1_000_000


def publishing(credentials: HttpCredentials | None = None) -> PublishExchange:
    return PublishExchange(PublicationRequest("a"), credentials, bytes)


def streaming(poll: bool = False) -> StreamExchange:
    return StreamExchange(SubscriptionRequest(("a",), StreamForm.JSON, poll, "all"), None, bytes)


def kinds(steps: object) -> list[type]:
    return [type(step) for step in steps]  # type: ignore[attr-defined]


def events(steps: object) -> list[str]:
    return [json.loads(step.data)["event"] for step in steps if isinstance(step, StreamPart)]  # type: ignore[attr-defined]


def test_a_publication() -> None:
    one = publishing(HttpCredentials("alice", b"secret"))
    (connect,) = one.begin()
    assert isinstance(connect, Connect)
    assert (connect.username, connect.password) == ("alice", b"secret")
    assert list(one.heard(ConnAck(properties={"maximum_packet_size": 5_000}), NOW)) == [BodyWanted(5_000)]
    (packet,) = one.body(b"hello")
    assert isinstance(packet, Publish)
    assert (packet.topic, packet.payload, packet.qos) == ("a", b"hello", 1)
    answer, left = one.heard(PubAck(1), NOW)
    assert isinstance(answer, HttpAnswer)
    assert answer.status == 200
    assert json.loads(answer.body)["message"] == "hello"
    assert left == Disconnect()
    assert one.is_over
    assert list(one.heard(PubAck(1), NOW)) == list(one.cut()) == []


@pytest.mark.parametrize(
    ("packet", "status"),
    [
        (PubAck(1, Reason.NOT_AUTHORIZED), 401),
        (PubAck(1, Reason.QUOTA_EXCEEDED), 429),
        (Disconnect(Reason.PACKET_TOO_LARGE), 413),
        (Disconnect(Reason.KEEP_ALIVE_TIMEOUT), 504),
        (None, 504),
    ],
)
def test_a_publication_that_comes_to_nothing_or_nobody_knows(packet: Packet | None, status: int) -> None:
    one = publishing()
    list(one.heard(ConnAck(), NOW))
    list(one.body(b"hello"))
    answer, _ = one.cut() if packet is None else one.heard(packet, NOW)
    assert isinstance(answer, HttpAnswer)
    assert answer.status == status


def test_before_its_body_is_there_nothing_is_published() -> None:
    one = publishing()
    list(one.heard(ConnAck(), NOW))
    answer, _ = one.heard(Disconnect(Reason.KEEP_ALIVE_TIMEOUT), NOW)
    assert isinstance(answer, HttpAnswer)
    assert answer.status == 408


def test_a_stream_gives_what_was_kept_then_what_is_fresh() -> None:
    one = streaming()
    list(one.begin())
    (subscribe,) = one.heard(ConnAck(), NOW)
    assert isinstance(subscribe, Subscribe)
    assert list(one.heard(Publish("a", b"fresh"), NOW)) == []
    assert kinds(one.heard(Publish("a", b"old", retain=True), NOW)) == [StreamBegin, StreamPart, StreamPart]
    (fresh,) = one.heard(SubAck(1, [0]), NOW)
    assert isinstance(fresh, StreamPart)
    assert json.loads(fresh.data)["message"] == "fresh"
    assert kinds(one.keep_alive()) == [PingReq]
    assert events(one.heard(PingResp(), NOW)) == ["keepalive"]
    assert kinds(one.heard(Disconnect(Reason.SERVER_SHUTTING_DOWN), NOW)) == [StreamEnd, Disconnect]


def test_a_poll_ends_behind_what_was_kept() -> None:
    one = streaming(poll=True)
    list(one.heard(ConnAck(), NOW))
    assert kinds(one.heard(Publish("a", b"old", retain=True), NOW)) == [StreamBegin, StreamPart]
    assert list(one.heard(Publish("a", b"fresh"), NOW)) == []
    assert kinds(one.heard(SubAck(1, [0]), NOW)) == [StreamEnd, Disconnect]


def test_more_than_may_wait_ends_the_stream() -> None:
    one = streaming()
    list(one.heard(ConnAck(), NOW))
    assert list(one.heard(Publish("a", bytes(MAX_WAITING - 1_000)), NOW)) == []
    assert kinds(one.heard(Publish("a", bytes(1_000)), NOW))[-1] is Disconnect
    assert one.is_over


def test_a_refused_stream_has_no_head() -> None:
    one = streaming()
    list(one.heard(ConnAck(), NOW))
    answer, _ = one.heard(SubAck(1, [Reason.TOPIC_FILTER_INVALID]), NOW)
    assert isinstance(answer, HttpAnswer)
    assert answer.status == 400
