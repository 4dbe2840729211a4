"""A spare mailbox: published before anybody subscribes, taken by one route, and tied to nothing else."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest
import trio
from slow_wires import SlowListener, SlowWires
from small_network import ONE, TWO, Node, SmallNetwork, counted, until

from hushcast_overlay.routes.spare_mailbox import LEAST_APART, MAX_APART, SpareMailbox
from hushcast_protocol.base.addresses import Address
from hushcast_protocol.base.links import Link
from hushcast_protocol.base.secrets import Seed
from hushcast_protocol.content.bodies import Content
from hushcast_protocol.content.topics import Topic, parse_topic
from hushcast_protocol.overlay.frames import MAX_OVERLAY_FRAME, decode_overlay
from hushcast_protocol.overlay.profile import Root
from hushcast_runtime.transports.base import TransportError
from hushcast_runtime.transports.channel import open_channel

EPOCH = 3600  # seconds: no roster and no mending falls into a test
PUBLISHED_AFTER = 30.0  # virtual seconds, as over Tor
THREE = parse_topic("topic three")


class World(SmallNetwork):
    """A network with slow onion services."""

    wires: SlowWires

    @property
    def mailboxes(self) -> dict[Address, float]:
        """Addresses that are open, but for those of relays and directory, and since when."""
        known = {node.daemon.overlay.listener.address for node in self.relays if node.daemon.overlay.listener}
        known.add(self.directory.address)
        return {at: self.wires.opened[at] for at in self.wires.listeners if at not in known}


@asynccontextmanager
async def world() -> AsyncIterator[World]:
    async with trio.open_nursery() as nursery:
        net = World(nursery, 3, 1, 1, EPOCH, root=Root.MAILBOX)
        net.wires = SlowWires(net.wires, PUBLISHED_AFTER)
        await net.up()
        yield net
        assert net.count("internal_errors") == 0
        nursery.cancel_scope.cancel()


def spare(node: Node) -> SpareMailbox:
    return node.daemon.overlay.routes.spare


async def spare_address(net: World) -> Address:
    """Wait for the client's spare, where it has nothing else."""
    await until(lambda: spare(net.clients[0]).is_ready)
    (address,) = net.mailboxes
    return address


async def subscribed_after(node: Node, topic: Topic = ONE) -> float:
    """Subscribe; return the virtual seconds that it took."""
    began = trio.current_time()
    await node.listen(topic)
    return trio.current_time() - began


async def works(net: World, topic: Topic = ONE) -> bool:
    """Tell whether a message comes to the client's subscription."""
    ear = await net.clients[0].listen(topic)
    before = len(ear.heard)
    await net.relays[0].daemon.service.publish(topic, Content(b"x"))
    await ear.hears(before + 1)
    return True


async def test_the_first_subscription_takes_it_and_does_not_wait() -> None:
    async with world() as net:
        (subscriber,) = net.clients
        address = await spare_address(net)
        assert not await subscriber.store.scan("mailbox")  # its key is on no disk
        assert await subscribed_after(subscriber) < PUBLISHED_AFTER / 10
        assert subscriber.route().mailboxes[0].address == address
        assert await works(net)
        await subscriber.restart()  # it is a mailbox like any other
        assert await works(net)
        assert list(net.mailboxes) == [address]


@pytest.mark.slow
async def test_the_next_is_opened_at_a_moment_that_subscriptions_have_no_part_in() -> None:
    moments = []
    for subscribes in (None, 40.0, 300.0):
        async with world() as net:
            (subscriber,) = net.clients
            first = await spare_address(net)
            if subscribes is not None:
                await trio.sleep(subscribes)
                await subscriber.listen()
            both = net.wires.opened.copy()
            await until(lambda net=net, both=both: len(net.wires.opened) > len(both), MAX_APART)
            (second,) = net.wires.opened.keys() - both.keys()
            moments.append(round(net.wires.opened[second] - net.wires.opened[first], 6))
            # What was not taken gave way to it; what was is in use.
            assert (first in net.wires.listeners) == (subscribes is not None)
    assert len(set(moments)) == 1
    assert LEAST_APART <= moments[0] <= MAX_APART


@pytest.mark.slow
async def test_there_is_never_a_second() -> None:
    async with world() as net:
        seen = set[Address]()
        while len(seen) < 4:
            assert len(net.mailboxes) <= 1
            seen |= net.mailboxes.keys()
            await trio.sleep(5)


@pytest.mark.slow
async def test_of_a_burst_one_takes_it_and_the_others_wait_as_ever() -> None:
    async with world() as net:
        (subscriber,) = net.clients
        await spare_address(net)
        took: dict[Topic, float] = {}

        async def subscribe(topic: Topic) -> None:
            took[topic] = await subscribed_after(subscriber, topic)

        async with trio.open_nursery() as nursery:
            for topic in (ONE, TWO, THREE):
                nursery.start_soon(subscribe, topic)
        quick, *slow = sorted(took.values())
        assert quick < PUBLISHED_AFTER / 10
        assert all(PUBLISHED_AFTER < seconds < 2 * PUBLISHED_AFTER for seconds in slow)
        assert len({subscriber.route(topic).mailboxes[0].address for topic in took}) == 3
        for topic in took:
            assert await works(net, topic)


