"""A tree of brokers in memory: what is published arrives at those who asked, and nowhere else."""

from __future__ import annotations

import trio
from small_network import until
from small_tree import OTHER_KEY, hears, nothing_waits, small_tree


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
        kept = {kind for kind, records in network["edge 1"].store._records.items() if records}
        assert kept == {"address", "tree"}
