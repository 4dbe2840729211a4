"""The server on a byte stream: greetings, silence, slow readers, floods, and ends that can be read."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
import trio
from memory_gateway import Client, running
from trio.testing import MockClock

from hushcast_gateway.clients import client_stream as connection_module
from hushcast_gateway.clients import server as server_module
from hushcast_gateway.clients.client_stream import MAX_WAITING, WRITE_WITHIN
from hushcast_gateway.clients.server import CONNECT_WITHIN, MAX_CONNECT
from hushcast_protocol.mqtt.limits import MqttLimits
from hushcast_protocol.mqtt.reason_codes import Reason
from hushcast_protocol.mqtt.topics.permissions import FullPermissions, Permissions
from hushcast_protocol.mqtt.wire.codec import encode
from hushcast_protocol.mqtt.wire.packets import (
    V5,
    V311,
    ConnAck,
    Connect,
    Disconnect,
    PingReq,
    PingResp,
    PubAck,
    Publish,
    Will,
)


async def end_of(client: Client) -> list[Any]:
    """Return all that comes until the end of the stream."""
    found = []
    while (packet := await client.next()) is not None:
        found.append(packet)
    return found


async def test_messages_from_one_to_another(autojump_clock: MockClock) -> None:
    async with running() as gateway:
        reader, writer = await gateway.connect("reader"), await gateway.connect("writer", V311)
        await reader.subscribe("t", 1)
        await writer.send(Publish("t", b"0"), Publish("t", b"1", 1, packet_id=3))
        assert [(await reader.message()).payload for _ in "01"] == [b"0", b"1"]
        assert await writer.next() == PubAck(3)


async def test_a_stream_may_be_cut_anywhere_and_packets_may_follow_connect_at_once(
    autojump_clock: MockClock,
) -> None:
    async with running() as gateway:
        client = await gateway.dial()
        data = b"".join(
            encode(packet, V5) for packet in (Connect(V5, "a", keep_alive=60), PingReq(), PingReq())
        )
        for byte in data:
            await client.stream.send_all(bytes([byte]))
        assert [type(await client.next()) for _ in "123"] == [ConnAck, PingResp, PingResp]


@pytest.mark.parametrize("first", [b"", b"\x10", encode(Connect(V5, "a"), V5)[:-1]])
async def test_who_does_not_say_connect_in_time_is_gone(autojump_clock: MockClock, first: bytes) -> None:
    async with running() as gateway:
        client = await gateway.dial()
        if first:
            await client.stream.send_all(first)
        assert await client.next() is None
        assert trio.current_time() == pytest.approx(CONNECT_WITHIN)


async def test_what_is_no_mqtt_is_closed_without_a_word(autojump_clock: MockClock) -> None:
    async with running() as gateway:
        client = await gateway.dial()
        await client.stream.send_all(b"GET / HTTP/1.1\r\n\r\n")
        assert await client.next() is None


async def test_another_version_hears_that(autojump_clock: MockClock) -> None:
    async with running() as gateway:
        for level in (3, 0x84):
            client = await gateway.dial(V311)
            await client.stream.send_all(b"\x10\x0d\x00\x04MQTT" + bytes([level]) + b"\x02\x00\x3c\x00\x01p")
            assert await end_of(client) == [ConnAck(False, 1)]


async def test_who_writes_a_connect_wrong_hears_it_in_version_5(autojump_clock: MockClock) -> None:
    async with running() as gateway:
        for version, told in ((V5, [ConnAck(False, 0x81)]), (V311, [])):
            client = await gateway.dial(version)
            whole = encode(Connect(version, "p"), version)
            await client.stream.send_all(whole[:9] + b"\x03" + whole[10:])  # the flag that is reserved
            assert await end_of(client) == told


async def test_a_stranger_cannot_have_much_kept(autojump_clock: MockClock) -> None:
    async with running() as gateway:
        client = await gateway.dial()
        await client.stream.send_all(encode(Connect(V5, "a", will=Will("w", b"x" * 65_000)), V5))
        assert isinstance(await client.next(), ConnAck)
        client = await gateway.dial()
        await client.stream.send_all(b"\x10" + bytes([0xFF, 0xFF, 0x7F]) + b"x" * 100)
        assert await client.next() is None
        assert trio.current_time() == 0
        assert MAX_CONNECT > 2 * 65_535 - 1_000


@pytest.mark.parametrize(("version", "told"), [(V5, [ConnAck(False, 0x86)]), (V311, [ConnAck(False, 4)])])
async def test_who_is_not_let_in_hears_why(
    autojump_clock: MockClock, version: int, told: list[ConnAck]
) -> None:
    async def authenticate(packet: Connect, peer: object) -> Permissions | Reason:
        return FullPermissions() if packet.username == "me" else Reason.BAD_USER_NAME_OR_PASSWORD

    async with running(authenticate=authenticate) as gateway:
        client = await gateway.dial(version)
        await client.send(Connect(version, "a"))
        assert await end_of(client) == told
        await gateway.connect(username="me")


async def test_what_follows_a_refused_connect_is_not_read(autojump_clock: MockClock) -> None:
    async def authenticate(packet: Connect, peer: object) -> Permissions | Reason:
        return FullPermissions() if packet.username == "me" else Reason.NOT_AUTHORIZED

    async with running(authenticate=authenticate) as gateway:
        reader = await gateway.connect("reader", username="me")
        await reader.subscribe("t")
        stranger = await gateway.dial()
        await stranger.send(Connect(V5, "a"), Publish("t", b"no"))
        assert await end_of(stranger) == [ConnAck(False, Reason.NOT_AUTHORIZED)]
        await reader.send(Publish("t", b"yes"))
        assert (await reader.message()).payload == b"yes"


@pytest.mark.slow
async def test_silence_beyond_one_and_a_half_keep_alives_is_an_end(autojump_clock: MockClock) -> None:
    async with running() as gateway:
        mourner = await gateway.connect("mourner", V311)
        await mourner.subscribe("w")
        client = await gateway.connect(keep_alive=10, will=Will("w", b"gone"))
        await trio.sleep(14)
        await client.send(PingReq())
        assert isinstance(await client.next(), PingResp)
        assert await end_of(client) == [Disconnect(Reason.KEEP_ALIVE_TIMEOUT)]
        assert trio.current_time() == pytest.approx(14 + 15)
        assert (await mourner.message()).payload == b"gone"
        await trio.sleep(10_000)  # it asked for none
        await mourner.send(PingReq())
        assert isinstance(await mourner.next(), PingResp)


async def test_bytes_that_make_no_packet_keep_nobody_alive(autojump_clock: MockClock) -> None:
    async with running() as gateway:
        client = await gateway.connect(keep_alive=10)
        with suppress(trio.BrokenResourceError), trio.move_on_after(100):
            for byte in encode(Publish("t", b"x" * 100), V5):
                await client.stream.send_all(bytes([byte]))
                await trio.sleep(1)
        assert gateway.broker.connected == 0


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\x36\x00", Reason.MALFORMED_PACKET),
        (b"\x00\x00", Reason.PROTOCOL_ERROR),
        (encode(Connect(V5, "a"), V5), Reason.PROTOCOL_ERROR),
        (b"\x30\xff\xff\xff\x7f", Reason.PACKET_TOO_LARGE),
    ],
)
async def test_the_reason_of_an_end_can_be_read_even_by_who_goes_on_writing(
    autojump_clock: MockClock, data: bytes, reason: int
) -> None:
    async with running(maximum_packet=100_000) as gateway:
        client = await gateway.connect()
        await client.send(PingReq())
        await client.stream.send_all(data + b"more that nobody reads" * 100)
        assert isinstance(await client.next(), PingResp)
        assert await end_of(client) == [Disconnect(reason)]
        old = await gateway.connect("old", V311)
        await old.stream.send_all(data)
        assert await end_of(old) == []


async def test_packets_before_a_wrong_one_count(autojump_clock: MockClock) -> None:
    async with running() as gateway:
        reader, client = await gateway.connect("reader"), await gateway.connect()
        await reader.subscribe("t")
        await client.stream.send_all(encode(Publish("t", b"1"), V5) + b"\x00\x00")
        assert (await reader.message()).payload == b"1"
        assert await end_of(client) == [Disconnect(Reason.PROTOCOL_ERROR)]


async def test_a_client_that_takes_nothing_loses_qos_0_then_its_connection_and_holds_nobody_up(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running() as gateway:
        slow, quick = await gateway.connect("slow"), await gateway.connect("quick")
        writer = await gateway.connect("writer", V311)
        for client in (slow, quick):
            await client.subscribe("t")
        block_receives(slow, monkeypatch, gateway)
        count = 3 * MAX_WAITING // 50_000
        for n in range(count):
            await writer.send(Publish("t", b"%d" % n + b"x" * 50_000))
            assert (await quick.message()).payload.startswith(b"%d" % n)
        assert trio.current_time() < 1
        dropped = gateway.broker.counts["dropped_slow"]
        assert 0.3 * count < dropped < count
        await trio.sleep(WRITE_WITHIN + 1)
        assert gateway.broker.connected == 2


def block_receives(client: Client, monkeypatch: pytest.MonkeyPatch, gateway: Any) -> None:
    """Let a client's network take nothing more: streams in memory would take everything."""

    async def never() -> None:
        await trio.sleep_forever()

    link = next(link for link in gateway.broker._links if link.session.client_id == "slow")
    monkeypatch.setattr(link.outlet._stream.send_stream, "send_all_hook", never)


