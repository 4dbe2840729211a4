"""Publishers look whether what they published is kept, and drop it anew at others where it is not."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
import trio
from audit_scene import lists_asked
from kept_network import has, keepers_of, kept_network, kept_of, loses_all
from small_network import EPOCH_SECONDS, ONE, Node, SmallNetwork, until

from hushcast_local import second_looks
from hushcast_protocol.base.keeping_rule import NOTHING_KEPT
from hushcast_protocol.base.versions.manner import NEWEST
from hushcast_protocol.content.bodies import Content
from hushcast_protocol.content.messages import Message
from hushcast_protocol.overlay.frames import Receipt
from hushcast_protocol.overlay.keeper_frames import ShownKept
from hushcast_protocol.overlay.profile import Root
from hushcast_protocol.shards.assignment import shard_of_topic
from hushcast_runtime.transports.base import TransportError

LONG = 20 * EPOCH_SECONDS  # seconds of an epoch, so that looks end on their day


async def publish(node: Node, payload: bytes) -> Message:
    """Publish, and return what was sealed once its drops have ended."""
    publication = await node.daemon.service.publish(ONE, Content(payload))
    await until(lambda: node.daemon.service.outbox() == [])
    return publication.message


async def records(node: Node) -> int:
    """How many publications wait on disk for their look."""
    return len(await node.store.scan("looked-for"))  # type: ignore[arg-type]


def lose_drops(drops: Any) -> None:
    """Have a relay give receipts for what is dropped there, and lose it."""

    async def take(_: Message) -> Receipt:
        await trio.lowlevel.checkpoint()
        return Receipt("accepted")

    drops.take = take


def draws(node: Node, *relays: Node) -> None:
    """Have a daemon's first drop go to these relays; those after it are as they are drawn."""
    carrier: Any = node.daemon.service._publisher._carrier
    dropper = carrier._dropper
    drop_in = dropper._drop_in

    async def drop(copy: int, message: Message, handover: Any, taken: Any) -> None:
        dropper._drop_in = drop_in
        origins = [
            origin for origin in await dropper.origins(message) if origin.id in {one.id for one in relays}
        ]
        await dropper._drop_at(origins, message, handover, len(relays))

    dropper._drop_in = drop


def origins_of_drops(node: Node) -> list[int]:
    """At how many relays a daemon drops a message each time, from now on."""
    carrier: Any = node.daemon.service._publisher._carrier
    dropper, numbers = carrier._dropper, list[int]()
    drop_at = dropper._drop_at

    async def drop(origins: Any, message: Message, handover: Any, wanted: int) -> None:
        numbers.append(wanted)
        await drop_at(origins, message, handover, wanted)

    dropper._drop_at = drop
    return numbers


def is_kept(net: SmallNetwork, message: Message, hostile: list[Node]) -> bool:
    """Whether a keeper that is honest has it, so that each host gets it within an epoch."""
    return any(has(keeper, message) for keeper in keepers_of(net, message) if keeper not in hostile)


@pytest.mark.slow
@pytest.mark.parametrize("restarts", [False, True])
async def test_what_both_origins_lost_is_dropped_anew_at_others(restarts: bool) -> None:
    async with kept_network(relays=12, clients=1, epoch=LONG) as net:
        publisher, *_ = net.clients
        first = [net.relays[0], net.relays[1]]
        for relay in first:
            take: Any = relay.daemon.overlay.relay.drops  # type: ignore[union-attr]
            lose_drops(take)
        draws(publisher, *first)
        message = await publish(publisher, b"x")
        assert not any(has(keeper, message) for keeper in keepers_of(net, message))
        assert await records(publisher) == 1
        if restarts:
            await publisher.restart()
        dropped = origins_of_drops(publisher)
        await until(lambda: is_kept(net, message, []), NEWEST.latest_look + 60, "it is kept")
        await trio.sleep(NEWEST.latest_look + 60)
        assert await records(publisher) == 0
        assert publisher.count("publications_dropped_anew") == 1
        assert dropped == [net.profile.origins * NEWEST.times_anew]
        assert publisher.daemon.service.outbox() == []


def says(keeper: Node, message: Message, is_there: bool, is_away: bool = False) -> None:
    """Have a keeper say of a message that it has it, or that it has not, and was away, whatever is true."""
    kept: Any = kept_of(keeper)
    answer = kept.answer

    async def lie(request: Any) -> Any:
        said = await answer(request)
        if not isinstance(said, ShownKept):
            return said
        ids = set(said.ids) - {message.id} | ({message.id} if is_there else set())
        epochs = (keeper.network.calendar.epoch(keeper.network.now),) if is_away else ()
        return msgspec.structs.replace(said, ids=tuple(sorted(ids)), away=epochs)

    kept.answer = lie


