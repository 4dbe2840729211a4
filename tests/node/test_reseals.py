"""A publication that nobody took on its day is sealed anew for the next, and shown once."""

from __future__ import annotations

import pytest
from small_network import DAY_SECONDS, ONE, Node, SmallNetwork, small_network, until

from hushcast_local import outbox, publisher
from hushcast_local.outbox import NoReceiptYet, Outbox
from hushcast_protocol.base.crypto.secrets import TopicSecret
from hushcast_protocol.content.bodies import Content
from hushcast_protocol.content.topics import Topic, make_topic, write_link
from hushcast_runtime.environment import simulated_environment
from hushcast_runtime.storage.changes import Change
from hushcast_runtime.storage.store import MemoryStore

PRIVATE = make_topic("alarms", ["kind"], TopicSecret(b"s" * 32))


async def publish_in_vain(node: Node, topic: Topic, content: Content) -> bytes:
    """Publish while no relay answers; return the message's id."""
    with pytest.raises(NoReceiptYet, match="stays in the outbox"):
        await node.daemon.service.publish(topic, content)
    (waiting,) = node.daemon.service.outbox()
    return bytes.fromhex(waiting["id"])


async def over_the_day(net: SmallNetwork, days: int = 1) -> None:
    """Sleep until what was sealed now is of no use any more."""
    await net.sleep_until(net.calendar.lapse(net.calendar.day(net.now) + days - 1) + 1)


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("topic", [ONE, PRIVATE], ids=["open", "private"])
async def test_what_nobody_took_on_its_day_arrives_on_a_later_one(topic: Topic, restarts: bool) -> None:
    content = Content(b"x", {"kind": "fire"} if topic.attributes else {})
    async with small_network(relays=3) as net:
        ear = await net.clients[0].listen(topic)
        client = net.clients[1]
        for relay in net.relays:
            await relay.stop()
        first_id = await publish_in_vain(client, topic, content)
        await over_the_day(net)
        if restarts:
            await client.restart()
        (waiting,) = client.daemon.service.outbox()
        assert waiting["id"] == first_id.hex(), "people know it by the id that it had first"
        for relay in net.relays:
            await relay.start()
        assert await ear.hears(1, DAY_SECONDS / 4) == [b"x"]
        assert ear.heard[0].values == content.values
        await until(lambda: client.daemon.service.outbox() == [])
        assert [await client.store.scan(kind) for kind in ("outbox", "outbox-state")] == [[], []]
        assert client.count("publications_given_up") == 0


async def test_it_is_given_up_after_fourteen_days(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publisher, "TRIED_DAYS", 2)
    async with small_network(relays=2) as net:
        client = net.clients[1]
        for relay in net.relays:
            await relay.stop()
        await publish_in_vain(client, ONE, Content(b"x"))
        await over_the_day(net, 2)
        assert client.daemon.service.outbox()[0]["state"] != "given up"
        await over_the_day(net)
        await until(lambda: client.daemon.service.outbox()[0]["state"] == "given up", 900)
        assert client.count("publications_given_up") == 1
        assert b"s" * 32 not in b"".join(value for _, value in await client.store.scan("outbox-state"))


async def test_who_gets_it_under_both_ids_is_shown_it_once() -> None:
    """A relay had the earlier one and its receipt was lost; the reseal comes first or second."""
    async with small_network(relays=3) as net:
        ear = await net.clients[0].listen()
        first = net.composed(ONE, Content(b"x"))
        again = net.composed(ONE, Content(b"x", first_id=first.id))
        other = net.composed(ONE, Content(b"y"))
        other_again = net.composed(ONE, Content(b"y", first_id=other.id))
        third = net.composed(ONE, Content(b"y", first_id=other.id))
        (subscription,) = net.clients[0].daemon.service.subscriber.find(ONE, None)
        await subscription.take([first, again, other_again, other, third])
        assert await ear.hears(2) == [b"x", b"y"]
        assert all(map(subscription.knows, [one.id for one in (first, again, other, other_again, third)]))
        await net.clients[0].restart()
        (subscription,) = net.clients[0].daemon.service.subscriber.find(ONE, None)
        await subscription.take([other, other_again, third, again])
        assert subscription.inbox.last == 2


async def test_nobody_keeps_a_message_from_others_by_what_is_sealed_under_its_id() -> None:
    async with small_network(relays=3) as net:
        ear = await net.clients[0].listen()
        true = net.composed(ONE, Content(b"true"))
        forged = net.composed(ONE, Content(b"forged", first_id=true.id))
        (subscription,) = net.clients[0].daemon.service.subscriber.find(ONE, None)
        await subscription.take([forged, true])
        assert await ear.hears(2) == [b"forged", b"true"]


async def test_a_link_that_cannot_be_read_ends_with_its_day() -> None:
    async with small_network(relays=2) as net:
        client = net.clients[1]
        for relay in net.relays:
            await relay.stop()
        await publish_in_vain(client, ONE, Content(b"x"))
        ((key, value),) = await client.store.scan("outbox-state")
        link = write_link(ONE).encode()
        await client.stop()
        await client.store.write(Change(outbox._STATE, key, value.replace(link, b"?" * len(link))))
        await client.start()
        await over_the_day(net)
        await until(lambda: client.daemon.service.outbox()[0]["state"] == "given up", 900)


async def test_an_outbox_reads_back_what_was_sealed_anew() -> None:
    store = MemoryStore()
    async with small_network(relays=2) as net:
        first, again = (net.composed(ONE, Content(b"x")) for _ in range(2))
    box = Outbox(simulated_environment(1, 1e9), store)
    publication = box.put(ONE.name, first)
    box.replace(publication, again)
    box.leave(box.put(ONE.name, net.composed(ONE, Content(b"y"))))
    await box.durable()
    (found,) = await Outbox(simulated_environment(1, 1e9), store).load()
    assert (found.id, found.message) == (first.id, again)
