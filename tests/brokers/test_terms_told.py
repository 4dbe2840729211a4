"""What a daemon tells applications of a subscription with k: whether anything is shown of it outside."""

from __future__ import annotations

from typing import Any

from broker_daemons import tree_of_daemons
from small_network import until

from hushcast_protocol.content.bodies import Content
from hushcast_protocol.content.topics import make_topic, parse_values

WARM = make_topic("temperature", ["celsius:-40..60:0.5"])


async def test_a_subscription_with_k_tells_whether_it_is_shown_outside() -> None:
    terms = {"k": 2, "condition": "source", "otherwise": "wait"}
    async with tree_of_daemons(0) as network:
        for name in ("one", "other"):
            network.node(name).edge = network["edge 1"].key
        one, other = network.nodes
        await one.start()
        network.nursery.start_soon(one.listen, WARM, "celsius in [18, 60]", terms)

        def told() -> tuple[Any, ...] | None:
            held = one.daemon.service.subscriptions()
            return tuple(map(held[0].get, ("k", "outside", "shown"))) if held else None

        await until(lambda: told() == (2, False, 0))
        await other.start()
        ear = await other.listen(WARM, "celsius in [18, 60]", terms)
        await until(lambda: told() == (2, True, 0))
        await one.daemon.service.publish(WARM, Content(b"hello", parse_values(WARM, ["celsius=21"])))
        await ear.hears(1)