@pytest.mark.slow
@pytest.mark.parametrize(
    ("liars", "drops", "times"),
    [
        (1, 0, 0),
        (3, 1, 1),
        (4, 1, NEWEST.times_anew),
    ],  # with four liars all of the first three asked are such
)
async def test_a_keeper_that_denies_what_it_has_is_outvoted_and_more_are_not(
    liars: int, drops: int, times: int
) -> None:
    async with kept_network(relays=18, clients=1, epoch=LONG) as net:
        publisher, *_ = net.clients
        message = await publish(publisher, b"x")
        for keeper in keepers_of(net, message)[:liars]:
            says(keeper, message, is_there=False)
        dropped = origins_of_drops(publisher)
        await trio.sleep(NEWEST.latest_look + 60)
        assert publisher.count("publications_dropped_anew") == drops
        assert dropped == [net.profile.origins * times] * drops
        assert publisher.count("keepers_looked_at") in (
            NEWEST.keepers_asked,
            NEWEST.keepers_asked + NEWEST.keepers_asked_more,
        )
        assert publisher.daemon.service.outbox() == []


@pytest.mark.slow
@pytest.mark.parametrize("liars", [4, 6])
async def test_keepers_that_were_away_are_passed_over_and_where_all_were_it_is_not_known(liars: int) -> None:
    async with kept_network(relays=18, clients=1, epoch=LONG) as net:
        publisher, *_ = net.clients
        message = await publish(publisher, b"x")
        for keeper in keepers_of(net, message)[:liars]:
            says(keeper, message, is_there=False, is_away=True)
        await trio.sleep(NEWEST.latest_look + 60)
        assert publisher.count("publications_dropped_anew") == 0
        assert await records(publisher) == (liars == 6), "it is looked for again"
        assert publisher.daemon.service.outbox() == []


@pytest.mark.slow
async def test_two_keepers_that_say_they_have_what_is_lost_deceive_no_look() -> None:
    async with kept_network(relays=18, clients=1, epoch=LONG) as net:
        publisher, *_ = net.clients
        first = [net.relays[0], net.relays[1]]
        for relay in first:
            lose_drops(relay.daemon.overlay.relay.drops)  # type: ignore[union-attr]
        draws(publisher, *first)
        message = await publish(publisher, b"x")
        liars = keepers_of(net, message)[:2]
        for keeper in liars:
            says(keeper, message, is_there=True)
        await until(lambda: is_kept(net, message, liars), 2 * (NEWEST.latest_look + 60), "it is kept")
        assert publisher.count("publications_dropped_anew") >= 1


@pytest.mark.slow
async def test_what_all_lose_is_dropped_anew_three_times_and_then_told() -> None:
    async with kept_network(relays=9, clients=1, epoch=LONG) as net:
        publisher, *_ = net.clients
        for relay in net.relays:
            lose_drops(relay.daemon.overlay.relay.drops)  # type: ignore[union-attr]
        message = await publish(publisher, b"x")
        await trio.sleep((NEWEST.dropped_anew + 1) * (NEWEST.latest_look + 60))
        (told,) = publisher.daemon.service.outbox()
        assert (told["id"], told["state"]) == (message.id.hex(), "given up")
        assert "publish it again" in told["reason"]
        assert publisher.count("publications_dropped_anew") == NEWEST.dropped_anew
        assert await records(publisher) == 0


@pytest.mark.slow
async def test_each_publication_is_looked_for_once_at_three_keepers_by_whoever_reads_it_or_not() -> None:
    async with kept_network(relays=9, clients=2, epoch=LONG) as net:
        reader, other = net.clients
        await reader.listen()
        for publisher in (reader, other):
            await publish(publisher, publisher.name.encode())
        await trio.sleep(NEWEST.earliest_look - 60)
        assert net.count("keepers_looked_at") == 0
        await trio.sleep(NEWEST.latest_look - NEWEST.earliest_look + 120)
        for publisher in (reader, other):
            assert publisher.count("keepers_looked_at") == NEWEST.keepers_asked
            assert publisher.count("publications_dropped_anew") == 0


async def test_where_nothing_is_kept_nothing_is_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    async with kept_network(relays=6, clients=1, keeping=NOTHING_KEPT) as net:
        publisher, *_ = net.clients
        await publish(publisher, b"x")
        assert await records(publisher) == 0