@pytest.mark.slow
async def test_who_asks_without_reading_answers_is_not_read(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running() as gateway:
        client = await gateway.connect("slow", V311)
        await client.subscribe("t")
        block_receives(client, monkeypatch, gateway)
        link = next(iter(gateway.broker._links))
        for _ in range(8):
            await client.stream.send_all(b"\xc0\x00" * 100_000)
            await trio.sleep(0.01)
        assert MAX_WAITING <= link.outlet._size < 2 * MAX_WAITING


async def test_strangers_give_way_to_newcomers_and_clients_stay(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_module, "MAX_STRANGERS", 4)
    async with running() as gateway:
        honest = await gateway.connect("honest")
        silent = [await gateway.dial() for _ in range(20)]
        await gateway.connect("late")
        await honest.send(PingReq())
        assert isinstance(await honest.next(), PingResp)
        assert trio.current_time() == 0
        assert len(silent) == 20


async def test_one_connection_too_many_is_told(autojump_clock: MockClock) -> None:
    async with running(limits=MqttLimits(clients=3)) as gateway:
        clients = [await gateway.connect(name) for name in "ab"]
        for version, reason in ((V5, Reason.SERVER_BUSY), (V311, 3)):
            client = await gateway.dial(version)
            await client.send(Connect(version, "c"))
            assert await end_of(client) == [ConnAck(False, reason)]
        await clients[0].send(Disconnect())
        await trio.sleep(0.1)
        await gateway.connect("c")


async def test_taken_over_by_the_same_client(autojump_clock: MockClock) -> None:
    async with running() as gateway:
        first = await gateway.connect()
        second = await gateway.connect()
        assert await end_of(first) == [Disconnect(Reason.SESSION_TAKEN_OVER)]
        await second.send(PingReq())
        assert isinstance(await second.next(), PingResp)
        assert gateway.broker.connected == 1


async def test_a_stream_that_breaks_publishes_the_will(autojump_clock: MockClock) -> None:
    async with running() as gateway:
        mourner = await gateway.connect("mourner")
        await mourner.subscribe("w")
        client = await gateway.connect(will=Will("w", b"gone"))
        await trio.aclose_forcefully(client.stream)
        assert (await mourner.message()).payload == b"gone"


async def test_a_fault_of_ours_costs_one_connection(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running() as gateway:
        good, bad = await gateway.connect("good"), await gateway.connect("bad")

        def fail(*arguments: object) -> None:
            raise RuntimeError("ours")

        with monkeypatch.context() as patch:
            patch.setattr(gateway.broker, "receive", fail)
            victim = await gateway.connect("victim")
            await victim.send(PingReq())
            assert await end_of(victim) == []
        assert gateway.server.internal_errors == 1
        for client in (good, bad):
            await client.send(PingReq())
            assert isinstance(await client.next(), PingResp)


async def test_the_lingering_end_is_bounded(autojump_clock: MockClock) -> None:
    async with running() as gateway:
        client = await gateway.connect()
        await client.stream.send_all(b"\x00\x00")
        await trio.sleep(connection_module.LINGER + 0.1)
        with pytest.raises(trio.BrokenResourceError):
            await client.stream.send_all(b"more")


async def test_those_who_linger_give_way_to_each_other(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_module, "MAX_LEAVING", 3)
    async with running() as gateway:
        lingering = []
        for n in range(10):
            client = await gateway.connect(f"{n}")
            await client.stream.send_all(b"\x00\x00")
            assert await end_of(client) == [Disconnect(Reason.PROTOCOL_ERROR)]
            lingering.append(client)
        assert trio.current_time() == 0
        assert len(gateway.server._leaving) == 3
        await trio.sleep(connection_module.LINGER + 0.1)
        assert len(gateway.server._leaving) == 0