async def test_no_two_lives_of_a_daemon_have_the_same() -> None:
    async with world() as net:
        (subscriber,) = net.clients
        before = await spare_address(net)
        await subscriber.restart()
        assert await spare_address(net) != before


@pytest.mark.slow
async def test_with_mailboxes_of_before_a_restart_it_comes_at_another_moment_than_they() -> None:
    async with world() as net:
        (subscriber,) = net.clients
        await subscriber.listen()
        await subscriber.restart()
        began = trio.current_time()
        assert await subscribed_after(subscriber, TWO) > PUBLISHED_AFTER  # as ever
        await until(lambda: spare(subscriber).is_ready, MAX_APART + 2 * PUBLISHED_AFTER)
        assert trio.current_time() - began > LEAST_APART


@pytest.mark.slow
async def test_a_relay_has_one_only_once_it_has_subscribed() -> None:
    async with world() as net:
        await spare_address(net)
        await net.clients[0].stop()
        relay = net.relays[0]
        await trio.sleep(MAX_APART + 2 * PUBLISHED_AFTER)
        assert not net.mailboxes
        assert await subscribed_after(relay) > PUBLISHED_AFTER
        began = trio.current_time()
        await until(lambda: spare(relay).is_ready, MAX_APART + 2 * PUBLISHED_AFTER)
        assert trio.current_time() - began > LEAST_APART / 2
        assert await subscribed_after(relay, TWO) < PUBLISHED_AFTER / 10


@pytest.mark.parametrize("as_relay", [False, True])
async def test_nobody_is_let_in_before_it_is_taken(as_relay: bool) -> None:
    async with world() as net:
        (subscriber,) = net.clients
        address = await spare_address(net)
        identity = net.relays[0].identity
        assert identity is not None
        us = identity.seed if as_relay else Seed(b"stranger" * 4)
        key = net.wires.keys[address]
        link = Link.initiate(net.net.id, key, net.env.randomness, MAX_OVERLAY_FRAME, us, None)
        channel, _ = await open_channel(net.wires.transport(), address, "test", link, decode_overlay)
        with trio.move_on_after(5), suppress(TransportError):
            raise AssertionError(f"it said {await channel.one(4)}")
        assert await counted(subscriber, "refused_form", 1)
        assert await subscribed_after(subscriber) < PUBLISHED_AFTER / 10
        assert subscriber.route().mailboxes[0].address == address
        assert await works(net)


@pytest.mark.parametrize("trouble", ["refuses", "fails"])
async def test_without_one_a_subscription_opens_its_own(trouble: str) -> None:
    async with world() as net:
        (subscriber,) = net.clients
        await spare_address(net)
        setattr(net.wires, trouble, True)
        spare(subscriber).renew()
        await trio.sleep(PUBLISHED_AFTER + 1)
        assert not spare(subscriber).is_ready
        assert not net.mailboxes
        setattr(net.wires, trouble, False)
        assert PUBLISHED_AFTER < await subscribed_after(subscriber) < 2 * PUBLISHED_AFTER
        assert await works(net)


async def test_one_that_is_not_published_yet_is_not_taken() -> None:
    async with world() as net:
        (subscriber,) = net.clients
        before = await spare_address(net)
        spare(subscriber).renew()
        await trio.sleep(PUBLISHED_AFTER / 2)
        assert net.mailboxes.keys() != {before}
        assert await subscribed_after(subscriber) > PUBLISHED_AFTER
        assert subscriber.route().mailboxes[0].address not in (before, None)
        assert await works(net)


async def test_one_that_is_found_in_the_turn_in_which_it_is_closed_is_not_taken() -> None:
    async with world() as net:
        (subscriber,) = net.clients
        await spare_address(net)
        for _ in range(20):  # which of two tasks goes first in a turn is drawn
            spare(subscriber).renew()
            await trio.sleep(1)
            (address,) = net.mailboxes
            listener = net.wires.listeners[address]
            assert isinstance(listener, SlowListener)
            listener.is_found.set()
            spare(subscriber).renew()
            await trio.sleep(1)
            if spare(subscriber).is_ready:
                break
        assert await works(net)


async def test_it_does_not_come_back_with_the_other_mailboxes_when_tor_does() -> None:
    async with world() as net:
        (subscriber,) = net.clients
        taken = await spare_address(net)
        await subscriber.listen()
        spare(subscriber).renew()
        await until(lambda: spare(subscriber).is_ready)
        for listener in list(net.wires.listeners.values()):
            assert isinstance(listener, SlowListener)
            listener.tor_is_gone.set()
        await trio.sleep(1)
        assert not spare(subscriber).is_ready
        assert list(net.mailboxes) == [taken]
        assert await subscribed_after(subscriber, TWO) > PUBLISHED_AFTER
        assert await works(net)


async def test_it_closes_with_the_subscription_that_took_it_and_with_the_daemon() -> None:
    async with world() as net:
        (subscriber,) = net.clients
        taken = await spare_address(net)
        await subscriber.listen()
        await subscriber.daemon.service.unsubscribe(ONE)
        await until(lambda: not net.mailboxes)
        assert net.wires.closed == [taken]
        spare(subscriber).renew()
        left = await spare_address(net)
        await subscriber.stop()
        assert net.wires.closed.count(left) == 2  # by the daemon, and by the end of its process
