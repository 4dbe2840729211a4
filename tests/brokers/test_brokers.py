"""A tree of brokers in memory: what is published arrives at those who asked, and nowhere else."""

from __future__ import annotations

import pytest
import trio
from small_network import until
from small_tree import KEY, OTHER_KEY, Client, filter_of, hears, nothing_waits, small_tree

from hushcast_brokers.broker import clients, forwarding
from hushcast_protocol.base import observations
from hushcast_protocol.base.crypto.proof_of_work import mint
from hushcast_protocol.base.observations import Observed
from hushcast_protocol.brokers.clear_words import shown
from hushcast_protocol.brokers.frames import Advertise, Ping
from hushcast_runtime.storage import spool
from hushcast_runtime.tracing import NoTracer


async def test_what_is_published_arrives_at_those_who_asked_for_it() -> None:
    async with small_tree() as network:
        all_of_it = await network.client("edge 1", "")
        north = await network.client("edge 2", "lat in [60, 90]")
        fires = await network.client("edge 3", "kind = fire", "lat in [0, 10]")
        other = await network.client("edge 3", "", key=OTHER_KEY)
        first = await network.published(kind="fire", lat=70)
        second = await network.published(kind="flood", lat=5)
        third = await network.published(kind="flood", lat=30)
        fourth = await network.published(key=OTHER_KEY)
        await until(hears(all_of_it, first, second, third))
        await until(hears(fires, first, second))
        await until(hears(other, fourth))
        await trio.sleep(30)
        assert north.ids() == [first.id]
        assert fires.ids() == [first.id, second.id]
        assert other.ids() == [fourth.id]
        assert len(all_of_it.heard) == 3
        await nothing_waits(network)
        assert network.count("publications_accepted") == 4


async def test_filters_go_up_only_as_far_as_covering_asks() -> None:
    async with small_tree() as network:
        wide = await network.client("edge 1", "lat in [0, 50]")
        await network.client("edge 1", "lat in [10, 20]", "lat in [10, 20], kind = fire")
        await network.client("edge 2", "lat in [0, 50]")
        await network.client("edge 2", "lat in [30, 60]")
        assert network["edge 1"].status("filters") == 3
        assert network["edge 1"].status("filters_shown") == 1
        assert network["edge 2"].status("filters_shown") == 2
        assert network["inner 1"].status("filters") == 3
        assert network["inner 1"].status("filters_shown") == 2
        assert network.root.status("filters") == 2
        assert await wide.unsubscribe() == "accepted"
        assert network["edge 1"].status("filters_shown") == 1
        assert network["inner 1"].status("filters_shown") == 2
        message = await network.published(lat=40)
        await nothing_waits(network)
        assert wide.heard == []
        assert network["edge 2"].count("messages_received") == 1
        assert network["edge 1"].count("messages_received") == 0
        assert message


async def test_what_came_while_somebody_was_away_waits() -> None:
    async with small_tree() as network:
        client = await network.client("edge 1", "")
        await client.leave()
        messages = [await network.published(lat=n) for n in range(20)]
        await trio.sleep(30)
        assert network["edge 1"].status("messages_waiting") == 20
        await client.attach()
        await until(hears(client, *messages))
        assert client.ids() == [message.id for message in messages]
        await nothing_waits(network)


async def test_who_unsubscribed_hears_no_more_and_whoever_wants_nothing_is_forgotten() -> None:
    async with small_tree() as network:
        client = await network.client("edge 1", "", "lat in [0, 50]")
        assert await client.unsubscribe() == "accepted"
        await network.published(lat=70)
        message = await network.published(lat=7)
        await until(hears(client, message))
        assert client.ids() == [message.id]
        assert await client.unsubscribe((1).to_bytes(16, "big")) == "accepted"
        assert network.root.status("filters") == 0
        await network.published(lat=7)
        await client.leave()
        await until(lambda: network["edge 1"].status("clients") == 0)
        assert network.root.count("messages_unmatched") == 2
        records = network["edge 1"].store._records
        await until(lambda: {kind for kind in records if records[kind]} == {"address", "tree"})


class _Seen(NoTracer):
    """What brokers note in a testnet."""

    def __init__(self) -> None:
        self.all: list[Observed] = []

    def observe(self, observed: Observed) -> None:
        self.all.append(observed)


@pytest.mark.slow
async def test_after_its_day_a_message_waits_no_more_and_later_a_client_is_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(clients, "CLIENT_FORGOTTEN_AFTER", 2)
    seen = _Seen()
    async with small_tree(tracer=seen) as network:
        client = await network.client("edge 1", "")
        await client.leave()
        await network.published(lat=1)
        await trio.sleep(2 * network.calendar.day_seconds)
        assert network["edge 1"].status("messages_waiting") == 0
        assert network["edge 1"].count("messages_expired") == 1
        assert network["edge 1"].status("clients") == 1
        await trio.sleep(2 * network.calendar.day_seconds)
        assert network["edge 1"].status("clients") == network.root.status("filters") == 0
        for member in network.members:
            kept = {kind for kind, records in member.store._records.items() if records}
            assert kept - {"kept", "kept-message"} == {"address", "tree"}
        (asked,) = [one for one in seen.all if isinstance(one, observations.Asked)]
        assert observations.Ended(asked.client, asked.name) in seen.all


