"""Who watches the proxies cannot tie pseudonyms to each other by the moments when they show, or circuits."""

from __future__ import annotations

from itertools import pairwise

import pytest
import trio
from daemons import CentralNetworkOfDaemons, Node, daemons
from small_network import EPOCH_SECONDS, until

from hushcast_central.user.pseudonym_upkeep import ATTACH_WITHIN
from hushcast_protocol.central.frames import Introduce
from hushcast_protocol.content.bodies import Content
from hushcast_protocol.content.topics import parse_topic

WITHIN = min(ATTACH_WITHIN, EPOCH_SECONDS / 4)  # seconds
TOPICS = [parse_topic(f"topic {number}") for number in range(8)]


def attaches(network: CentralNetworkOfDaemons) -> list[tuple[float, bytes]]:
    """Note when which pseudonym attaches at the deliveries proxy of the life that runs."""
    noted: list[tuple[float, bytes]] = []
    passing = network.deliveries.daemon._passing
    inner = passing.attach

    async def attach(what, receiver):  # type: ignore[no-untyped-def]
        noted.append((network.now, what.pseudonym))
        return await inner(what, receiver)

    passing.attach = attach
    return noted


def apart(noted: list[tuple[float, bytes]], count: int) -> None:
    """Check that so many pseudonyms showed, over most of the time that they have, no two at one moment."""
    moments = sorted(moment for moment, _ in noted)
    assert len({pseudonym for _, pseudonym in noted}) == len(moments) == count
    assert moments[-1] - moments[0] > WITHIN / 2
    assert all(later - earlier > 0.01 for earlier, later in pairwise(moments))


async def subscribed(node: Node) -> None:
    for topic in TOPICS:
        await node.listen(topic)
    await trio.sleep(5)


@pytest.mark.slow
async def test_after_a_restart_pseudonyms_attach_at_moments_of_their_own() -> None:
    async with daemons(count=1) as network:
        await subscribed(network.nodes[0])
        await network.nodes[0].stop()
        noted = attaches(network)
        await network.nodes[0].start()
        await trio.sleep(EPOCH_SECONDS)
        apart(noted, len(TOPICS))


@pytest.mark.slow
async def test_after_a_proxys_restart_too() -> None:
    async with daemons(count=1) as network:
        await subscribed(network.nodes[0])
        await network.deliveries.restart()
        noted = attaches(network)
        await until(lambda: len({name for _, name in noted}) == len(TOPICS))
        moments = sorted(moment for moment, _ in noted)
        assert moments[-1] - moments[0] > WITHIN / 3


@pytest.mark.slow
async def test_tomorrows_pseudonyms_come_at_moments_of_their_own() -> None:
    async with daemons(count=1, seed=2) as network:
        node = network.nodes[0]
        await subscribed(node)
        noted = attaches(network)
        day = network.calendar.day_seconds
        await trio.sleep(network.calendar.day_start(network.today + 1) - 0.55 * day - network.now)
        assert noted == []
        await trio.sleep(0.35 * day)
        moments = sorted(moment for moment, _ in noted)
        assert len(moments) == len(TOPICS)
        assert moments[-1] - moments[0] > 0.1 * day
        # A restart where all is behind its time shows them no closer to each other.
        await node.stop()
        for key, _ in await node.store.scan("pseudonym"):
            node.store._records["pseudonym"].pop(key)
        noted.clear()
        await node.start()
        await trio.sleep(EPOCH_SECONDS)
        assert sorted(moment for moment, _ in noted)[-1] - network.now < 0
        assert len({round(moment, 1) for moment, _ in noted}) > len(TOPICS)


@pytest.mark.slow
async def test_a_subscription_that_begins_late_in_a_day_does_not_show_both_days_at_one_moment() -> None:
    async with daemons(count=1) as network:
        node, day, today = network.nodes[0], network.calendar.day_seconds, network.today
        await trio.sleep(network.calendar.day_start(today + 1) - 0.2 * day - network.now)
        noted = attaches(network)
        await subscribed(node)
        await trio.sleep(0.18 * day)
        moments = {pseudonym: moment for moment, pseudonym in noted}
        both = [route.receiver.pseudonyms for route in node.routes]
        apart_by = [moments[one[today + 1].id] - moments[one[today].id] for one in both]
        assert len(moments) == 2 * len(TOPICS)
        assert sum(seconds > 2.0 for seconds in apart_by) >= len(TOPICS) - 1
        assert max(apart_by) - min(apart_by) > 0.05 * day


async def test_an_ended_subscriptions_two_days_are_not_withdrawn_at_one_moment() -> None:
    async with daemons(count=1) as network:
        node = network.nodes[0]
        await node.listen(TOPICS[0])
        await trio.sleep(network.calendar.day_start(network.today + 1) - 60 - network.now)
        assert len(node.routes[0].receiver.pseudonyms) == 2
        moments = []
        for pseudonym in node.routes[0].receiver.pseudonyms.values():
            network.nursery.start_soon(_note_end, network, pseudonym.scope, moments)
        await node.daemon.service.unsubscribe(TOPICS[0])
        await trio.sleep(EPOCH_SECONDS)
        assert abs(moments[0] - moments[1]) > 0.5
        assert await node.store.scan("pseudonym") == []


async def _note_end(network: CentralNetworkOfDaemons, scope: trio.CancelScope, moments: list[float]) -> None:
    while not scope.cancel_called:  # noqa: ASYNC110 - virtual time
        await trio.sleep(0.05)
    moments.append(network.now)


async def test_each_pseudonym_and_publication_has_a_circuit_of_its_own() -> None:
    async with daemons(count=1) as network:
        node = network.nodes[0]
        circuits: list[str] = []
        transport = node.daemon.transport
        inner = transport.connect

        async def connect(address, isolation, ahead=b""):  # type: ignore[no-untyped-def]
            circuits.append(isolation)
            return await inner(address, isolation, ahead)

        node.daemon.central._links._transport = transport
        transport.connect = connect
        introduced: list[bytes] = []
        for proxy in (network.publications, network.deliveries):
            _note_introductions(proxy.daemon._passing, introduced)
        for topic in TOPICS[:3]:
            await node.listen(topic)
            await node.daemon.service.publish(topic, Content(b"x"))
        assert len(circuits) == len(set(circuits)) == 6
        assert len(introduced) == len(set(introduced)) == 6


def _note_introductions(passing, introduced: list[bytes]) -> None:  # type: ignore[no-untyped-def]
    inner = passing.answer

    async def answer(what):  # type: ignore[no-untyped-def]
        if isinstance(what, Introduce):
            introduced.append(what.sealed)
        return await inner(what)

    passing.answer = answer
