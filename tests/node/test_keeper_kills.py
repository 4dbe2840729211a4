"""Keepers are killed at any moment under traffic that nothing but they bring."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from hosted_network import in_use, subscribed
from kept_network import keepers_of, kept_network
from late_disk import LateDisk
from small_network import ONE, Node, SmallNetwork

from hushcast_protocol.content.bodies import Content
from hushcast_protocol.content.messages import Message
from hushcast_protocol.overlay.profile import Root

EPOCH = 300  # seconds
SOON = 0.6  # seconds after a message was published in which a keeper is killed: it is on its way to it
AWAY = 5.0  # seconds at most until it is started again


def loses_in_trees(node: Node) -> None:
    """Have a relay acknowledge what trees bring, and lose it; what is dropped there it hands in."""
    forwarding: Any = node.daemon.overlay.relay.forwarding  # type: ignore[union-attr]

    async def took(messages: list[Message], previous: bytes, only: Any = None) -> list[int]:
        await trio.lowlevel.checkpoint()
        return []

    forwarding.take = took


async def until_behind(disk: Any) -> None:
    """Wait until something is on its way to a disk, if it is soon: few drawn moments are such."""
    with trio.move_on_after(SOON):
        while not disk.is_behind:  # noqa: ASYNC110 - a disk of tests tells nobody
            await trio.sleep(0.005)


async def killed_under_traffic(net: SmallNetwork, moments: int) -> None:
    """Kill a keeper of the day, or the host, at so many moments; all that has a receipt comes, once."""
    subscriber, publisher = net.clients
    for node in net.relays:
        await node.stop()
        node.store = LateDisk(node.store, net.env)
        await node.start()
        loses_in_trees(node)
    await subscribed(subscriber)
    await trio.sleep(2 * 60)  # the first questions are over
    ear = await subscriber.listen()
    host = in_use(net, subscriber)
    sent: list[bytes] = []
    killed: set[str] = set()
    for _ in range(moments):
        publication = await publisher.daemon.service.publish(ONE, Content(b"%d" % len(sent)))
        sent.append(publication.message.id)
        victims = [*keepers_of(net, publication.message, host), host]
        victim = victims[net.env.below(len(victims))]
        if net.env.below(2):
            await trio.sleep(net.env.uniform(0.0, SOON))
        else:
            await until_behind(victim.store)
        await victim.stop()
        await trio.sleep(net.env.uniform(0.0, AWAY))
        await victim.start()
        loses_in_trees(victim)
        killed.add(victim.name)
        await trio.sleep(net.env.uniform(0.0, 30.0))
    await trio.sleep(3 * EPOCH)
    assert sorted(one.id for one in ear.heard) == sorted(sent)
    assert len(killed) > 1
    assert subscriber.count("messages_from_audits") == publisher.count("publications_dropped_anew") == 0
    assert net.count("messages_from_keepers") > 0
    assert sum(node.store.lost for node in net.relays if isinstance(node.store, LateDisk)) > 0


@pytest.mark.slow
async def test_nothing_is_lost_or_comes_twice_whichever_keepers_are_killed_when() -> None:
    async with kept_network(relays=9, clients=2, epoch=EPOCH, root=Root.HOST) as net:
        await killed_under_traffic(net, 10)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(2))
async def test_nothing_is_lost_or_comes_twice_at_two_hundred_moments(seed: int) -> None:
    async with kept_network(relays=9, clients=2, epoch=EPOCH, seed=seed, root=Root.HOST) as net:
        await killed_under_traffic(net, 100)
