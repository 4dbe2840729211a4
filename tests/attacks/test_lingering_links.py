"""A relay opens link after link and sends a message on each, so that those which give way linger.

Each was left only once its message was taken, and that waits for as long as the relay that sent it owes. So
it kept its place among all connections under a name, behind which honest relays and owners are refused.
"""

from __future__ import annotations

import os

import pytest
import test_wide_batches
import trio
from small_network import small_network
from test_wide_batches import point_at_many

from hushcast_overlay.relay import rate_limiter
from hushcast_protocol.base.link.hop import MAX_LINKS_A_PEER
from hushcast_protocol.content.messages import TRAIL_SIZE, Message, message_id
from hushcast_protocol.overlay.frames import Forward
from hushcast_runtime.transports.connection_guard import ConnectionGuard

LINKS = 60


async def test_links_that_gave_way_hold_no_place(monkeypatch: pytest.MonkeyPatch) -> None:
    # Each message owes a minute: as much as at the true rate after 350,000 of them.
    monkeypatch.setattr(rate_limiter, "FORWARDS_AT_ONCE", 1.0)
    monkeypatch.setattr(rate_limiter, "FORWARDS_A_SECOND", 1 / 60)
    monkeypatch.setattr(test_wide_batches, "HOPS", 1)
    guards: list[ConnectionGuard[object]] = []
    admit = ConnectionGuard.admit

    async def noted(guard: ConnectionGuard[object], stream: trio.abc.Stream) -> bool:
        guards.append(guard)
        return await admit(guard, stream)

    monkeypatch.setattr(ConnectionGuard, "admit", noted)
    async with small_network(relays=2, clients=0, epoch=36_000) as net:
        relay, hostile = net.relays
        assert hostile.identity is not None
        token, day = point_at_many(net, relay, hostile), net.calendar.day(net.now)
        links = []
        for _ in range(LINKS):
            links.append(await net.knock(relay, hostile.identity.seed))
            await trio.sleep(0.1)
            body = os.urandom(1167)
            message = Message(message_id(day, body), day, (token,), bytes(TRAIL_SIZE), body)
            await links[-1].send(Forward(message))
            await trio.sleep(0.1)
        await trio.sleep(5)
        assert 0 < max(guard._named for guard in guards) <= MAX_LINKS_A_PEER + 1
