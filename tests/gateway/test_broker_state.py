"""The broker on a real store: what was acknowledged is there after a kill, and one commit serves many."""

from __future__ import annotations

from pathlib import Path

import trio
from memory_gateway import everything, running

from hushcast_gateway.broker_state import open_broker
from hushcast_protocol.mqtt.wire.packets import PubAck, PubComp, Publish, PubRec, PubRel, Will
from hushcast_runtime.environment import system_environment
from hushcast_runtime.storage.changes import Change
from hushcast_runtime.storage.recovery import DAMAGED
from hushcast_runtime.storage.store import MemoryStore, SqliteStore


class Killed(SqliteStore):
    """A store that goes as with its process: what was not committed is lost."""

    def close(self) -> None:
        self._connection.close()


async def test_nothing_acknowledged_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "gateway.sqlite"
    async with trio.open_nursery() as nursery:
        store = Killed(path)
        nursery.start_soon(store.run)
        async with running(store) as gateway:
            reader = await gateway.connect("reader", expiry=100)
            await reader.subscribe("t/#", 2)
            writer = await gateway.connect("writer", expiry=100, will=Will("t/w", b"gone", 1))
            await writer.send(
                Publish("t/1", b"1", 1, retain=True, packet_id=1),
                Publish("t/2", b"2", 2, packet_id=2),
                Publish("t/3", b"3", 2, packet_id=3),
            )
            assert [await writer.next() for _ in "123"] == [PubAck(1), PubRec(2), PubRec(3)]
            await writer.send(PubRel(3))
            assert await writer.next() == PubComp(3)
            first, second = await reader.message(), await reader.message()
            await reader.send(PubRec(second.packet_id))
            assert (await reader.message()).payload == b"3"
            assert await reader.next() == PubRel(second.packet_id)
        nursery.cancel_scope.cancel()
    store.close()
    async with trio.open_nursery() as nursery:
        store = Killed(path)
        nursery.start_soon(store.run)
        async with running(store) as gateway:
            assert (gateway.broker.retained, gateway.broker.sessions) == (1, 2)
            reader = await gateway.connect("reader", clean=False, expiry=100)
            again = await reader.message()
            assert (again.payload, again.dup, again.packet_id) == (b"1", True, first.packet_id)
            assert await reader.next() == PubRel(second.packet_id)
            assert [(await reader.message()).payload for _ in "ab"] == [b"3", b"gone"]
            writer = await gateway.connect("writer", clean=False, expiry=100)
            await writer.send(Publish("t/2", b"2", 2, dup=True, packet_id=2))
            assert await writer.next() == PubRec(2)
            await writer.send(Publish("t/3", b"new", 2, packet_id=3))
            assert await writer.next() == PubRec(3)
            assert (await reader.message()).payload == b"new"
        nursery.cancel_scope.cancel()
    store.close()


class Counting(MemoryStore):
    """A store whose commits take a second, and are counted."""

    def __init__(self) -> None:
        super().__init__()
        self.commits = 0

    async def write(self, *changes: Change) -> None:
        self.commits += 1
        await trio.sleep(1)
        self.write_soon(*changes)


async def test_many_messages_share_a_commit_and_others_do_not_wait(
    autojump_clock: trio.testing.MockClock,
) -> None:
    store = Counting()
    async with running(store) as gateway:
        brief = await gateway.connect("brief")
        await brief.subscribe("#", 0)
        assert (store.commits, trio.current_time()) == (0, 0)
        durable = await gateway.connect("durable", expiry=100)
        await durable.subscribe("t", 1)
        writers = [await gateway.connect(f"writer {n}") for n in range(10)]
        commits, began = store.commits, trio.current_time()
        for writer in writers:
            await writer.send(Publish("t", b"x", 1, packet_id=1))
        for _ in writers:
            await brief.message()
        assert trio.current_time() == began
        for writer in writers:
            assert await writer.next() == PubAck(1)
        assert trio.current_time() <= began + 2.1
        assert store.commits <= commits + 2


async def test_records_that_are_damaged_are_set_aside() -> None:
    store = MemoryStore()
    store.write_soon(Change("mqtt-session", bytes(8), b"\xff"))
    await open_broker(store, system_environment(), permissions_of=everything)
    assert not await store.scan("mqtt-session")
    assert [kind for kind, _ in await store.scan(DAMAGED)] == [b"mqtt-session"]


async def test_an_outgrown_record_leads_nowhere_and_hurts_nobody() -> None:
    """References to what is not there, as after a disk that lost blocks."""
    store = MemoryStore()
    async with running(store) as gateway:
        client = await gateway.connect("a", expiry=100)
        await client.subscribe("t", 1)
        await client.send(Publish("t", b"x", 1, packet_id=1))
        await client.message()
    for kind in ("mqtt-message", "mqtt-session"):
        kept = store._records.pop(kind)
        await open_broker(store, system_environment(), permissions_of=everything)
        store._records[kind] = kept