@pytest.mark.slow
async def test_what_is_too_much_is_not_looked_for_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(second_looks, "MAX_LOOKED_FOR", 1)
    async with kept_network(relays=9, clients=1, epoch=LONG) as net:
        publisher, *_ = net.clients
        for _ in range(2):
            await publish(publisher, b"x")
        assert await records(publisher) == 1
        assert publisher.count("publications_not_looked_for") == 1


@pytest.mark.slow
@pytest.mark.parametrize(("bad", "count"), [pytest.param(2, 150, marks=pytest.mark.soak), (4, 150)])
async def test_where_relays_lose_everything_nothing_lacks_after_an_epoch(bad: int, count: int) -> None:
    """Of twenty relays 10 and 20 % lose all that passes them, and say that they have it."""
    async with kept_network(relays=20, clients=1, epoch=6 * LONG) as net:
        publisher, *_ = net.clients
        hostile = net.relays[:bad]
        for relay in hostile:
            loses_all(relay)
        sent = [await publish(publisher, b"%d" % number) for number in range(count)]
        await trio.sleep(60)
        first = sum(not is_kept(net, one, hostile) for one in sent)
        await trio.sleep((NEWEST.dropped_anew + 1) * (NEWEST.latest_look + 60))
        lacking = sum(not is_kept(net, one, hostile) for one in sent)
        anew = publisher.count("publications_dropped_anew")
        print(f"{bad} of 20 bad, {count} messages: {first} lacking, {lacking} after looks, {anew} drops anew")
        assert lacking == 0


def serves(relay: Node, day: int, trunk: bytes) -> bool:
    """Whether a relay is in the shard of a trunk."""
    told = relay.daemon.overlay.shards.sharding(day)
    assert told is not None
    return relay.daemon.overlay.shards.own_number(day) == shard_of_topic(trunk, 0, told.bits)


def fails(node: Node, times: int) -> None:
    """Have the first candidate lists that a daemon asks for not come."""
    shards: Any = node.daemon.overlay.shards
    candidates, left = shards.candidates, iter(range(times))

    async def fail(*asked: Any) -> Any:
        if next(left, None) is not None:
            await trio.lowlevel.checkpoint()
            raise TransportError("nobody answers")
        return await candidates(*asked)

    shards.candidates = fail


@pytest.mark.slow
async def test_on_a_cut_day_publishers_look_by_a_list_fetched_once_wherever_they_are_at_home() -> None:
    """A client, and relays in the topic's shard and outside it: one list each, before the first look.

    To the last of them the list does not come: its first looks ask for it, and nobody else until the next.
    """
    async with kept_network(20, shard_size=10, clients=1, epoch=LONG, root=Root.HOST) as net:
        client, *_ = net.clients
        day = net.calendar.day(net.now)
        assert client.daemon.overlay.shards.is_cut(day)
        trunk = net.composed(ONE, Content(b"x")).tokens[0]
        await until(lambda: all(relay.daemon.overlay.shards.own(day) for relay in net.relays), 60)
        near = [relay for relay in net.relays if serves(relay, day, trunk)]
        far = next(relay for relay in net.relays if relay not in near)
        publishers = [client, near[0], far]
        fails(far, times=1)
        asked = {node: lists_asked(net, node) for node in publishers}
        origins = near[1:3]
        for relay in origins:
            lose_drops(relay.daemon.overlay.relay.drops)  # type: ignore[union-attr]
        draws(client, *origins)
        lost = await publish(client, b"lost")
        keepers = keepers_of(net, lost, near[0])
        assert keepers
        assert not any(has(one, lost) for one in keepers)
        for node in publishers:
            for number in range(2):
                await publish(node, b"%d" % number)
        before = net.count("keepers_looked_at")
        await trio.sleep(NEWEST.earliest_look - 10)
        assert net.count("keepers_looked_at") == before
        assert [len(asked[node]) for node in publishers] == [1, 1, 1]
        await until(lambda: len(asked[far]) == 2, NEWEST.latest_look + 60, "it asks for the list again")
        assert far.count("keepers_looked_at") == 0, "no look asks keepers right after it fetched their list"
        await until(lambda: far.count("keepers_looked_at") > 0, NEWEST.latest_look + 60, "and then looks")
        assert net.now - asked[far][-1][0] > 1.0
        await until(lambda: any(has(one, lost) for one in keepers), NEWEST.latest_look + 60, "it is kept")
        await trio.sleep(NEWEST.latest_look + 60)
        assert [await records(node) for node in publishers] == [0, 0, 0]
        assert [node.count("publications_dropped_anew") for node in publishers] == [1, 0, 0]
        assert [len(asked[node]) for node in publishers] == [1, 1, 2]
