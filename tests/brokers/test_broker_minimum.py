"""An edge broker's own minimum binds clients who ask for nothing: they hear that nothing is shown."""

from __future__ import annotations

from typing import Any

import trio
from broker_daemons import tree_of_daemons
from small_network import until

from hushcast_protocol.brokers.anonymity_conditions import AnonymityCondition
from hushcast_protocol.brokers.exposure import OPEN
from hushcast_protocol.brokers.frames import AnonymityTerms
from hushcast_protocol.content.bodies import Content
from hushcast_protocol.content.topics import make_topic, parse_values

WARM = make_topic("temperature", ["celsius:-40..60:0.5"])
WHERE = "celsius in [18, 60]"


async def test_who_asks_for_nothing_is_ready_only_once_the_broker_shows_it() -> None:
    async with tree_of_daemons(0, probes_an_epoch=24.0) as network:
        edge = network["edge 1"]

        async def ask(minimum: AnonymityTerms) -> None:
            await edge.stop()
            edge.anonymity = minimum
            await edge.start()

        await ask(AnonymityTerms(2, AnonymityCondition.SOURCE, "wait"))
        for name in ("one", "other"):
            network.node(name).edge = edge.key
        one, other = network.nodes
        await one.start()
        network.nursery.start_soon(one.listen, WARM, WHERE)

        def told(node: Any = one) -> tuple[Any, ...] | None:
            held = node.daemon.service.subscriptions()
            return tuple(map(held[0].get, ("nodes", "ready", "k", "outside"))) if held else None

        await until(lambda: told() == (0, False, 2, False))
        await one.restart()
        await trio.sleep(120)
        assert told() == (0, False, 2, False), "a restart knows no better"
        await other.start()
        ear = await other.listen(WARM, WHERE)
        await until(lambda: told() == (1, True, 2, True))
        await one.daemon.service.publish(WARM, Content(b"hello", parse_values(WARM, ["celsius=21"])))
        await ear.hears(1)
        await trio.sleep(600)
        assert one.count("probes_sent") == other.count("probes_sent") == 0, "they would show what is hidden"
        await ask(OPEN)
        await until(lambda: told() == (1, True, None, None), 120.0)
        await until(lambda: one.count("probes_sent") > 0, 600.0)