@pytest.mark.slow
async def test_what_was_taken_of_an_advertisement_is_shown_though_its_link_ends() -> None:
    async with small_tree((("inner", "inner", "root"), ("edge", "edge", "inner"))) as network:
        one = shown(KEY, filter_of("lat in [0, 1]"))
        with trio.CancelScope() as link:
            link.cancel()
            await network["inner"].daemon._tables.take(network["edge"].key, Advertise(1, (one,), (), "no"))
        assert network["inner"].status("filters") == 1
        await until(lambda: network.root.status("filters") == 1, 10.0, "the root hears of it")


async def test_a_client_that_goes_right_after_another_is_forgotten_once() -> None:
    async with small_tree((("edge", "edge", "root"),)) as network:
        edge = network["edge"]
        going = [await network.client(edge, "lat in [0, 1]") for _ in range(12)]
        for client in going:
            await client.leave()
        served = edge.daemon._clients
        for client in going:
            served.forget(client.key)
            await served._leaving[client.key].wait()
        await until(lambda: edge.status("filters") == 0, 10.0)
        assert edge.count("internal_errors") == 0


async def test_a_client_that_stays_is_not_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clients, "CLIENT_FORGOTTEN_AFTER", 0)
    async with small_tree() as network:
        client = await network.client("edge 1", "")
        for _ in range(20):
            await trio.sleep(network.calendar.day_seconds / 8)
            await client.talk.say(Ping())
        message = await network.published(lat=1)
        await until(hears(client, message))


async def test_who_stays_away_for_long_stops_nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool, "MAX_SHARE", 5000)
    async with small_tree() as network:
        away, ear = await network.client("edge 1", ""), await network.client("edge 1", "")
        await away.leave()
        messages = [await network.published(lat=1) for _ in range(10)]
        await until(hears(ear, *messages))
        await away.attach()
        await nothing_waits(network)
        assert len(away.heard) == 4
        assert network.count("messages_over_share") == 6


async def test_where_room_is_short_it_is_for_those_who_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forwarding, "ROOM_FOR_ALL", 10_000)
    async with small_tree() as network:
        away = [await network.client("edge 1", "") for _ in range(4)]
        for client in away:
            await client.leave()
        ear = await network.client("edge 1", "")
        messages = [await network.published(lat=1) for _ in range(20)]
        await until(hears(ear, *messages))
        assert network["edge 1"].status("messages_waiting_bytes") < 20_000
        assert network["edge 1"].count("messages_over_share") > 0


async def test_a_full_broker_leaves_messages_with_its_parent(monkeypatch: pytest.MonkeyPatch) -> None:
    async with small_tree() as network:
        client = await network.client("edge 1", "")
        monkeypatch.setattr(network["edge 1"].daemon._spool, "is_full", lambda more: True)
        message = await network.published(lat=1)
        await trio.sleep(20)
        assert client.heard == []
        assert network["inner 1"].status("messages_waiting") == 1
        monkeypatch.undo()
        await until(hears(client, message))
        await nothing_waits(network)


async def test_a_full_root_refuses_until_there_is_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool, "MAX_SPOOL", 10_000)
    async with small_tree() as network:
        client = await network.client("edge 1", "")
        await network["inner 1"].stop()
        message = network.message()
        for _ in range(20):
            if (verdict := await network.publish(message)) != "accepted":
                break
            message = network.message()
        assert verdict == "quota"
        await network["inner 1"].start()
        await network.linked()
        await nothing_waits(network)
        assert await network.publish(message) == "accepted"
        await until(hears(client, message))


async def test_the_root_under_load_wants_stamps_and_so_does_an_edge_of_new_clients() -> None:
    async with small_tree() as network:
        for member in (network.root, network["edge 1"]):
            member.daemon._admission.difficulty = member.daemon._admission._before = 6
        epoch = network.calendar.epoch(network.now)
        message = network.message(lat=1)
        assert await network.publish(message) == "stamp"
        stamp = mint(network.root.key, epoch, message.id, 6, network.env.randomness)
        assert await network.publish(network.message(), stamp) == "stamp", "it is for another message"
        assert await network.publish(message, stamp) == "accepted"
        client = Client(network, network["edge 1"])
        await client.attach()
        assert client.standing is not None
        assert client.standing.difficulty == 6
        assert await client.join() == "stamp"
        paid = mint(network["edge 1"].key, epoch, client.key, 6, network.env.randomness)
        assert await client.join(paid) == "accepted"
        assert network.count("refused_stamp") == 3


async def test_a_client_that_is_back_before_its_old_link_is_known_to_be_dead_is_not_forgotten() -> None:
    async with small_tree() as network:
        client = await network.client("edge 1")
        again = Client(network, network["edge 1"], client.seed)
        await again.attach()
        await until(lambda: not client.is_attached)
        assert await again.subscribe("") == "accepted"
        message = await network.published(lat=1)
        await until(hears(again, message))
