"""Edge brokers show a filter if enough clients of all of them stand behind it, while the service says so."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import trio
from small_network import until
from small_tree import Client, SmallTree, hears
from test_broker_levels import wants
from test_tomography import SOUTH, observed_tree, settled

from hushcast_brokers.tomography import broker_statements
from hushcast_protocol.brokers.anonymity_conditions import AnonymityCondition
from hushcast_protocol.brokers.frames import AnonymityTerms

THREE, FOUR = (AnonymityTerms(k, AnonymityCondition.SOURCE, "wait") for k in (3, 4))
LONG = 120.0  # virtual seconds: two moments at which brokers state, and half a minute for a rise


def is_shown(*clients: Client) -> Callable[[], bool]:
    return lambda: all(client.exposed and client.exposed[-1].is_shown for client in clients)


def is_held_back(*clients: Client) -> Callable[[], bool]:
    return lambda: all(client.exposed and not client.exposed[-1].is_shown for client in clients)


async def two_and_two(network: SmallTree, terms: AnonymityTerms) -> list[Client]:
    return [await wants(network, f"edge {n}", SOUTH, terms) for n in (1, 1, 2, 2)]


def outside(network: SmallTree) -> list[int]:
    """How many filters each edge broker shows."""
    return [edge.status("filters_shown") for edge in network.edges]


async def test_two_edge_brokers_with_two_clients_each_have_four_until_one_leaves() -> None:
    async with observed_tree() as (network, service):
        clients = await two_and_two(network, FOUR)
        assert outside(network) == [0, 0, 0]
        await until(is_shown(*clients), LONG, "four are enough")
        assert outside(network) == [1, 1, 0]
        first = await network.published(lat=7)
        for client in clients:
            await until(hears(client, first))
        assert await clients[3].unsubscribe() == "accepted"
        await until(lambda: outside(network)[1] == 0, 1.0, "its own edge broker shows it no more at once")
        await until(is_held_back(*clients[:3]), 10.0, "three are too few")
        assert outside(network) == [0, 0, 0]
        clients[3] = await wants(network, "edge 2", SOUTH, FOUR)
        await trio.sleep(LONG)
        assert outside(network) == [0, 0, 0], "what sank is shown again a quarter above k"
        clients.append(await wants(network, "edge 2", SOUTH, FOUR))
        await until(is_shown(*clients), 2 * LONG, "five are enough")
        assert service.status("watches") > 0


async def test_three_in_the_network_are_not_enough_where_no_broker_on_the_way_sees_three() -> None:
    async with observed_tree() as (network, _):
        clients = [await wants(network, f"edge {n}", SOUTH, THREE) for n in (1, 2, 3)]
        await trio.sleep(2 * LONG)
        assert outside(network) == [0, 0, 0]
        assert is_held_back(*clients)()
        clients.append(await wants(network, "edge 1", SOUTH, THREE))
        await until(is_shown(*clients[:2], clients[3]), LONG, "inner 1 sees three")
        await trio.sleep(2 * LONG)
        assert is_held_back(clients[2])(), "inner 2 would see one"


async def test_what_is_covered_on_its_way_has_its_crowd_there_too() -> None:
    async with observed_tree() as (network, service):
        for _ in range(5):
            await network.client("edge 1", SOUTH)
        await network.client("edge 1", "lat in [0, 90]")
        await settled()
        assert (await service.ask(SOUTH, 5, "edge 1")).is_anonymous
        assert network.root.status("filters") == 1, "it is not shown there now"


async def test_three_of_four_are_enough_for_three_whoever_leaves() -> None:
    async with observed_tree() as (network, _):
        clients = await two_and_two(network, THREE)
        await until(is_shown(*clients), LONG, "four are enough")
        await trio.sleep(3 * broker_statements.STATE_EVERY)
        assert await clients[3].unsubscribe() == "accepted"
        await trio.sleep(LONG)
        assert outside(network) == [1, 1, 0]
        assert is_shown(*clients[:3])()


async def test_without_the_service_only_the_own_clients_count() -> None:
    async with observed_tree() as (network, service):
        clients = await two_and_two(network, FOUR)
        await until(is_shown(*clients), LONG, "four are enough")
        asked = network.count("levels_asked")
        await service.stop()
        await trio.sleep(200)
        assert outside(network) == [1, 1, 0], "what it said is valid for some minutes"
        await trio.sleep(200)
        assert outside(network) == [0, 0, 0]
        for client in clients:
            await client.attach()
        await until(is_held_back(*clients))
        await service.start()
        await until(lambda: outside(network) == [1, 1, 0], 900.0, "it is back, and nobody has left")
        assert network.count("levels_asked") > asked
        assert network.count("statements_refused") == network.count("levels_refused") == 0


@pytest.mark.slow
async def test_an_answer_that_is_over_is_given_anew_and_epochs_change_nothing() -> None:
    async with observed_tree() as (network, _):
        clients = await two_and_two(network, FOUR)
        await until(is_shown(*clients), LONG, "four are enough")
        said, asked = network.count("advertisements_sent"), network.count("levels_asked")
        for _ in range(18):
            await trio.sleep(600)
            for client in clients:
                await client.attach()  # or they would be away, and count no more
        assert outside(network) == [1, 1, 0]
        assert network.count("advertisements_sent") == said
        assert network.count("levels_asked") == asked


async def test_an_edge_broker_that_starts_again_is_not_counted_twice() -> None:
    """What it stated before is forgotten, as it has other names for its clients now."""
    async with observed_tree() as (network, service):
        loose = AnonymityTerms(2, AnonymityCondition.SOURCE, "wait")
        held = [await wants(network, "edge 2", SOUTH, loose) for _ in range(2)]
        await until(is_shown(*held))
        await trio.sleep(3 * broker_statements.STATE_EVERY)
        edge = network["edge 2"]
        await edge.stop()
        for kind in ("subscription", "client"):
            edge.store._records.get(kind, {}).clear()
        await edge.start()
        await network.linked()
        clients = [await wants(network, "edge 2", SOUTH, FOUR) for _ in range(2)]
        await trio.sleep(2 * LONG)
        assert outside(network) == [0, 0, 0], "two are not four, though two were there before"
        assert service.status("statements_held") == 0
        assert is_held_back(*clients)()


async def test_another_place_in_the_tree_takes_another_answer() -> None:
    async with observed_tree() as (network, _):
        clients = await two_and_two(network, FOUR)
        await until(is_shown(*clients), LONG, "four are enough")
        network["edge 2"].parent = network["inner 2"]
        await network.list_all()
        await network.linked()
        await until(lambda: outside(network) == [0, 0, 0], 30.0, "neither inner broker has four now")


@pytest.mark.slow
async def test_probes_show_nothing_below_k_and_end_where_there_are_enough() -> None:
    async with observed_tree() as (network, _):
        wider = AnonymityTerms(4, AnonymityCondition.SOURCE, "generalise")
        clients = [
            await wants(network, edge, where, wider)
            for edge, where in (
                ("edge 1", "lat in [3, 4]"),
                ("edge 1", "lat in [3, 4]"),
                ("edge 2", "lat in [5, 6]"),
            )
        ]
        await trio.sleep(5 * LONG)
        assert outside(network) == [0, 0, 0]
        clients.append(await wants(network, "edge 2", "lat in [5, 6]", wider))
        await until(lambda: outside(network) == [1, 1, 0], LONG, "four want something on the topic")
        await trio.sleep(5 * LONG)
        assert outside(network) == [1, 1, 0]
        for client in clients:
            await client.attach()
        await until(is_shown(*clients))
        message, far = await network.published(lat=4), await network.published(lat=90)
        await until(hears(clients[0], message))
        assert far.id not in clients[0].ids()


async def test_of_bogus_sources_no_crowd_is_made_for_others() -> None:
    async with observed_tree() as (network, service):
        bogus = AnonymityTerms(4, AnonymityCondition.SOURCE, "bogus")
        await wants(network, "edge 2", SOUTH, bogus)
        waiting = [await wants(network, "edge 1", SOUTH, FOUR) for _ in range(2)]
        await trio.sleep(2 * LONG)
        assert outside(network) == [0, 1, 0]
        assert service.status("sources_bogus") == 3
        assert is_held_back(*waiting)()
        await wants(network, "edge 2", SOUTH, FOUR)
        await until(is_shown(*waiting), LONG, "four are somebody")
        await until(lambda: service.status("sources_bogus") == 0, LONG, "they are needed no more")


async def test_a_crowd_of_too_few_edge_brokers_is_none_where_it_is_to_be_spread() -> None:
    async with observed_tree() as (network, _):
        for edge in network.edges:
            assert edge.tomography is not None
            await edge.stop()
            edge.tomography = edge.tomography._replace(spread=3)
            await edge.start()
        await network.linked()
        clients = await two_and_two(network, FOUR)
        await trio.sleep(2 * LONG)
        assert is_held_back(*clients)()
