"""A gateway that is killed between what the daemon takes and its answer: QoS 2 goes out once."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio
from houses import LINK, House, hold_answers, listening, quick, until

from hushcast_protocol.mqtt.wire.packets import PubAck, PubComp, Publish, PubRec, PubRel
from hushcast_runtime.storage.changes import Change


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    quick(monkeypatch)


@pytest.mark.parametrize("topic", ["hush/home/door", "doors/1"])
async def test_what_is_repeated_after_a_kill_goes_out_once(tmp_path: Path, topic: str) -> None:
    first = Publish(topic, b"open once", 2, packet_id=7)
    again = Publish(topic, b"open once", 2, dup=True, packet_id=7)
    one = House(tmp_path / "one", {"home": LINK}, {"doors/#": "home"}, None)
    two = House(tmp_path / "two", {"home": LINK}, {}, one)
    async with trio.open_nursery() as nursery:
        await one.daemon.start(nursery)
        await two.daemon.start(nursery)
        async with two.gateway() as other:
            far = await listening(two, other, "hush/home/#")
            take = one.daemon.service.enqueue
            async with one.gateway() as killed:
                answers = hold_answers(one.daemon)
                keeper = await killed.connect("keeper", clean=False, expiry=600)
                await keeper.subscribe(topic, 1)
                client = await killed.connect("c", clean=False, expiry=600)
                await client.send(first)
                await until(lambda: len(one.daemon.published) == 1)
            one.daemon.service.enqueue = take  # type: ignore[method-assign]
            answers.set()
            async with one.gateway() as gateway:
                client = await gateway.connect("c", clean=False, expiry=600)
                await client.send(again)
                assert await client.next() == PubRec(7)
                await client.send(PubRel(7))
                assert await client.next() == PubComp(7)
                # What is new goes out under a token of its own, though its identifier is the same.
                await client.send(Publish(topic, b"open again", 2, packet_id=7))
                assert await client.next() == PubRec(7)
                keeper = await gateway.connect("keeper", clean=False, expiry=600)
                # Of a map it had the first before the kill, which did not hear that it has.
                assert {(await keeper.message()).payload for _ in range(2)} == {b"open once", b"open again"}
            assert {(await far.message()).payload for _ in range(2)} == {b"open once", b"open again"}
            assert len(one.daemon.published) == 2
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("topic", ["hush/home/door", "doors/1"])
async def test_a_message_is_acknowledged_when_its_number_is_on_disk(tmp_path: Path, topic: str) -> None:
    """Else a kill would have the next message get the same number, and that may come first."""
    one = House(tmp_path / "one", {"home": LINK}, {"doors/#": "home"}, None)
    async with trio.open_nursery() as nursery:
        await one.daemon.start(nursery)
        async with one.gateway() as gateway:
            client = await gateway.connect("c")
            await until(lambda: one.network.is_there)
            write, goes_on = one.store.write, trio.Event()

            async def held(*changes: Change) -> None:
                await goes_on.wait()
                await write(*changes)

            one.store.write = held  # type: ignore[method-assign]
            await client.send(Publish(topic, b"open", 1, packet_id=7))
            await until(lambda: len(one.daemon.published) == 1)
            answers: list[object] = []

            async def hear() -> None:
                answers.append(await client.next())

            nursery.start_soon(hear)
            await trio.sleep(0.3)
            assert not answers
            goes_on.set()
            await until(lambda: answers == [PubAck(7)])
            assert [key for key in one.store._records["gateway-numbers"] if b"door" in key]
        nursery.cancel_scope.cancel()
