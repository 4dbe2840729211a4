"""Chance breaks the circuit of a busy link once, and what waits then goes out slower than more comes in.

The next hop lags further and further behind, until its share of the spool is full and messages are lost.
"""

from __future__ import annotations

import pytest
import small_network as networks
import trio
from hosted_network import in_use
from small_network import ONE, derive, small_network, until

from hushcast_protocol.content.bodies import Content, compose
from hushcast_protocol.content.tokens import published_tokens

WAY = 0.5  # seconds one way: a round trip of one, as circuits between onion services have
RATE = 40  # messages a second
BREAK, LAST = 5.0, 35.0  # seconds after the first message
CAUGHT_UP = 2.0  # seconds that the newest message delivered is old; without a break it is 0.5


@pytest.mark.slow
async def test_a_link_catches_up_while_more_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(networks, "SHORTEST_WAY", 0.9 * WAY)
    monkeypatch.setattr(networks, "LONGEST_WAY", 1.1 * WAY)
    async with small_network(relays=2, clients=1, epoch=36_000, depth=1, origins=1, late_routes=False) as net:
        ear = await net.clients[0].listen()
        top = next(one for one in net.relays if one is not in_use(net, net.clients[0]))
        relay = top.daemon.overlay.relay
        assert relay is not None
        day = net.calendar.day(net.now)
        key, began = derive(ONE, net.net.id, day), trio.current_time()
        sent: dict[bytes, float] = {}
        arrived: list[float] = []
        lags: list[float] = []

        async def publish() -> None:
            for number in range(int(RATE * LAST)):
                await trio.sleep_until(began + number / RATE)
                content = Content(b"%d" % number)
                sent[content.payload] = trio.current_time()
                tokens = published_tokens(key, ONE, {}, net.env.randomness)
                receipt = await relay.drops.take(compose(key, day, tokens, content, net.env.randomness))
                assert receipt.verdict == "accepted"

        async def look() -> None:
            while True:
                await trio.sleep(0.25)
                if ear.heard:
                    arrived.append(trio.current_time() - began)
                    lags.append(trio.current_time() - sent[ear.heard[-1].payload])

        net.nursery.start_soon(publish)
        net.nursery.start_soon(look)
        await trio.sleep(BREAK)
        peer = next(peer for peer in relay.peers._peers.values() if peer.links)
        peer.links[-1].give_up()
        await until(lambda: len(set(ear.payloads)) == RATE * LAST, LAST, "all have come")
        behind = [at for at, lag in zip(arrived, lags, strict=True) if lag > CAUGHT_UP and at < LAST]
        assert max(behind, default=BREAK) < BREAK + 10, f"the largest lag is {max(lags):.1f} s"
        assert top.count("messages_over_share") == 0
        assert not peer.backlog
