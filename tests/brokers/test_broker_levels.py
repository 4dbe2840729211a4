"""Edge brokers show a filter only if enough clients stand behind it, and tell clients how they stand."""

from __future__ import annotations

import trio
from small_network import until
from small_tree import KEY, Client, Member, SmallTree, filter_of, hears, small_tree

from hushcast_protocol.brokers.anonymity_conditions import AnonymityCondition
from hushcast_protocol.brokers.clear_words import shown
from hushcast_protocol.brokers.frames import AnonymityTerms, ExposureReport, Subscribe

THREE = AnonymityTerms(3, AnonymityCondition.SOURCE, "wait")


def at(number: int) -> bytes:
    return number.to_bytes(16, "big")


async def wants(
    network: SmallTree, edge: Member | str, where: str, terms: AnonymityTerms, verdict: str = "accepted"
) -> Client:
    client = await network.client(edge)
    assert await client.subscribe(where, terms=terms) == verdict
    return client


async def test_three_stand_behind_it_then_one_leaves_and_comes_back() -> None:
    async with small_tree() as network:
        edge = network["edge 1"]
        clients = [await wants(network, edge, "lat in [0, 10]", THREE) for _ in range(2)]
        assert edge.status("filters_shown") == network.root.status("filters") == 0
        await network.published(lat=5)
        clients.append(await wants(network, edge, "lat in [0, 10]", THREE))
        await until(lambda: all(client.exposed[-1].is_shown for client in clients))
        first = await network.published(lat=5)
        for client in clients:
            await until(hears(client, first))
        assert edge.status("filters_shown") == 1
        assert [one.is_shown for one in clients[0].exposed] == [False, True], "and no more of the second"
        assert await clients[2].unsubscribe() == "accepted"
        assert edge.status("filters_shown") == network.root.status("filters") == 0
        await until(lambda: clients[0].exposed[-1] == ExposureReport(bytes(16), False))
        await network.published(lat=5)
        clients.append(await wants(network, edge, "lat in [0, 10]", THREE))
        clients.append(await wants(network, edge, "lat in [0, 10]", THREE))
        await until(lambda: clients[0].exposed[-1].is_shown)
        last = await network.published(lat=5)
        await until(hears(clients[0], last))
        assert clients[0].ids() == [first.id, last.id]


async def test_what_is_refused_is_not_kept() -> None:
    async with small_tree() as network:
        refuse = AnonymityTerms(2, AnonymityCondition.SOURCE, "refuse")
        client = await wants(network, "edge 1", "lat in [0, 10]", refuse, "level")
        assert network["edge 1"].status("filters") == 0
        assert "subscription" not in {
            kind for kind, records in network["edge 1"].store._records.items() if records
        }
        await wants(network, "edge 1", "lat in [0, 10]", AnonymityTerms(2, AnonymityCondition.SOURCE, "wait"))
        assert await client.subscribe("lat in [0, 10]", terms=refuse) == "accepted"


async def test_a_wider_filter_brings_more_than_clients_get() -> None:
    async with small_tree() as network:
        wider = AnonymityTerms(3, AnonymityCondition.SOURCE, "generalise")
        clients = [
            await wants(network, "edge 1", where, wider)
            for where in ("lat in [0, 10]", "lat in [5, 20]", "lat in [8, 30]")
        ]
        await until(lambda: all(client.exposed and client.exposed[-1].is_shown for client in clients))
        assert network.root.status("filters") == 1
        first, excess, last = [await network.published(lat=lat) for lat in (9, 3, 25)]
        await until(hears(clients[0], first, excess))
        await until(hears(clients[2], first, last))
        await until(hears(clients[1], first))
        nobody = await network.published(lat=30)
        await until(hears(clients[2], nobody))
        assert clients[1].ids() == [first.id]


async def test_the_brokers_own_minimum_holds_for_all() -> None:
    async with small_tree() as network:
        edge = network["edge 1"]
        await edge.stop()
        edge.anonymity = AnonymityTerms(2, AnonymityCondition.SOURCE, "wait")
        await edge.start()
        await network.linked()
        one = await network.client(edge, "lat in [0, 10]")
        assert edge.status("filters_shown") == 0
        two = await network.client(edge, "lat in [0, 10]")
        await until(lambda: edge.status("filters_shown") == 1)
        message = await network.published(lat=5)
        for client in (one, two):
            await until(hears(client, message))


async def test_a_restart_shows_what_was_shown_before() -> None:
    async with small_tree() as network:
        edge = network["edge 1"]
        clients = [await wants(network, edge, "lat in [0, 10]", THREE) for _ in range(3)]
        clients.append(await wants(network, edge, "lat in [50, 60]", THREE))
        sent = network.count("advertisements_sent")
        await edge.restart()
        await network.linked()
        for client in clients:
            await client.attach()
        await trio.sleep(30)
        assert network.count("advertisements_sent") == sent
        assert clients[0].exposed[-1].is_shown
        assert not clients[3].exposed[-1].is_shown
        message = await network.published(lat=5)
        await until(hears(clients[0], message))


async def test_clients_hear_how_they_stand_once_the_parent_has_confirmed_it() -> None:
    async with small_tree() as network:
        edge = network["edge 1"]
        clients = [await wants(network, edge, "lat in [0, 10]", THREE) for _ in range(2)]
        clients.append(await network.client(edge))
        await network["inner 1"].stop()
        await until(lambda: edge.daemon.parent_state != "open")
        given = shown(KEY, filter_of("lat in [0, 10]"))
        await clients[2].say(lambda serial: Subscribe(serial, bytes(16), given, THREE))
        await trio.sleep(30)
        assert not any(one.is_shown for client in clients for one in client.exposed)
        await network["inner 1"].start()
        await until(lambda: all(client.exposed and client.exposed[-1].is_shown for client in clients))
