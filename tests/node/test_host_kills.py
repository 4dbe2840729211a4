"""Hosts, owner and top relays are killed at any moment under traffic, and boxes move meanwhile."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import trio
from hosted_network import hosts_of, subscribed
from late_disk import LateDisk
from small_network import ONE, Node, small_network, until

from hushcast_protocol.content.bodies import Content

EPOCH = 300  # seconds
MOMENTS = 100  # of kills
SOON = 0.6  # seconds after a message was published in which somebody is killed: it is on its way
PUBLISHED_UNTIL = 17  # epochs of a day: what waits for a host lapses with its day

Ends = dict[str, trio.Lock]
"""Who is down is started again by who killed it."""


async def kill(locks: Ends, victim: Node, away: float, until_then: Callable[[], bool] | None = None) -> bool:
    """Kill a daemon, and start it again after so many seconds or later; return whether it was up."""
    lock = locks.setdefault(victim.name, trio.Lock())
    if lock.locked():
        return False
    async with lock:
        await victim.stop()
        await trio.sleep(away)
        if until_then is not None:
            await until(until_then, PUBLISHED_UNTIL * EPOCH)
        await victim.start()
    return True


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.soak)])
async def test_nothing_is_lost_or_comes_twice_whoever_is_killed_when(seed: int) -> None:
    """A hundred moments in a network; the first host is away for long enough three times.

    The first time until relays were told of the other one, which is at a drawn moment.
    """
    async with small_network(relays=7, epoch=EPOCH, seed=seed, origins=1) as net:
        subscriber, publisher = net.clients
        for node in (*net.relays, subscriber):
            await node.stop()
            node.store = LateDisk(node.store, net.env)
            await node.start()
        await subscribed(subscriber)
        hosts = hosts_of(net, subscriber)
        locks: Ends = {}
        used: set[bytes] = set()
        killed: set[str] = set()
        sent: list[bytes] = []
        count, published = 0, trio.Event()

        def have_moved() -> bool:
            return net.count("messages_moved") > 0

        async def outages() -> None:
            killed.add(hosts[0].name)  # others' moments may all be such at which it is away
            for until_then in (have_moved, None, None):
                await trio.sleep(net.env.uniform(0.0, EPOCH))
                while not await kill(locks, hosts[0], net.env.uniform(2.5, 3.5) * EPOCH, until_then):  # noqa: ASYNC110
                    await trio.sleep(SOON)

        async def kills() -> None:
            nonlocal count
            while count < MOMENTS:
                await published.wait()
                await trio.sleep(net.env.uniform(0.0, SOON))
                victim = (*hosts, subscriber, *net.relays)[net.env.below(10)]
                if await kill(locks, victim, net.env.uniform(0.0, 5.0)):
                    count += 1
                    killed.add(victim.name)

        async with trio.open_nursery() as nursery:
            # Where nobody publishes any more nobody is killed, and moments that lack would be waited for.
            nursery.cancel_scope.deadline = trio.current_time() + 24 * EPOCH
            nursery.start_soon(outages)
            nursery.start_soon(kills)
            while net.calendar.epoch(net.now) % 24 < PUBLISHED_UNTIL:
                sent.append(b"%d" % len(sent))
                await publisher.daemon.service.publish(ONE, Content(sent[-1]))
                published.set()
                published = trio.Event()
                await trio.sleep(net.env.uniform(0.0, 40.0))
                held = subscriber.daemon.overlay.routes.held  # none while it starts
                used |= {route.box.hosts.current for route in held if route.box is not None}
        assert count == MOMENTS
        assert len(killed) == len(net.relays) + 1
        assert len(used) == 2
        assert sum(node.store.lost for node in net.nodes if isinstance(node.store, LateDisk)) > 0
        assert net.count("messages_moved") > 0
        ear = await subscriber.listen()
        assert sorted(await ear.hears(len(sent), 3 * EPOCH)) == sorted(sent)
        await trio.sleep(2 * EPOCH)
        assert sorted(ear.payloads) == sorted(sent)
