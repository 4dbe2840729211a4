"""Somebody who opens connections and says nothing, again and again, wants the doors of directory and relays.

They have more connections than the doors have places, prove nothing and ask nothing. At the directory they
want honest relays to miss their renewals, so that only their own are listed; at a relay they want nobody
else to get in; and the same of its links, by a relay that the roster lists and that opens ever more of them.
"""

from __future__ import annotations

from contextlib import suppress

import pytest
import trio
from hosted_network import in_use, subscribed
from small_network import ONE, SmallNetwork, small_network

from hushcast_directory.server import directory_server
from hushcast_node import relay_adapter
from hushcast_protocol.authorities.heads import head_digest
from hushcast_protocol.base.addresses import Address
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.link.hop import MAX_LINKS_A_PEER
from hushcast_protocol.base.link.links import Link
from hushcast_protocol.content.bodies import Content
from hushcast_protocol.overlay.frames import MAX_OVERLAY_FRAME, decode_overlay
from hushcast_runtime.transports import connection_guard
from hushcast_runtime.transports.base import TransportError
from hushcast_runtime.transports.channel import Channel, open_channel

PLACES = 8
STRANGERS = 18  # at once, as many to a place as in the attack that worked
PAUSE = 1.0  # seconds until one that was shut comes again: to a door of 1,024 places 1,500 a second in all


async def besiege(net: SmallNetwork, address: Address) -> None:
    """Hold `STRANGERS` silent connections to an address, a new one as soon as one is shut."""

    async def knock() -> None:
        transport = net.wires.transport()
        while True:
            with suppress(TransportError, trio.BrokenResourceError):
                stream = await transport.connect(address, "x")
                while await stream.receive_some():
                    pass
                await stream.aclose()
            await trio.sleep(PAUSE)

    for _ in range(STRANGERS):
        net.nursery.start_soon(knock)
    await trio.sleep(5)


@pytest.mark.slow
async def test_honest_relays_stay_in_the_roster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(directory_server, "MAX_CONNECTIONS", PLACES)
    async with small_network(relays=4, clients=1) as net:
        await besiege(net, net.directory.address)
        directory = net.directory
        newest = directory.epoch
        for epoch in range(newest + 1, newest + 6):
            await net.sleep_until(net.calendar.epoch_start(epoch) + 1)
            assert directory.epoch == epoch
            ours = {node.id for node in net.relays}
            assert set(directory.roll.listed()) == ours
            # None is only carried on: each could renew what it handed in before the flood.
            held = directory.roll._descriptors
            assert all(held[relay][0].expires > net.calendar.epoch_start(epoch) for relay in ours)
        shown, _ = directory.agreeing._archive.after(None)
        assert shown is not None
        last = head_digest(shown.certified.head)
        held_rosters = [node.daemon.overlay.rosters.newest for node in net.nodes]
        followed = [roster for roster in held_rosters if roster is not None and roster.digest == last]
        assert len(followed) >= len(net.nodes) - 1  # one may be about to ask again


@pytest.mark.slow
async def test_relays_that_a_flood_shuts_out_are_reached_and_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nobody honest comes through at all; a relay that is gone falls out as ever."""
    monkeypatch.setattr(directory_server, "MAX_CONNECTIONS", 1)
    async with small_network(relays=4, clients=1) as net:
        begun = net.directory.epoch
        await besiege(net, net.directory.address)
        await net.relays[0].stop()
        await net.sleep_until(net.calendar.epoch_start(begun + 6))
        assert set(net.directory.roll.listed()) == {node.id for node in net.relays[1:]}
        assert net.directory.epoch >= begun + 6


async def test_a_relay_still_lets_others_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_guard, "MAX_STRANGERS", PLACES)
    monkeypatch.setattr(relay_adapter, "MAX_CONNECTIONS", PLACES)
    async with small_network(relays=3, clients=2) as net:
        ear = await net.clients[0].listen()
        for node in net.relays:
            await besiege(net, net.directory_entry(node))
        for number in range(3):
            await net.clients[1].daemon.service.enqueue(ONE, Content(b"%d" % number))
        assert sorted(await ear.hears(3, 600.0)) == [b"0", b"1", b"2"]
        assert net.count("strangers_dropped") > 0


async def test_a_host_still_lets_owners_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_guard, "MAX_STRANGERS", PLACES)
    async with small_network(relays=3, clients=2) as net:
        await subscribed(net.clients[0])
        await besiege(net, net.directory_entry(in_use(net, net.clients[0])))
        await net.clients[0].restart()
        ear = await net.clients[0].listen()
        await net.clients[1].daemon.service.publish(ONE, Content(b"heard"))
        assert await ear.hears(1) == [b"heard"]


async def link(net: SmallNetwork, us: Seed, to: bytes, address: Address) -> Channel[object]:
    opening = Link.initiate(net.net.id, to, net.env.randomness, MAX_OVERLAY_FRAME, us)
    channel, _ = await open_channel(net.wires.transport(), address, "x", opening, decode_overlay)
    return channel


async def is_shut(channel: Channel[object]) -> bool:
    with trio.move_on_after(1), suppress(TransportError):
        return await channel.receive() == []
    return False


async def test_a_listed_relay_has_only_so_many_links() -> None:
    async with small_network(relays=3, clients=0) as net:
        mole, other, _ = net.relays
        assert mole.identity is not None
        await mole.stop()
        address = net.directory_entry(other)
        channels = [
            await link(net, mole.identity.seed, other.id, address) for _ in range(3 * MAX_LINKS_A_PEER)
        ]
        await trio.sleep(1)
        shut = [await is_shut(channel) for channel in channels]
        assert shut == [True] * 2 * MAX_LINKS_A_PEER + [False] * MAX_LINKS_A_PEER
