"""A daemon whose clock is wrong for a while, by accident or a forged time service: it loses nothing by it."""

from __future__ import annotations

import pytest
import trio
from small_network import DAY_SECONDS, EPOCH_SECONDS, ONE, Node, network_with_clocks_set, until

from hushcast_protocol.content.bodies import Content

MONTH = 30 * 86_400.0


@pytest.mark.slow
@pytest.mark.parametrize("ahead", [2.0 * DAY_SECONDS, MONTH, -2.0 * DAY_SECONDS])
@pytest.mark.parametrize("epochs", [1, 5])
async def test_a_relay_with_a_wrong_clock_keeps_its_leases_and_works_on(ahead: float, epochs: int) -> None:
    async with network_with_clocks_set(relays=4, epoch=EPOCH_SECONDS, origins=1) as net:
        ear = await net.clients[0].listen()
        box = net.clients[0].route().box
        assert box is not None
        relay = next(one for one in net.relays if one.id != box.hosts.current)  # with a seat in the tree
        relay.set_clock(ahead)
        for number in range(epochs):
            await net.drop_at(relay, ONE, Content(b"%d" % number))
            await trio.sleep(EPOCH_SECONDS)
        assert net.leases()[relay.name] == 1
        relay.set_clock(0.0)
        await trio.sleep(EPOCH_SECONDS)
        await net.drop_at(relay, ONE, Content(b"after"))
        assert await ear.hears(epochs + 1) == [*(b"%d" % number for number in range(epochs)), b"after"]
        assert net.leases()[relay.name] == 1
        assert relay.count("refused_day") == relay.count("messages_expired") == 0


@pytest.mark.slow
async def test_a_client_with_a_wrong_clock_keeps_its_unread_messages() -> None:
    async with network_with_clocks_set(relays=3, epoch=600) as net:
        client = net.clients[0]
        ear = await client.listen()
        ear.close()
        for number in range(5):
            await net.clients[1].daemon.service.publish(ONE, Content(b"%d" % number))
        await until(lambda: client.count("messages_delivered") == 5)
        await net.directory.stop()  # nobody is there who could tell
        client.set_clock(22 * 86_400.0)
        await trio.sleep(2 * 600 + 120)  # so long that the time is taken
        assert client.daemon.status()["clock"] == {"certain": False, "disputed": False, "jump": 0}
        client.set_clock(0.0)
        await net.directory.start()
        await trio.sleep(3 * 600)
        assert client.daemon.status()["clock"] == {"certain": True, "disputed": False, "jump": 0}
        assert await read_again(client, 5) == [b"%d" % number for number in range(5)]
        await net.clients[1].daemon.service.publish(ONE, Content(b"after"))
        await until(lambda: client.count("messages_delivered") == 6)


@pytest.mark.slow
async def test_a_client_that_starts_with_a_wrong_clock_keeps_its_unread_messages() -> None:
    async with network_with_clocks_set(relays=3, epoch=600) as net:
        client = net.clients[0]
        ear = await client.listen()
        ear.close()
        await net.clients[1].daemon.service.publish(ONE, Content(b"x"))
        await until(lambda: client.count("messages_delivered") == 1)
        await client.stop()
        net.skews = {client.name: 22 * 86_400.0}
        await client.start()
        await trio.sleep(600)
        assert client.daemon.status()["clock"]["disputed"]
        client.set_clock(0.0)
        await trio.sleep(2 * 600)
        assert client.daemon.status()["clock"] == {"certain": True, "disputed": False, "jump": 0}
        assert await read_again(client, 1) == [b"x"]


async def read_again(client: Node, count: int) -> list[bytes]:
    ear = await client.listen()
    heard = await ear.hears(count)
    ear.close()
    return heard


async def test_a_message_published_by_a_wrong_clock_arrives() -> None:
    async with network_with_clocks_set(relays=4) as net:
        ear = await net.clients[0].listen()
        for ahead in (2.0 * DAY_SECONDS, -2.0 * DAY_SECONDS):
            net.clients[1].set_clock(ahead)
            await net.clients[1].daemon.service.publish(ONE, Content(b"x"))
            net.clients[1].set_clock(0.0)
        await ear.hears(2)


@pytest.mark.slow
async def test_a_relay_that_lost_its_leases_hands_on_until_the_next_day() -> None:
    async with network_with_clocks_set(relays=6, clients=1, origins=1) as net:
        ear = await net.clients[0].listen()
        subscription = net.clients[0].route()
        tree = next(iter(subscription.planned.values())).installation.tree
        leaf = next(net.relay(relay) for relay in tree.parents if not tree.children.get(relay))
        assert leaf.daemon.overlay.relay is not None
        book = leaf.daemon.overlay.relay.leases.book
        for _ in book.lapse(net.now + 10 * 24 * 3600):
            pass
        await net.drop_at(leaf, ONE, Content(b"handed on"))
        assert len(book) == 0
        assert await ear.hears(1) == [b"handed on"]
        assert leaf.count("drops_handed_on") == 1
        await net.sleep_until(net.calendar.day_start(net.calendar.day(net.now) + 1) + EPOCH_SECONDS)
        assert len(book) == 1
        await net.drop_at(leaf, ONE, Content(b"x"))
        assert await ear.hears(2) == [b"handed on", b"x"]
        assert leaf.count("drops_handed_on") == 1


async def start_wrong(node: Node, ahead: float) -> None:
    """Restart a daemon on a machine whose clock is wrong; nobody has told it yet."""
    await node.stop()
    await node.network.directory.stop()
    node.network.skews = {node.name: ahead}
    node.network.waits = False
    await node.start()


@pytest.mark.parametrize("ahead", [2.0, -2.0])
async def test_a_relay_that_starts_with_a_wrong_clock_keeps_what_it_accepted(ahead: float) -> None:
    async with network_with_clocks_set(relays=3, clients=1, epoch=600, origins=1) as net:
        ear = await net.clients[0].listen()
        relay = net.relays[0]
        assert relay.daemon.overlay.relay is not None
        tried, forwarding = trio.Event(), relay.daemon.overlay.relay.forwarding
        forwarding._spool.is_roomy = lambda *_: False  # type: ignore[method-assign]
        forwarding._placing.place = lambda *_: (tried.set(), ([], True))[1]  # type: ignore
        await net.drop_at(relay, ONE, Content(b"x"))
        await tried.wait()
        await start_wrong(relay, ahead * net.calendar.day_seconds)
        await trio.sleep(60)
        assert relay.count("messages_expired") == 0
        relay.set_clock(0.0)
        await net.directory.start()
        assert await ear.hears(1, 1200) == [b"x"]


async def test_a_clock_that_is_set_sends_nothing_around() -> None:
    async with network_with_clocks_set(relays=6, clients=1, epoch=4 * 3600, origins=1) as net:
        await net.clients[0].listen()
        tree = next(iter(net.clients[0].route().planned.values())).installation.tree
        top = next(relay for relay in tree.children[None] if tree.children.get(relay))
        origin = net.relay(tree.children[top][0])
        await net.relay(top).stop()
        await net.drop_at(origin, ONE, Content(b"x"))
        await trio.sleep(3)
        origin.set_clock(60.0)
        await trio.sleep(10)
        assert origin.count("next_hops_away") == 0
