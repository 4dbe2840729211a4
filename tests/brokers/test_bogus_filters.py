"""Bogus filters among brokers: what those above hold, by their traces, and what the service says of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from filter_examples import Brute
from small_network import until
from small_tree import KEY, SmallTree, filter_of, hears, small_tree
from test_broker_levels import wants
from test_tomography import SOUTH, observed_tree, settled

from hushcast_protocol.base.observations import Advertised
from hushcast_protocol.brokers.anonymity_conditions import AnonymityCondition
from hushcast_protocol.brokers.bogus_filters import price
from hushcast_protocol.brokers.clear_words import CoveredFilter, ShownFilter, outside, shown
from hushcast_protocol.brokers.covered_filters import Covered
from hushcast_protocol.brokers.filters import Filter
from hushcast_protocol.brokers.frames import AnonymityTerms, Subscribe, decode_shown

WHOLE = "lat in [0, 50]"
BELOW, ABOVE = "lat in [0, 49]", "lat in [0, 51]"
OUTSIDE: Mapping[AnonymityCondition, set[str]] = {
    AnonymityCondition.SOURCE: {WHOLE},
    AnonymityCondition.IMMEDIATE_SUCCESSOR: {WHOLE, BELOW},
    AnonymityCondition.SUCCESSOR: {WHOLE, BELOW},
    AnonymityCondition.IMMEDIATE_PREDECESSOR_SUCCESSOR: {WHOLE, ABOVE},
    AnonymityCondition.IMMEDIATE_PREDECESSOR: {WHOLE, ABOVE},
}


class Holdings:
    """What each broker holds of those below, recounted from what it wrote down. Implements `Tracer`."""

    is_on = True

    def __init__(self) -> None:
        self.of: dict[bytes, dict[bytes, ShownFilter | CoveredFilter]] = {}

    def observe(self, observed: Any) -> None:
        if isinstance(observed, Advertised) and observed.child is not None:
            held = self.of.setdefault(observed.child, {})
            held |= {one.name: one for one in map(decode_shown, observed.show)}
            for name in observed.withdraw:
                del held[name]

    def tell(self, told: Any) -> None:
        pass

    def close(self) -> None:
        pass

    def at(self, network: SmallTree, broker: str) -> set[Filter]:
        """The filters at one broker."""
        below = [member.key for member in network.members if member.parent is network[broker]]
        every = [one for key in below for one in self.of.get(key, {}).values()]
        return {outside(one.filter if isinstance(one, CoveredFilter) else one) for one in every}


def seen(where: str) -> Filter:
    return outside(shown(KEY, filter_of(where)))


@pytest.mark.parametrize("condition", AnonymityCondition)
async def test_those_above_and_the_service_count_a_crowd_of_nobody(condition: AnonymityCondition) -> None:
    holdings = Holdings()
    async with observed_tree(tracer=holdings) as (network, service):
        plain = await network.client("edge 1", WHOLE)
        await settled()
        assert holdings.at(network, "inner 1") == holdings.at(network, "root") == {seen(WHOLE)}
        asked: dict[str, Any] = {"condition": condition}
        assert not service.says(SOUTH, 3, "edge 1", **asked), "one, who asks for nothing"
        await plain.unsubscribe()

        client = await wants(network, "edge 1", WHOLE, AnonymityTerms(3, condition, "bogus"))
        await settled()
        for broker in ("inner 1", "root"):
            held = holdings.at(network, broker)
            assert held == {seen(where) for where in OUTSIDE[condition]}
            # Nobody sees who is behind them: one each, for all that they know, and the filter has its place.
            brute = Brute()
            for one in held:
                brute.insert(one, one)
            assert brute.level(seen(WHOLE), condition) >= 1
        assert service.says(SOUTH, 3, "edge 1", **asked)
        assert service.says(SOUTH, 3, "edge 1", "inner 1", **asked)
        assert not service.says(SOUTH, 4, "edge 1", **asked)
        assert not service.says(SOUTH, 3, "edge 1", is_real=True, **asked)

        sent = [await network.published(lat=lat) for lat in (50, 51, 52)]
        await until(hears(client, sent[0]))
        excess = price(filter_of(WHOLE), condition, "bogus").excess
        assert client.ids() == [sent[0].id]
        assert network["inner 1"].count("messages_forwarded") == (2 if excess else 1)
        await client.unsubscribe()
        await settled()
        assert not holdings.at(network, "inner 1") | holdings.at(network, "root")
        assert service.status("sources_bogus") == service.status("statements_held") == 0


async def test_it_is_refused_where_nobody_would_be_deceived() -> None:
    async with small_tree() as network:
        for condition, where in (
            (AnonymityCondition.SOURCE, WHOLE),  # no service counts sources
            (AnonymityCondition.SUCCESSOR, "lat = 7, kind = x"),  # nothing is narrower
            (AnonymityCondition.IMMEDIATE_PREDECESSOR, ""),  # nothing is wider
        ):
            await wants(network, "edge 1", where, AnonymityTerms(3, condition, "bogus"), "bogus")
        assert network["edge 1"].count("refused_bogus") == 3
        assert network["edge 1"].status("filters") == network.root.status("filters") == 0


async def test_what_travels_covered_does_so_again_after_restarts() -> None:
    async with small_tree() as network:
        terms = AnonymityTerms(3, AnonymityCondition.SUCCESSOR, "bogus")
        client = await wants(network, "edge 1", WHOLE, terms)
        assert network.root.status("filters") == 2
        sent = network.count("advertisements_sent")
        for name in ("edge 1", "inner 1", "root"):
            await network[name].restart()
            await network.linked()
        await client.attach()
        assert network.root.status("filters") == 2
        assert network.count("advertisements_sent") == sent, "each had it on its disk"
        await client.unsubscribe()
        await until(lambda: network.root.status("filters") == 0)


async def test_only_brokers_say_that_a_filter_is_covered_and_it_brings_nothing() -> None:
    async with small_tree() as network:
        client = await network.client("edge 1", WHOLE)
        item = CoveredFilter(shown(KEY, filter_of(ABOVE)))
        open_terms = AnonymityTerms(1, AnonymityCondition.SOURCE, "wait")
        refused = await client.ask(lambda serial: Subscribe(serial, bytes([7]) * 16, item, open_terms))
        assert refused == "form"
        # A broker below that says so of one that nothing covers gets no message for it.
        inner, edge = network["inner 1"], network["edge 1"]
        inner.daemon._tables.routes.put(edge.key, item.name, Covered(outside(item.filter)))
        sent = [await network.published(lat=lat) for lat in (51, 50)]
        await until(hears(client, sent[1]))
        assert inner.count("messages_forwarded") == 1
