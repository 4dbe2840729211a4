"""A daemon under cover publishes in letters, and shows nothing of it; what it cannot do so it does not do."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import trio
from covered_network import CoveredNode, covered_network, directories
from lettered_network import ROUND, lettered_network
from small_network import ONE, SmallNetwork

from hushcast.control_messages import PublishAnswer, PublishRequest
from hushcast_local.application_requests import ApplicationRequests
from hushcast_local.outbox import NoReceiptYet
from hushcast_node.overlay_doctor import examine_overlay
from hushcast_protocol.base.cover_terms import NO_COVER
from hushcast_protocol.base.errors import Refusal, UsageError
from hushcast_protocol.base.findings import Finding
from hushcast_protocol.content.predicates import parse_where
from hushcast_protocol.content.topics import Interest


async def no_findings() -> list[Finding]:
    return []


async def why_it_ends(net: SmallNetwork, author: CoveredNode) -> str:
    """Start a daemon that ends at its start; return what it says."""
    before = net.nursery
    try:
        async with trio.open_nursery() as net.nursery:
            await author.start()
    except BaseExceptionGroup as group:
        found, _ = group.split(UsageError)
        assert found is not None
        return str(next(iter(leaves(found))))
    finally:
        net.nursery = before
    raise AssertionError("it goes on")


def leaves(group: BaseExceptionGroup[BaseException]) -> Iterator[BaseException]:
    """The errors in a group."""
    for one in group.exceptions:
        yield from leaves(one) if isinstance(one, BaseExceptionGroup) else (one,)


@pytest.mark.slow
async def test_a_message_under_cover_is_heard_and_has_its_receipt() -> None:
    async with covered_network() as (net, author):
        ear = await net.clients[0].listen()
        await author.publish(b"m")
        (told,) = author.daemon.service.outbox()
        assert told["state"] == "waiting"
        assert "under cover it goes " in told["reason"]
        assert author.told["waiting"] == 1
        assert await ear.hears(1, 40 * ROUND) == [b"m"]
        await author.all_listed()
        assert author.told["waiting"] == 0
        assert author.told["problem"] is None
        (found,) = [
            one
            for one in await examine_overlay(author.daemon.overlay, None, False, net.env)
            if one.check == "cover"
        ]
        assert (found.verdict, found.found[:4]) == ("good", "on, ")
        requests = ApplicationRequests(author.daemon.status, no_findings)
        requests.open(author.daemon.service)
        answer = await requests.answer(PublishRequest(ONE.name, b"n", tell="queued", next_round=True))
        assert isinstance(answer, PublishAnswer)
        assert "under cover it goes " in str(answer.outlook)
        with pytest.raises(NoReceiptYet, match="under cover it is held for up to 48 minutes"):
            await requests.answer(PublishRequest(ONE.name, b"o"))
        opened = author.line.opened_at()
        assert opened.pop(net.directory_entry(net.relay(author.chain.porter))) == 1
        assert {str(to) for to in opened} == directories(net)


@pytest.mark.slow
async def test_under_cover_nothing_is_subscribed_to_and_the_way_out_is_said() -> None:
    async with covered_network() as (net, author):
        with pytest.raises(Refusal, match=r"does not subscribe.*at another daemon, or write read = true"):
            await author.daemon.service.subscribe(Interest(ONE, parse_where("", ())))
        with pytest.raises(Refusal, match="at most 64 KiB"):
            await author.publish(b"x" * (64 * 1024 + 1))
        plain = net.clients[0]
        await plain.listen()
        await plain.stop()
        author.store, author.network = plain.store, net
        await author.stop()
        assert "has subscriptions: a daemon under cover does not subscribe" in await why_it_ends(net, author)


@pytest.mark.slow
async def test_where_a_network_has_no_cover_a_daemon_that_asks_for_it_does_not_start() -> None:
    async with lettered_network(NO_COVER, relays=3) as net:
        author = CoveredNode(net, "author")
        assert "cover.on: this network has no cover; nothing was sent" in await why_it_ends(net, author)
        assert {str(to) for to in author.line.opened_at()} == directories(net)
