"""Thousands of leases of one topic are led elsewhere at once: what waited follows in short steps."""

from __future__ import annotations

import os

import pytest
import trio
from owner_end import TRUNK, card_of, drop, message
from small_network import small_network, until

from hushcast_protocol.content.hops import Hop
from hushcast_protocol.overlay.elements import ORIGIN, element
from hushcast_protocol.overlay.hops import host_hop, relay_hop
from hushcast_protocol.overlay.leases import Install, Lease, ToHost, lease_mark
from hushcast_runtime.storage import spool

LEASES = 1500
LONG = 4 * 3600


@pytest.mark.slow
async def test_no_step_is_long_however_many_leases_are_led_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool, "MAX_SHARE", 10**9)
    async with small_network(relays=2, clients=0, epoch=LONG) as net:
        top, first = net.relays
        card, day = card_of(first), net.calendar.day(net.now)
        relay = top.daemon.overlay.relay
        assert relay is not None
        elements = (element(net.profile, TRUNK, top.id, ORIGIN),)
        install = Install(os.urandom(16), day, ToHost(card), elements, lease_mark(TRUNK, top.id), bytes(16))
        await relay.leases.install(install, paid=True)
        await first.stop()
        sent = [message(day) for _ in range(2)]
        await drop(net, top, *sent)
        dead: list[Hop] = [relay_hop(number.to_bytes(32, "big")) for number in range(1, LEASES + 1)]
        bypass = os.urandom(16)
        for number, hop in enumerate(dead):  # as if each had led to the first host before
            held = (elements, install.mark, bypass, host_hop(first.id))
            relay.leases.book.restore(Lease(os.urandom(16), day, hop, None, *held))
            if number % 100 == 0:
                await trio.lowlevel.checkpoint()
        relay.moved.resume()
        await until(lambda: top.count("messages_moved") == len(sent) * LEASES, 600)
        await until(lambda: relay.leases.book.moves.left() == [], 60)
        assert relay.peers._spool.shares[host_hop(first.id)] == sum(len(one.body) for one in sent)
