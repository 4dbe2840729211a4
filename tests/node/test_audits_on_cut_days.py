"""On days that are cut owners audit their hosts, too, and what they ask says not where they are at home."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from audit_scene import TWO_DAYS, brought_by_an_audit, lists_asked, questions_of
from hosted_network import hosts_of, subscribed
from kept_network import kept_network, next_day
from small_network import ONE, Node, SmallNetwork

from hushcast_protocol.base.candidate_root import CandidateRoot
from hushcast_protocol.base.errors import Refusal
from hushcast_protocol.content.bodies import Content
from hushcast_protocol.overlay.keeper_frames import AskKept
from hushcast_protocol.overlay.profile import Root

pytestmark = pytest.mark.slow


@asynccontextmanager
async def audited_and_cut(clients: int) -> AsyncIterator[SmallNetwork]:
    """Two shards of some seven relays, each with two keepers of a trunk."""
    async with kept_network(
        14, keeping=TWO_DAYS, shard_size=7, clients=clients, root=Root.HOST, probes_an_epoch=0.0
    ) as net:
        assert net.clients[0].daemon.overlay.shards.is_cut(net.calendar.day(net.now))
        yield net


async def test_what_a_host_loses_on_cut_days_comes_by_an_audit_and_the_other_host_is_used() -> None:
    async with audited_and_cut(clients=2) as net:
        subscriber, publisher = net.clients

        async def publish(_: Node, *payloads: bytes) -> None:
            for payload in payloads:
                await publisher.daemon.service.publish(ONE, Content(payload))

        host, other = await brought_by_an_audit(net, publish)
        assert hosts_of(net, subscriber) == [other, host], "nobody else"


async def test_each_reader_fetches_one_list_for_an_audit_wherever_it_is_at_home_and_keeps_none() -> None:
    """A client, and relays in the topic's shard and outside it, over days whose shards are others each.

    On the last day no directory shows the client the list, and it asks nothing.
    """
    async with audited_and_cut(clients=1) as net:
        client, *_ = net.clients
        hosts: set[Node] = set()
        readers = [client, *net.relays[:6]]
        for reader in readers:
            await subscribed(reader)
            hosts.update(hosts_of(net, reader))
        await next_day(net)
        quiet = [reader for reader in readers if reader not in hosts]
        assert len(quiet) > 2
        was_at_home = set()
        for is_shown in (True, False):
            await next_day(net, epochs=0.5)
            if not is_shown:
                show_no_lists_to(client)
            held = {reader: await candidates_on_disk(reader) for reader in quiet}
            asked = {reader: lists_asked(net, reader) for reader in quiet}
            audits = {reader: reader.count("audits") for reader in quiet}
            questions, today = questions_of(net), net.calendar.day(net.now)
            await net.sleep_until(net.calendar.day_start(today + 1) - 1)
            for reader in quiet:
                made = reader.count("audits") - audits[reader]
                fetched = [(day, shard) for _, day, shard in asked[reader] if day == today - 2]
                if is_shown or reader is not client:
                    assert len(fetched) == made <= 1
                else:
                    assert (len(fetched), made) == (1, 0)
                was_at_home |= {shard == own_shard(reader, day) for day, shard in fetched}
                assert {day for day, _ in await candidates_on_disk(reader) - held[reader]} <= {today + 1}
            assert len({request for _, request in questions if isinstance(request, AskKept)}) <= 1
        assert sum(reader.count("audits") for reader in quiet) >= len(quiet)
        assert client.count("internal_errors") == 0
        assert was_at_home == {True, False}


def show_no_lists_to(reader: Node) -> None:
    """Have no directory show it candidates, from now on."""
    shards: Any = reader.daemon.overlay.shards

    async def refused(told: CandidateRoot, shard: int) -> Any:
        raise Refusal("a directory does not show it")

    shards.candidates = refused


def own_shard(reader: Node, day: int) -> int | None:
    return reader.daemon.overlay.shards.own_number(day)


async def candidates_on_disk(reader: Node) -> set[tuple[int, int]]:
    """The day and shard of each candidate list that a daemon has on its disk."""
    keys = [key for key, _ in await reader.store.scan("candidates")]  # type: ignore[arg-type]
    return {(int.from_bytes(key[:8], "big"), int.from_bytes(key[8:], "big")) for key in keys}
