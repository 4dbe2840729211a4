"""Relays bring what has a tag that is wanted, and withhold the rest; here with real daemons over `memory`."""

from __future__ import annotations

import pytest
import trio
from small_network import small_network

from hushcast_protocol.base.crypto.secrets import TopicSecret
from hushcast_protocol.content.bodies import Content
from hushcast_protocol.content.topics import make_topic

CARS = make_topic("cars", [], TopicSecret(bytes(range(32))))
BILLING, ADVERTISING, RESEARCH = (digit * 32 for digit in "123")


@pytest.mark.slow
async def test_a_subscriber_is_not_brought_what_has_none_of_its_tags() -> None:
    async with small_network(relays=30, origins=1, seed=2) as net:
        subscriber, publisher = net.clients
        ears = {
            "billing": await subscriber.listen(CARS, f"tags [{BILLING}]"),
            "both": await subscriber.listen(CARS, f"tags [{BILLING}, {RESEARCH}]"),
            "all": await subscriber.listen(CARS, ""),
        }
        sent = {b"b": [BILLING], b"a": [ADVERTISING], b"r": [RESEARCH], b"br": [BILLING, RESEARCH], b"-": []}
        for payload, tags in sent.items():
            publication = await publisher.daemon.service.enqueue(CARS, Content(payload), tags=tags)
            await publication.taken()
        for name, count in (("billing", 2), ("both", 3), ("all", 5)):
            await ears[name].hears(count)
        await trio.sleep(60)
        # Where two trees of the topic share an edge a message may take both: excess, and rare.
        assert {b"b", b"br"} <= set(ears["billing"].payloads)
        assert {b"b", b"r", b"br"} <= set(ears["both"].payloads)
        assert set(ears["all"].payloads) == set(sent)
        assert len(ears["billing"].payloads) + len(ears["both"].payloads) <= 6
        assert subscriber.count("gaps_found") == 0
