"""A topic is flooded with what is never shown, then a message repeated: it must not be shown again."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from small_network import Node, SmallNetwork, derive, small_network

from hushcast_local import inbox
from hushcast_protocol.content.bodies import Content, compose
from hushcast_protocol.content.messages import Message
from hushcast_protocol.content.tokens import published_tokens
from hushcast_protocol.content.topics import make_topic
from hushcast_protocol.overlay.forwarding import RecentIds
from hushcast_protocol.overlay.frames import Drop, Receipt

FIRES = make_topic("fires", ["kind", "lat:-90..90:0.001"])


def a_message(net: SmallNetwork, payload: bytes, **kind: Any) -> Message:
    day = net.calendar.day(net.now)
    key = derive(FIRES, net.net.id, day)
    content = Content(payload, {"kind": "forest", "lat": 100_500}, **kind)
    return compose(
        key,
        day,
        published_tokens(key, FIRES, content.values, net.env.randomness),
        content,
        net.env.randomness,
    )


async def hand_in(net: SmallNetwork, relay: Node, message: Message) -> None:
    channel = await net.knock(relay)
    await channel.send(Drop(message, None))
    assert await channel.one(60) == Receipt("accepted")
    await channel.aclose()


@pytest.mark.parametrize("restarted", [False, True])
async def test_what_is_never_shown_pushes_no_shown_id_out(
    monkeypatch: pytest.MonkeyPatch, restarted: bool
) -> None:
    monkeypatch.setattr(inbox, "MAX_SEEN", 20)
    monkeypatch.setattr(inbox, "MAX_PASSED_OVER", 20)
    async with small_network(relays=3, clients=2, epoch=3600, origins=1) as net:
        reader = net.clients[0]
        ear = await reader.listen(FIRES, "kind = forest, lat in [10, 11]")
        message = a_message(net, b"evacuate now")
        await hand_in(net, net.relays[0], message)
        await ear.hears(1)
        for number in range(30):
            await hand_in(net, net.relays[number % 3], a_message(net, b"", probe=True))
        await trio.sleep(60)
        if restarted:
            ear.close()
            await reader.restart()
            ear = await reader.listen(FIRES, "kind = forest, lat in [10, 11]")
        for relay in net.relays:  # a flood makes them forget, too
            assert relay.daemon.overlay.relay is not None
            relay.daemon.overlay.relay.forwarding._router._memory = RecentIds(net.now)
        await hand_in(net, net.relays[1], message)
        await trio.sleep(60)
        assert ear.payloads == ([] if restarted else [b"evacuate now"])
        seen = reader.route(FIRES).wanted.inbox
        assert len(seen._seen) == 1
        assert len(seen._passed_over) <= 20
