"""Daemons over the central system: what applications get of it, through restarts, days and lost disks."""

from __future__ import annotations

import pytest
import trio
from daemons import CentralNetworkOfDaemons, Node, daemons
from msgspec.msgpack import decode
from small_network import DAY_SECONDS, EPOCH_SECONDS, ONE, TWO, until

from hushcast_protocol.base.crypto.secrets import TopicSecret
from hushcast_protocol.central.pseudonym_register import PseudonymRecord
from hushcast_protocol.content.bodies import Content
from hushcast_protocol.content.topics import make_topic
from hushcast_runtime.carriers.coverage import PROBE_WITHIN
from hushcast_runtime.storage.store import MemoryStore

QUAKES = make_topic("quakes", ["place", "magnitude:0..10:0.1"], TopicSecret(bytes(range(32))))
both_profiles = pytest.mark.parametrize("profile", ["hardened", "paper"])


async def registered(network: CentralNetworkOfDaemons) -> list[PseudonymRecord]:
    """The subscribers that the server knows and that are not over."""
    known = [decode(value, type=PseudonymRecord) for _, value in await network.server.store.scan("pseudonym")]
    return [kept for kept in known if not kept.is_over]


async def send(node: Node, *payloads: bytes) -> None:
    for payload in payloads:
        await node.daemon.service.enqueue(ONE, Content(payload))


@both_profiles
async def test_what_is_published_is_heard_once(profile: str) -> None:
    async with daemons(profile=profile) as network:
        here, there = network.nodes
        ear, other = await here.listen(), await there.listen()
        for number in range(5):
            publication = await there.daemon.service.publish(ONE, Content(b"%d" % number))
            assert publication.origins == [network.net.server]
        assert await ear.hears(5) == await other.hears(5) == [b"%d" % number for number in range(5)]
        assert await registered(network)


@both_profiles
async def test_ranges_and_private_topics(profile: str) -> None:
    async with daemons(profile=profile) as network:
        here, there = network.nodes
        strong, near = (
            await here.listen(QUAKES, "magnitude in [5, 10]"),
            await here.listen(QUAKES, "place = here"),
        )
        other = await here.listen(TWO)
        for place, magnitude in (("here", 4.5), ("there", 5.5), ("here", 9.0)):
            content = Content(
                f"{place} {magnitude}".encode(), {"place": place, "magnitude": int(magnitude * 10)}
            )
            await there.daemon.service.publish(QUAKES, content)
        await there.daemon.service.publish(TWO, Content(b"two"))
        await other.hears(1)
        assert sorted(await strong.hears(2)) == [b"here 9.0", b"there 5.5"]
        assert sorted(await near.hears(2)) == [b"here 4.5", b"here 9.0"]
        await trio.sleep(EPOCH_SECONDS)
        assert [len(ear.heard) for ear in (strong, near, other)] == [2, 2, 1]
        # As published, a user has one pseudonym; hardened, each subscription has its own.
        assert len(await registered(network)) == (3 if profile == "hardened" else 1)


@both_profiles
async def test_everything_restarts_and_nothing_is_lost_or_shown_twice(profile: str) -> None:
    async with daemons(profile=profile) as network:
        here, there = network.nodes
        ear = await here.listen()
        sent = []
        for number, member in enumerate([*network.members, here, there, network.server, here]):
            sent.append(b"%d" % number)
            await send(there, sent[-1])
            await trio.sleep(network.env.uniform(0.0, 2.0))
            await member.restart()
            if member is here:
                heard = ear.heard
                ear.close()
                ear = await here.listen()
                ear.heard = heard
        await ear.hears(len(sent), within=600.0)
        await trio.sleep(2 * EPOCH_SECONDS)
        assert sorted(ear.payloads) == sorted(sent)
        assert not network.server.daemon.status()["deliveries_waiting"]


@pytest.mark.slow
@both_profiles
async def test_days_change_under_traffic(profile: str) -> None:
    async with daemons(profile=profile) as network:
        here, there = network.nodes
        ear = await here.listen()
        sent = []
        for number in range(25):
            sent.append(b"%d" % number)
            await send(there, sent[-1])
            await trio.sleep(DAY_SECONDS / 10)
        await ear.hears(len(sent))
        assert ear.payloads == sent
        kept = await registered(network)
        assert len(kept) <= 2
        assert len(await here.store.scan("pseudonym")) <= 2
        assert len(await here.store.scan("day-key")) <= 4


