"""Leases are pointed at hosts that never were: a relay dials few of them, and honest ones first."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from typing import Any

import pytest
import trio
from small_network import ONE, Node, SmallNetwork, small_network, until

from hushcast_overlay.relay import dials
from hushcast_overlay.relay.dials import Dials
from hushcast_protocol.base.addresses import Address, memory_address
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.wire import PublicKey
from hushcast_protocol.content.bodies import Content
from hushcast_protocol.content.hops import Hop
from hushcast_protocol.content.messages import TRAIL_SIZE, Message, message_id
from hushcast_protocol.overlay.elements import ORIGIN, element
from hushcast_protocol.overlay.frames import Drop, Receipt
from hushcast_protocol.overlay.hops import is_host, relay_hop
from hushcast_protocol.overlay.host_cards import make_host_card
from hushcast_protocol.overlay.leases import Install, ToHost
from hushcast_runtime.transports.channel import Channel

DEAD = 200
ATTEMPT = 20.0  # seconds that tor takes to say that an onion service is not there


def point_at_the_dead(net: SmallNetwork, relay: Node, token: bytes, count: int) -> None:
    """Install leases whose hosts signed their cards, and are nowhere."""
    assert relay.daemon.overlay.relay is not None
    day = net.calendar.day(net.now)
    for _ in range(count):
        host, service = Seed(os.urandom(32)), Seed(os.urandom(32))
        card = make_host_card(host, service, memory_address(service.public()))
        elements = (element(net.profile, token, relay.id, ORIGIN),)
        install = Install(os.urandom(16), day, ToHost(card), elements, os.urandom(16), os.urandom(16))
        relay.daemon.overlay.relay.leases.book.install(install, net.now)


class Dialled:
    """Counts a relay's attempts to open links, each of which takes as long as over Tor."""

    def __init__(self, relay: Node, alive: set[bytes]) -> None:
        assert relay.daemon.overlay.relay is not None
        self.count = self.at_once = self.most = 0
        self._alive = alive
        self._connector = relay.daemon.overlay.relay.peers._connector
        self._named = self._connector.named
        self._connector.named = self._dial  # type: ignore[method-assign]

    async def _dial(
        self, us: Seed, peer: PublicKey, address: Address, decode: Callable[[bytes], Any]
    ) -> Channel[Any]:
        self.count += 1
        self.at_once += 1
        self.most = max(self.most, self.at_once)
        try:
            await trio.sleep(1.0 if peer in self._alive else ATTEMPT)
            return await self._named(us, peer, address, decode)
        finally:
            self.at_once -= 1


@pytest.mark.parametrize("with_a_message", [True, False])
async def test_dead_hosts_are_dialled_a_few_at_once(
    monkeypatch: pytest.MonkeyPatch, with_a_message: bool
) -> None:
    monkeypatch.setattr(dials, "MAX_DIALS", 8)
    async with small_network(relays=3, clients=1, epoch=3600, origins=1) as net:
        victim = net.relays[0]
        assert victim.daemon.overlay.relay is not None
        token = os.urandom(16)
        point_at_the_dead(net, victim, token, DEAD)
        dialled = Dialled(victim, {node.id for node in net.relays})
        relay = victim.daemon.overlay.relay
        relay.kept_links.prepare(relay.leases.book.next_hops()[0])
        if with_a_message:
            day = net.calendar.day(net.now)
            body = os.urandom(1167)
            channel = await net.knock(victim)
            await channel.send(
                Drop(Message(message_id(day, body), day, (token,), bytes(TRAIL_SIZE), body), None)
            )
            assert await channel.one(60) == Receipt("accepted")
            await channel.aclose()
        await trio.sleep(600)
        assert dialled.most <= 8 + len(net.relays)
        assert dialled.count <= 600 / ATTEMPT * 8 + 20

        # Its host was never dialled either: it comes before those that failed.
        ear = await net.clients[0].listen()
        began = net.now
        for number, relay in enumerate(net.relays):
            await net.drop_at(relay, ONE, Content(b"%d" % number))
        await ear.hears(3)
        assert net.now - began < 3 * ATTEMPT


async def test_who_answered_before_is_dialled_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dials, "MAX_DIALS", 1)
    turns = Dials()
    known, fresh, dead, deader = (relay_hop(bytes([number]) * 32) for number in range(4))
    turns.answered(known)
    turns.failed(known)
    turns.failed(dead)
    turns.failed(deader)
    turns.failed(deader)
    order: list[Hop] = []

    async def dial(hop: Hop) -> None:
        async with turns.turn(hop):
            order.append(hop)
            await trio.sleep(1)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(dial, relay_hop(bytes(32)))
        await trio.testing.wait_all_tasks_blocked()
        order.clear()
        for hop in (deader, dead, fresh, known):
            nursery.start_soon(dial, hop)
            await trio.testing.wait_all_tasks_blocked()
    assert order == [known, fresh, dead, deader]


@pytest.mark.parametrize("kind", ["never seen before", "such as answered before"])
async def test_ever_new_next_hops_keep_none_out_for_good(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    monkeypatch.setattr(dials, "MAX_DIALS", 1)
    monkeypatch.setattr(dials, "BEHIND", 10)
    turns = Dials()
    honest = relay_hop(bytes(32))
    turns.failed(honest)
    reached = trio.Event()

    async def dial(hop: Hop) -> None:
        async with turns.turn(hop):
            await trio.sleep(1)
            if hop == honest:
                reached.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(dial, relay_hop(b"x" * 32))
        nursery.start_soon(dial, honest)
        with trio.fail_after(200):
            for number in itertools.count():
                hop = relay_hop((number + 1).to_bytes(32, "little"))
                if kind != "never seen before":
                    turns.answered(hop)
                nursery.start_soon(dial, hop)
                await trio.sleep(0.9)
                if reached.is_set():
                    break
        nursery.cancel_scope.cancel()


async def test_a_turn_that_nobody_waits_for_any_more_goes_to_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(dials, "MAX_DIALS", 1)
    turns = Dials()
    hop = relay_hop(bytes(32))
    for _ in range(3):
        async with turns.turn(hop):
            with trio.move_on_after(1):
                async with turns.turn(hop):
                    raise AssertionError("two at once")
    with trio.fail_after(1):
        async with turns.turn(hop):
            pass


async def test_memory_of_who_answered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dials, "MAX_KNOWN", 10)
    turns = Dials()
    for number in range(20):
        turns.failed(relay_hop(bytes([number]) * 32))
    assert len(turns._known) == 10


@pytest.mark.slow
async def test_links_that_are_there_are_kept_whatever_was_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hushcast_overlay.relay.kept_links.MAX_KEPT", 4)
    monkeypatch.setattr(dials, "MAX_DIALS", 2)
    async with small_network(relays=3, clients=1, epoch=7200, origins=1) as net:
        await net.clients[0].listen()
        (planned,) = net.clients[0].route().planned.values()
        top = next(
            net.relay(key) for key, above in planned.installation.tree.parents.items() if above is None
        )
        assert top.daemon.overlay.relay is not None
        peers = top.daemon.overlay.relay.peers
        host = next(hop for hop in top.daemon.overlay.relay.leases.book.next_hops() if is_host(hop))
        await until(lambda: peers.is_linked(host), 60)
        point_at_the_dead(net, top, os.urandom(16), DEAD)
        for _ in range(60):
            await trio.sleep(60)
            assert peers.is_linked(host)
