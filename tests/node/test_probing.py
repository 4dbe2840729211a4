"""How often daemons probe: seldom where keepers have what is lost, and hardly where they run a relay.

So a client that publishes nothing opens few connections.
"""

from __future__ import annotations

from typing import Any

import pytest
import trio
from hosted_network import subscribed
from kept_network import kept_network
from small_network import DAY_SECONDS, EPOCH_SECONDS, ONE, TWO, Node, derive, small_network

from hushcast_protocol.base.versions.manner import NEWEST
from hushcast_protocol.content.bodies import Content, open_body
from hushcast_protocol.content.messages import Message
from hushcast_protocol.content.reports import Report, decode_report
from hushcast_protocol.content.topics import Interest, parse_topic
from hushcast_protocol.overlay.profile import Root
from hushcast_protocol.overlay.ready_slots import ReadyRule


async def sent_in(seconds: float, *nodes: Node) -> list[int]:
    """How many probes daemons send in the time to come."""
    before = [node.count("probes_sent") for node in nodes]
    await trio.sleep(seconds)
    return [node.count("probes_sent") - count for node, count in zip(nodes, before, strict=True)]


@pytest.mark.slow
async def test_where_nobody_keeps_there_are_many_and_of_a_relay_two_a_day() -> None:
    async with small_network(relays=6, clients=1, probes_an_epoch=None) as net:
        client, relay = net.clients[0], net.relays[0]
        for node in (client, relay):
            await subscribed(node)
        many, few = await sent_in(8 * EPOCH_SECONDS, client, relay)
        # Of a minute's epoch a drop takes a hundredth, and the next waits for it; a large one is waited for.
        assert 0.5 < many / (8 * NEWEST.probes_an_epoch) < 1.3
        assert few <= 2
        await client.stop()
        (few,) = await sent_in(4 * DAY_SECONDS, relay)
        assert 0.5 < few / (4 * NEWEST.probes_of_relays) < 1.5


@pytest.mark.slow
async def test_where_keepers_are_there_are_few_and_they_report_nothing() -> None:
    async with kept_network(clients=2, root=Root.HOST, probes_an_epoch=None) as net:
        client, publisher = net.clients
        await subscribed(client)
        ear = await client.listen()
        (subscription,) = client.daemon.service.subscriber.subscriptions
        reports: list[Report] = []

        async def tap(message: Message, send: Any = subscription.route.probe) -> bool:
            content = open_body(derive(ONE, net.net.id, message.day), message)
            reports.append(decode_report(content.payload))
            return bool(await send(message))

        subscription.route.probe = tap  # type: ignore[method-assign]
        before, end = client.count("probes_sent"), net.now + DAY_SECONDS
        while net.now < end:
            await publisher.daemon.service.publish(ONE, Content(b"x"))
            await trio.sleep(EPOCH_SECONDS / 3)
        sent = client.count("probes_sent") - before
        assert 0.6 < sent / NEWEST.probes_a_day < 1.4
        assert len(ear.payloads) > NEWEST.probes_a_day
        assert len(reports) >= sent
        assert not any(report.heard for report in reports)


async def contacts_in(seconds: float, *nodes: Node) -> list[int]:
    """How many connections clients open in the time to come: to relays, and one for each roster."""

    def count(node: Node) -> int:
        return sum(node.count(name) for name in ("links_opened", "links_failed", "rosters_taken"))

    before = [count(node) for node in nodes]
    await trio.sleep(seconds)
    return [count(node) - was for node, was in zip(nodes, before, strict=True)]


@pytest.mark.slow
async def test_a_quiet_client_opens_a_tenth_of_the_connections() -> None:
    """Of three clients of one network the first probes as where nobody keeps; all have one subscription.

    The third has connections ready: eight, of two hours where an epoch is one.
    """
    async with kept_network(clients=3, root=Root.HOST, probes_an_epoch=NEWEST.probes_an_epoch) as net:
        often, seldom, ready = net.clients
        net.probes_an_epoch = None
        await seldom.restart()
        net.ready = ReadyRule(8, 2 * EPOCH_SECONDS)
        await ready.restart()
        bytes_of: dict[Node, int] = {}
        for node, topic in ((often, ONE), (seldom, TWO), (ready, parse_topic("topic three"))):
            (await node.daemon.service.subscribe(Interest(topic))).close()
            (subscription,) = node.daemon.service.subscriber.subscriptions
            bytes_of[node] = 0

            async def tap(message: Message, by: Node = node, send: Any = subscription.route.probe) -> bool:
                bytes_of[by] += net.profile.origins * len(message.body)
                return bool(await send(message))

            subscription.route.probe = tap  # type: ignore[method-assign]
        before, now, more = await contacts_in(DAY_SECONDS, often, seldom, ready)
        print(f"first contacts a day: {before}, {now}, {more}")
        print(f"bytes of probes: {bytes_of[often]}, {bytes_of[seldom]}")
        assert before > 800, "many are dear, and waited for"
        assert now <= 130
        assert 100 < more - now < 290, "eight and eleven slots open 228, of which probes use what they find"
        assert bytes_of[seldom] < 0.15 * bytes_of[often]