@both_profiles
async def test_a_proxy_and_the_server_may_lose_their_disks(profile: str) -> None:
    async with daemons(profile=profile) as network:
        here, there = network.nodes
        ear, other = await here.listen(), await here.listen(TWO)
        for number, member in enumerate([network.deliveries, network.publications, network.server]):
            await member.stop()
            member.store = MemoryStore()
            await member.start()
            await network.linked()
            await trio.sleep(3 * EPOCH_SECONDS)
            await there.daemon.service.publish(ONE, Content(b"%d" % number))
            await ear.hears(number + 1)
        assert other.heard == []


@both_profiles
async def test_unsubscribed_means_silent_and_forgotten(profile: str) -> None:
    async with daemons(profile=profile) as network:
        here, there = network.nodes
        one, two = await here.listen(ONE), await here.listen(TWO)
        await here.daemon.service.unsubscribe(ONE)
        assert sum(len(kept.tokens) for kept in await registered(network)) == 1
        await send(there, b"late")
        await there.daemon.service.publish(TWO, Content(b"still"))
        await two.hears(1)
        await here.daemon.service.unsubscribe(TWO)
        await trio.sleep(EPOCH_SECONDS)
        assert (one.heard, one.ended) == ([], True)
        assert await registered(network) == []
        assert [await store.scan("pseudonym") for store in (here.store, there.store)] == [[], []]


async def test_an_unsubscription_that_nobody_answers_is_told_later() -> None:
    async with daemons() as network:
        here, _ = network.nodes
        await here.listen()
        await network.deliveries.stop()
        await here.daemon.service.unsubscribe(ONE)
        assert len(await registered(network)) == 1
        await here.restart()
        await network.deliveries.start()
        await until(lambda: not network.server.daemon.status()["tokens"], 300.0)


async def test_where_the_network_never_answered_people_are_told_why() -> None:
    async with daemons(count=0) as network:
        await network.deliveries.stop()
        network.waits = False
        node = network.node("late")
        await node.start()
        await trio.sleep(5)
        assert not node.daemon.ready
        assert node.daemon.side.waits_for() == "waiting for a proxy for deliveries to answer"
        assert node.daemon.status()["proxies"] == {
            "publications": 1,
            "deliveries": 1,
            "silent": ["deliveries"],
        }
        await network.deliveries.start()
        await until(lambda: node.daemon.ready)
        assert node.daemon.side.describe() == "2 proxies"
        await network.deliveries.stop()
        await node.restart()  # whom the network answered once is not asked to wait again
        assert node.daemon.ready


async def test_another_proxy_is_tried_where_the_first_does_not_answer() -> None:
    async with daemons(count=0) as network:
        dead = [network.add(f"dead-{number}", "deliveries") for number in range(3)]
        node = network.node("node")
        await node.start()
        ears = [await node.listen(topic) for topic in (ONE, TWO)]
        assert all(not ear.ended for ear in ears)
        assert {route.receiver.pseudonyms[network.today].proxy for route in node.routes} == {
            network.deliveries.seed.public()
        }
        assert len(dead) == 3


async def test_a_proxy_that_left_the_network_is_replaced() -> None:
    async with daemons() as network:
        here, there = network.nodes
        ear = await here.listen()
        await here.stop()
        await there.stop()
        await network.deliveries.stop()
        network.members.remove(network.deliveries)
        network.deliveries = network.add("new", "deliveries")
        await network.server.restart()
        await network.deliveries.start()
        await network.linked()
        await here.start()
        await there.start()
        ear = await here.listen()
        await until(lambda: len(here.routes) == 1 and here.daemon.service.subscriptions()[0]["nodes"] == 1)
        await there.daemon.service.publish(ONE, Content(b"x"))
        assert await ear.hears(1) == [b"x"]


@pytest.mark.slow
async def test_probes_measure_what_the_server_delivers() -> None:
    async with daemons(count=1, probes_an_epoch=10.0) as network:
        here = network.nodes[0]
        await here.listen()
        await trio.sleep(3 * EPOCH_SECONDS)
        [covered] = await here.daemon.service.coverage(ONE)
        assert covered["probes"] > 20
        assert (covered["share"], covered["delivered"], covered["suspects"]) == (1.0, 1.0, [])
        await network.deliveries.stop()
        await trio.sleep(PROBE_WITHIN + 3 * EPOCH_SECONDS)
        [covered] = await here.daemon.service.coverage(ONE)
        assert covered["share"] < 0.7
