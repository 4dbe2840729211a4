"""The outbox: on disk before the first drop, there until a receipt came, through restarts; bounded."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from small_network import DAY_SECONDS, ONE, Node, SmallNetwork, small_network, until

from hushcast_local import outbox, publisher
from hushcast_local.outbox import NoReceiptYet, Outbox
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.errors import Refusal
from hushcast_protocol.base.versions.manner import NEWEST
from hushcast_protocol.content.bodies import Content
from hushcast_protocol.content.messages import TRAIL_SIZE, Message, message_id
from hushcast_runtime.environment import simulated_environment
from hushcast_runtime.storage.store import MemoryStore

SIZE = 1167  # bytes of a small body


def message(number: int) -> Message:
    body = number.to_bytes(SIZE, "big")
    return Message(message_id(1, body), 1, (bytes(16),), bytes(TRAIL_SIZE), body)


def opened(store: MemoryStore | None = None) -> Outbox:
    return Outbox(simulated_environment(1, 1e9), store or MemoryStore())


async def stop_relays(net: SmallNetwork) -> None:
    for relay in net.relays:
        await relay.stop()


async def start_relays(net: SmallNetwork) -> None:
    for relay in net.relays:
        await relay.start()


async def publish_in_vain(node: Node, payload: bytes) -> None:
    with pytest.raises(NoReceiptYet, match="stays in the outbox"):
        await node.daemon.service.publish(ONE, Content(payload))


def listed(node: Node) -> list[dict[str, Any]]:
    return node.daemon.service.outbox()


# Through the network


async def test_it_is_on_disk_before_the_first_drop_and_gone_after_the_receipts() -> None:
    async with small_network(relays=3) as net:
        ear = await net.clients[0].listen()
        publication = await net.clients[1].daemon.service.enqueue(ONE, Content(b"x"))
        assert [key for key, _ in await net.clients[1].store.scan("outbox")] == [publication.id]
        assert net.count("messages_dropped_here") == 0
        await publication.taken()
        await until(lambda: listed(net.clients[1]) == [])
        assert len(publication.origins) == 2
        for kind in ("outbox", "outbox-state"):
            assert await net.clients[1].store.scan(kind) == []
        assert await ear.hears(1) == [b"x"]


async def test_what_no_relay_takes_waits_and_is_taken_when_they_are_back() -> None:
    async with small_network(relays=3) as net:
        ear = await net.clients[0].listen()
        await stop_relays(net)
        await publish_in_vain(net.clients[1], b"x")
        (waiting,) = listed(net.clients[1])
        assert (waiting["topic"], waiting["state"], waiting["receipts"]) == (ONE.name, "waiting", 0)
        assert waiting["reason"] == "no relay gave a receipt: no daemon answers at this address"
        assert waiting["attempts"] == 3, "three relays, each once"
        assert net.now < waiting["next_attempt"] <= net.now + NEWEST.first_retry
        assert net.clients[1].daemon.status()["outbox"] == 1
        await start_relays(net)
        assert await ear.hears(1) == [b"x"]
        assert ear.heard[0].id.hex() == waiting["id"], "every drop has the same id"
        await until(lambda: listed(net.clients[1]) == [])


async def test_tries_become_rarer_and_each_has_three_circuits_an_origin() -> None:
    async with small_network(relays=8) as net:
        await stop_relays(net)
        await publish_in_vain(net.clients[1], b"x")
        assert listed(net.clients[1])[0]["attempts"] == 2 * NEWEST.attempts
        began = net.now
        await until(lambda: listed(net.clients[1])[0]["attempts"] == 12, 60)
        await until(lambda: listed(net.clients[1])[0]["state"] == "waiting", 60)
        second = listed(net.clients[1])[0]["next_attempt"] - net.now
        assert began + NEWEST.first_retry / 2 <= net.now
        assert NEWEST.first_retry <= second <= 2 * NEWEST.first_retry


@pytest.mark.parametrize("moment", [0.0, 0.05, 0.2, 0.5, 5.0, 20.0])
async def test_a_publisher_that_restarts_goes_on_with_the_same_id(moment: float) -> None:
    async with small_network(relays=3) as net:
        ear = await net.clients[0].listen()
        await stop_relays(net)
        publication = await net.clients[1].daemon.service.enqueue(ONE, Content(b"x"))
        await trio.sleep(moment)
        await net.clients[1].restart()
        assert [entry["id"] for entry in listed(net.clients[1])] == [publication.id.hex()]
        await start_relays(net)
        assert await ear.hears(1) == [b"x"]
        assert ear.heard[0].id == publication.id
        await until(lambda: listed(net.clients[1]) == [])
        await trio.sleep(60)
        assert ear.payloads == [b"x"]


async def test_a_receipt_is_remembered_and_only_the_other_origin_is_tried_after_a_restart() -> None:
    """One origin answers and the others are silent; the publisher restarts in between."""
    async with small_network(relays=6) as net:
        for relay in net.relays[:5]:
            relay.gate.shut()
        publication = await net.clients[1].daemon.service.publish(ONE, Content(b"x"))
        assert publication.origins == [net.relays[5].id]
        await net.clients[1].restart()
        assert [entry["receipts"] for entry in listed(net.clients[1])] == [1]
        for relay in net.relays[:5]:
            relay.gate.open()
        await until(lambda: listed(net.clients[1]) == [])
        assert net.relays[5].count("messages_dropped_here") == 1
        assert net.count("messages_dropped_here") == 2


async def test_without_a_relay_who_waits_is_refused_and_who_does_not_is_queued() -> None:
    async with trio.open_nursery() as nursery:
        net = SmallNetwork(nursery, relays=1, clients=1, seed=1)
        await net.directory.start()
        await net.clients[0].start()
        daemon = net.clients[0].daemon
        with pytest.raises(Refusal, match="no roster yet"):
            await daemon.service.publish(ONE, Content(b"waits"))
        publication = await daemon.service.enqueue(ONE, Content(b"does not"))
        await until(lambda: publication.settled.is_set())
        assert [entry["reason"] for entry in daemon.service.outbox()] == [
            "no roster yet: the directory was not reached, or waits for relays to register"
        ]
        await net.relays[0].start()
        await until(lambda: daemon.service.outbox() == [])
        assert net.relays[0].count("messages_dropped_here") == 1
        nursery.cancel_scope.cancel()


async def test_what_is_signed_is_given_up_when_its_day_is_over_and_that_is_told() -> None:
    async with small_network(relays=2) as net:
        await stop_relays(net)
        client = net.clients[1]
        with pytest.raises(NoReceiptYet, match="stays in the outbox"):
            await client.daemon.service.publish(ONE, Content(b"x"), Seed(bytes(32)))
        (waiting,) = listed(client)
        lapse = net.calendar.lapse(net.calendar.day(net.now))
        await net.sleep_until(lapse - 1)
        assert [entry["state"] for entry in listed(client)] != ["given up"]
        await until(lambda: listed(client)[0]["state"] == "given up", 90)
        assert client.count("publications_given_up") == 1
        assert await client.store.scan("outbox") == []
        await client.restart()
        (given_up,) = listed(client)
        assert (given_up["id"], given_up["state"], given_up["next_attempt"]) == (
            waiting["id"],
            "given up",
            None,
        )
        assert client.daemon.status()["outbox"] == 0
        assert await client.daemon.service.cancel(bytes.fromhex(given_up["id"])) == ONE.name
        assert listed(client) == []
        assert await client.store.scan("outbox-state") == []
        assert net.now < lapse + DAY_SECONDS


async def test_what_is_cancelled_is_not_dropped_and_who_waits_hears_of_it() -> None:
    async with small_network(relays=2) as net:
        client = net.clients[1]
        for relay in net.relays:
            relay.gate.shut()
        publication = await client.daemon.service.enqueue(ONE, Content(b"x"))
        reasons: list[str] = []

        async def wait() -> None:
            with pytest.raises(Refusal) as refused:
                await publication.taken()
            reasons.append(refused.value.reason)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(wait)
            await trio.sleep(1)
            assert [entry["state"] for entry in listed(client)] == ["dropping"]
            assert await client.daemon.service.cancel(publication.id) == ONE.name
        assert reasons == ["the message was taken back from the outbox"]
        assert listed(client) == []
        assert await client.daemon.service.cancel(publication.id) is None
        await client.restart()
        assert listed(client) == []


async def test_more_than_are_dropped_at_once_wait_their_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publisher, "MAX_UNDER_WAY", 2)
    async with small_network(relays=3) as net:
        ear = await net.clients[0].listen()
        for number in range(20):
            await net.clients[1].daemon.service.enqueue(ONE, Content(b"%d" % number))
        assert len(listed(net.clients[1])) > 10
        assert sorted(await ear.hears(20)) == sorted(b"%d" % number for number in range(20))
        await until(lambda: listed(net.clients[1]) == [])


# Bounds


async def test_a_full_outbox_refuses_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox, "MAX_PUBLICATIONS", 2)
    box = opened()
    first = box.put("t", message(1))
    box.put("t", message(2))
    with pytest.raises(Refusal, match="the outbox is full: 2 messages with 2334 bytes"):
        box.put("t", message(3))
    box.leave(first)
    box.put("t", message(3))


async def test_bytes_are_bounded_after_a_restart_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox, "MAX_OUTBOX", 2 * SIZE + 50)
    store = MemoryStore()
    box = opened(store)
    for number in (1, 2):
        box.put("t", message(number))
    again = opened(store)
    found = [publication.message for publication in await again.load()]
    assert sorted(found, key=lambda one: one.body) == [message(1), message(2)]
    with pytest.raises(Refusal, match="full"):
        again.put("t", message(3))
    assert await again.cancel(message(1).id) == "t"
    again.put("t", message(3))
    assert len(await store.scan("outbox")) == 2


async def test_so_many_are_remembered_as_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox, "MAX_GIVEN_UP", 2)
    store = MemoryStore()
    box = opened(store)
    for number in range(4):
        box.give_up(box.put(f"topic {number}", message(number)))
    assert [entry["topic"] for entry in box.describe()] == ["topic 2", "topic 3"]
    assert len(await store.scan("outbox-state")) == 2
    assert await store.scan("outbox") == []


async def test_what_left_is_not_written_again() -> None:
    store = MemoryStore()
    box = opened(store)
    publication = box.put("t", message(1))
    box.leave(publication)
    box.note(publication)
    assert await store.scan("outbox-state") == []


async def test_a_publication_shows_neither_topic_nor_content() -> None:
    publication = opened().put("a secret topic", message(1))
    assert "secret" not in repr(publication)
    assert "body" not in repr(publication)
