"""A host keeps an owner busy, to see which of its other boxes become slow: it alone is slowed."""

from __future__ import annotations

import os
from typing import Any

import pytest
import trio
from hosted_network import box_of, in_use
from small_network import ONE, TWO, small_network

from hushcast_overlay.routes import host_link
from hushcast_protocol.content.bodies import Content
from hushcast_protocol.content.messages import TRAIL_SIZE, Message, message_id
from hushcast_protocol.overlay.frames import Forward, Ping
from hushcast_runtime.transports import drawn_answers


@pytest.mark.slow
@pytest.mark.parametrize("with_pings", [False, True])
async def test_a_host_brings_so_many_frames_and_no_more(
    monkeypatch: pytest.MonkeyPatch, with_pings: bool
) -> None:
    monkeypatch.setattr(drawn_answers, "HEARD_A_SECOND", 5.0)
    monkeypatch.setattr(drawn_answers, "HEARD_AT_ONCE", 50.0)
    async with small_network(relays=4, clients=1, epoch=3600, origins=1, seed=2) as net:  # two hosts
        reader = net.clients[0]
        ear, other = await reader.listen(ONE), await reader.listen(TWO)
        mole = in_use(net, reader)
        box = box_of(reader).key
        assert box_of(reader, TWO).hosts.current != mole.id
        assert mole.daemon.overlay.relay is not None
        day = net.calendar.day(net.now)
        links: Any = mole.daemon.overlay.relay.box_links
        honest, hear = links.acknowledged, host_link.HostLink._hear
        count = 0

        def acknowledged(link: Any, number: int) -> None:
            if link.box != box:
                honest(link, number)
            else:
                links.heard(link)

        def counted(link: host_link.HostLink, frame: Any) -> None:
            nonlocal count
            count += link is box_of(reader).link(mole.id)
            hear(link, frame)

        async def flood() -> None:
            while True:
                frame: Ping | Forward = Ping()
                if not with_pings:
                    body = os.urandom(1167)
                    frame = Forward(
                        Message(message_id(day, body), day, (bytes(16),), bytes(TRAIL_SIZE), body)
                    )
                links._links[box].writer.post(frame)
                await trio.sleep(0.1)  # twice as many as the owner takes

        links.acknowledged = acknowledged
        monkeypatch.setattr(host_link.HostLink, "_hear", counted)
        async with trio.open_nursery() as attack:
            attack.start_soon(flood)
            await trio.sleep(60)
            one_read = 20  # of frames that came while the owner waited; for these it waits afterwards
            assert 50 + 50 * 5 <= count <= 50 + 60 * 5 + one_read
            began = net.now
            for number, relay in enumerate(net.relays):
                if relay is not mole:
                    await net.drop_at(relay, TWO, Content(b"%d" % number))
            await other.hears(3)
            assert net.now - began < 10
            attack.cancel_scope.cancel()
        await mole.restart()
        await net.drop_at(mole, ONE, Content(b"later"))
        await ear.hears(1)
