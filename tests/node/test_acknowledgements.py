"""When a relay acknowledges what a link brought: a moment after the first of it, once it is on disk."""

from __future__ import annotations

import os
from typing import Any

import pytest
import trio
from hanging_disk import Disk
from hosted_network import LONG
from owner_end import message
from slow_store import SlowStore
from small_network import ONE, TWO, Node, SmallNetwork, small_network, until
from test_named_children import linked, owner_of

from hushcast_overlay.relay import acknowledgements
from hushcast_overlay.relay.acknowledgements import ACKNOWLEDGE_AFTER
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.wire import Wire
from hushcast_protocol.content.bodies import Content
from hushcast_protocol.content.messages import Message
from hushcast_protocol.overlay.frames import Ack, Forward, OverlayFrame, Ping
from hushcast_runtime.storage.store import MemoryStore, Store
from hushcast_runtime.transports.channel import Channel


def trunk_alone(message: Message) -> Message:
    """A message as it is on its way along a tree."""
    return Message(message.id, message.day, message.tokens[:1], message.trail, message.body)


async def beside(net: SmallNetwork) -> tuple[Node, Channel[OverlayFrame]]:
    """A relay, and a link to it under the name of another."""
    relay, previous = net.relays[:2]
    assert previous.identity is not None
    await previous.stop()
    return relay, await net.knock(relay, previous.identity.seed)


async def slower(before: Store) -> Store:
    """A store like one before whose commits take their time, where there is something to write."""
    assert isinstance(before, MemoryStore)
    store = SlowStore(a_change=0.0002, a_commit=0.004)
    store.version, store._records = before.version, before._records
    return store


async def acknowledged_after(channel: Channel[Any], *frames: Wire) -> float:
    """Send frames; return after how many seconds the next acknowledgement comes."""
    began = trio.current_time()
    await channel.send(*frames)
    while not any(isinstance(frame, Ack) for frame in await channel.receive()):
        pass  # messages: the link is that of a relay which is in trees
    return trio.current_time() - began


async def test_the_moment_tells_nothing_of_others_nor_what_became_of_a_message() -> None:
    """Whether it is new, known, or leads nowhere; whether others bring something at that time, or nobody."""
    async with small_network(relays=5, epoch=LONG, origins=1) as net:
        ear = await net.clients[0].listen()
        (planned,) = net.clients[0].route().planned.values()
        await until(lambda: not planned.unconfirmed)
        below, top = next((key, above) for key, above in planned.installation.tree.parents.items() if above)
        relay, previous = net.relay(top), net.relay(below)
        await relay.stop()
        relay.store = await slower(relay.store)
        await relay.start()
        others = [other for other in net.relays if other not in (relay, previous)]
        assert previous.identity is not None
        await previous.stop()
        channel = await net.knock(relay, previous.identity.seed)
        there_and_back = await acknowledged_after(channel, Ping())
        leads_nowhere = Forward(trunk_alone(net.composed(TWO, Content(b"nobody listens"))))
        moments = [await acknowledged_after(channel, leads_nowhere) for _ in range(2)]
        sent = relay.count("messages_sent")
        for number in range(20):
            for other in others:
                await net.drop_at(other, ONE, Content(b"%d" % number))
            new = Forward(trunk_alone(net.composed(ONE, Content(b"new %d" % number))))
            moments.append(await acknowledged_after(channel, new, new, leads_nowhere))
            moments.append(await acknowledged_after(channel, new))
        assert relay.count("messages_sent") >= sent + 20
        assert relay.count("messages_duplicate") >= 40
        assert relay.count("messages_unrouted") >= 20
        assert moments == pytest.approx([ACKNOWLEDGE_AFTER + there_and_back] * len(moments), abs=1e-6)
        ear.close()


async def test_the_moment_tells_the_child_of_a_box_nothing_of_others() -> None:
    """Anybody is one by its own word: the owner's, of a box that it has made for that."""
    async with small_network(relays=2, clients=0, epoch=LONG) as net:
        host = net.relays[0]
        await host.stop()
        host.store = await slower(host.store)
        await host.start()
        probe, busy = Seed(os.urandom(32)), Seed(os.urandom(32))
        await owner_of(net, host, probe, busy)
        net.wires.delay = lambda: 0.1
        link, other = await linked(net, host, probe), await linked(net, host, busy)
        day, there_and_back = net.calendar.day(net.now), 0.2
        for count in (0, 1, 20):
            for what, after in (Forward(message(day, trunk=bytes(16))), ACKNOWLEDGE_AFTER), (Ping(), 0.0):
                brought = host.count("messages_received")
                await other.send(*[Forward(message(day)) for _ in range(count)], Ping())
                moment = await acknowledged_after(link, what)
                assert moment == pytest.approx(there_and_back + after, abs=1e-6), (count, what)
                await until(lambda expected=brought + count: host.count("messages_received") >= expected)
                await trio.sleep(1)


async def test_signs_of_life_are_answered_at_once_and_acknowledge_nothing_more() -> None:
    async with small_network(relays=2, epoch=LONG) as net:
        _, channel = await beside(net)
        there_and_back = await acknowledged_after(channel, Ping())
        began = trio.current_time()
        await channel.send(Forward(trunk_alone(net.composed(ONE, Content(b"x")))), Ping())
        assert await channel.receive() == [Ack(0, ())]
        assert trio.current_time() - began == pytest.approx(there_and_back)
        ((answer,), taken) = await channel.receive(), trio.current_time() - began
        assert isinstance(answer, Ack)
        assert answer.number == 1
        assert taken == pytest.approx(there_and_back + ACKNOWLEDGE_AFTER)


async def test_who_brings_much_waits_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """A link brings no more than its part before what it brought is on disk."""
    monkeypatch.setattr(acknowledgements, "MAX_UNWRITTEN", 20_000)
    async with small_network(relays=2, epoch=LONG) as net:
        relay, channel = await beside(net)
        messages = [trunk_alone(net.composed(ONE, Content(b"%d" % number))) for number in range(60)]
        assert sum(len(message.body) for message in messages) > 3 * 20_000
        there_and_back = await acknowledged_after(channel, Ping())
        began = trio.current_time()
        for message in messages:
            await channel.send(Forward(message))
            await trio.sleep(0.001)
        first = (await channel.receive())[0]
        assert isinstance(first, Ack)
        assert trio.current_time() - began < there_and_back + ACKNOWLEDGE_AFTER / 2
        assert 16 <= first.number < 40
        await until(lambda: relay.count("messages_received") == 60)


async def test_nothing_more_is_read_while_the_disk_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acknowledgements, "MAX_UNWRITTEN", 20_000)
    async with small_network(relays=3, epoch=LONG, origins=1) as net:
        ear = await net.clients[0].listen()
        relay = net.relays[0]
        disk = relay.store = Disk(relay.store)
        await relay.restart()
        relay, channel = await beside(net)
        disk.hang()
        for number in range(100):
            await channel.send(Forward(trunk_alone(net.composed(ONE, Content(b"%d" % number)))))
            await trio.sleep(0.001)
        await trio.sleep(5)
        taken = relay.count("messages_received")
        assert 16 <= taken < 40
        disk.turn()
        await until(lambda: relay.count("messages_received") == 100)
        assert isinstance(await channel.one(60), Ack)
        ear.close()
