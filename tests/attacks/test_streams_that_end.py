"""A user of a gateway publishes what ends the streams of all who read it over HTTP, and of who asks for it.

Buttons that are as deep as can just be read cannot be written within an event, and half a character cannot
be written at all. And who gives a message the id of another's has readers go on behind it, and miss some.
"""

from __future__ import annotations

import gc

import pytest
from http_world import http_gateway

from hushcast_gateway.sections.listen_section import ListenSection
from hushcast_protocol.http import exchanges
from hushcast_protocol.http.http_request import decoded_words
from hushcast_protocol.http.ntfy_actions import read_actions
from hushcast_protocol.http.subscription_request import StreamForm, SubscriptionRequest
from hushcast_protocol.mqtt.kept.ledger import Ledger
from hushcast_protocol.mqtt.kept.message_history import KeptMessage, MessageHistory
from hushcast_protocol.mqtt.kept.session_archive import SessionArchive
from hushcast_protocol.mqtt.limits import MqttLimits
from hushcast_protocol.mqtt.mqtt_messages import MqttMessage
from hushcast_protocol.mqtt.mqtt_settings import MqttSettings
from hushcast_protocol.mqtt.wire.packets import ConnAck, Publish

HALF = "=?utf-7?q?+2AA-?="  # half of a character, which UTF-8 has no bytes for


async def test_half_a_character_ends_nobody() -> None:
    async with http_gateway() as gateway:
        for asked in (
            ("POST", "/x/a", {"message": HALF}),
            ("POST", "/x/a", {"title": HALF}),
            ("POST", "/a/b", {"x-message": HALF}),
            ("GET", "/x/a/json?poll=1", {"purpose": HALF}),
            ("GET", "/x/a/json?poll=1", {"since": HALF}),
            ("GET", "/x/a/json?poll=1", {"tags": HALF, "title": HALF}),
        ):
            method, target, headers = asked
            answer = await gateway.ask(method, target, **headers)
            assert answer.status < 500
        assert (await gateway.ask("POST", "/x/a", b"still here")).status == 200
    assert decoded_words(HALF) == HALF


async def test_buttons_as_deep_as_can_be_read_end_no_stream() -> None:
    async with http_gateway() as gateway:
        stream = await gateway.dial()
        await stream.stream_of("/x/a/json")
        assert (await stream.message())["event"] == "open"
        client = await gateway.mqtt()
        for depth in range(800, 1000):
            actions = '[{"action":"a","label":"l","x":' + '{"a":' * depth + "1" + "}" * (depth + 1) + "]"
            properties = {"user_property": [("actions", actions)]}
            await client.send(Publish("x/a", b"%d" % depth, properties=properties))  # type: ignore[arg-type]
            assert (await stream.message())["message"] == str(depth)
        actions = read_actions('[{"action":"view","label":"l","extras":{"a":"b"},"clear":true}]')
        assert actions == [{"action": "view", "label": "l", "extras": {"a": "b"}, "clear": True}]


async def test_another_s_id_hides_nothing_from_who_goes_on_by_it() -> None:
    async with http_gateway() as gateway:
        caller = await gateway.dial()
        last = (await caller.ask("POST", "/kept/a", b"seen")).json["id"]
        missed = (await caller.ask("POST", "/kept/a", b"missed")).json["id"]
        client = await gateway.mqtt()
        properties = {"user_property": [("id", last)]}
        await client.send(Publish("kept/b", b"hides", 1, packet_id=1, properties=properties))  # type: ignore[arg-type]
        await client.next()
        found = (await caller.ask("GET", f"/kept/a/json?poll=1&since={last}")).events
        assert [one["id"] for one in found] == [missed]


@pytest.mark.parametrize("count", [3_000])
async def test_what_waits_for_what_was_kept_counts_with_all_that_is_said_of_it(count: int) -> None:
    """Else fresh messages without a payload, and all the properties that there is room for, fill memory."""
    request = SubscriptionRequest(("x/#",), StreamForm.JSON, since="all")
    exchange = exchanges.StreamExchange(request, None, lambda size: bytes(size))
    list(exchange.begin())
    list(exchange.heard(ConnAck(session_present=False, reason=0, properties={}), 0))
    packet = Publish("x", b"", properties={"user_property": [("a", "b" * 8_000)]})
    for _ in range(count):
        list(exchange.heard(packet, 0))
    assert exchange.is_over
    assert len(exchange._waiting) * 8_000 <= 2 * exchanges.MAX_WAITING


@pytest.mark.parametrize("since", ["all", "latest"])
def test_who_takes_what_was_kept_slowly_holds_nothing_that_gave_way(since: str) -> None:
    """Hundreds of such readers, each begun when all was new, would hold the history so many times."""
    settings = MqttSettings(
        history=("#",), history_seconds=3_600, limits=MqttLimits(history=100, history_bytes=100_000_000)
    )
    history = MessageHistory(SessionArchive(Ledger()), lambda size: bytes(size), settings)
    readers = []
    for generation in range(20):
        for number in range(100):
            message = MqttMessage(f"t/{number}", bytes(10_000))
            history.taken(message, None, 1_000.0 + generation)
        reader = history.since("#", since)
        while next(reader) is None:
            pass
        readers.append(reader)
    del message
    gc.collect()
    alive = sum(isinstance(one, KeptMessage) for one in gc.get_objects())
    assert alive <= len(history) + 2 * len(readers)


async def test_who_pushes_without_a_user_retains_nothing() -> None:
    """Names need not be those of a phone: a stranger makes up as many as there is room for."""
    place = ListenSection(kind="http", port=8080, push_user="phone")
    async with http_gateway(place) as gateway:
        for number in range(20):
            answer = await gateway.ask("POST", f"/UP{number:012}", b"x", retain="1")
            assert answer.status == 401
        assert (await gateway.ask("POST", "/UP000000000000", b"x")).status == 200
        assert gateway.gateway.state.broker.retained_at("UP000000000001") is None
