"""A directory that delays rosters, with a relay that it lists now and then, wants to link one daemon's trees.

It gives a roster at once to who asks in the first part of the time for asking; the others get it most of an
epoch later: a bit of each daemon. The relay notes when each of the trees gives it a seat again. It is
nobody's host, as it is not listed when hosts are drawn: a host has no seat in its own tree.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import trio
from small_network import Node, SmallNetwork, small_network, until

from hushcast_directory.server.archive import ArchivedHead, epoch_of
from hushcast_protocol.authorities.listing import ListedRelay
from hushcast_protocol.base.roster_standing import UNSEAT_AFTER
from hushcast_protocol.content.topics import parse_topic
from hushcast_protocol.overlay.leases import lease_id, lease_word

pytestmark = pytest.mark.slow

EPOCH = 1200
PERIOD = UNSEAT_AFTER + 1  # epochs: listed in one, then gone for long enough to lose its seats
KEPT_BACK = 0.6  # epochs that the directory lets the unlucky wait

Seated = dict[tuple[int, str], dict[int, float]]
"""When each subscription (daemon, topic) seated the relay in each round, in epochs after the roster."""


@contextmanager
def bribed(net: SmallNetwork, relay: Node) -> Iterator[None]:
    """Have the directory list a relay in one roster of a period, and give those rosters late to some."""
    agreeing = net.directory.agreeing
    archive = agreeing._archive
    honest_list, honest_after = agreeing._ballot, archive.after

    async def listed(epoch: int, agreed: float) -> tuple[ListedRelay, ...]:
        everybody = await honest_list(epoch, agreed)
        return everybody if epoch % PERIOD == 0 else tuple(one for one in everybody if one[0] != relay.id)

    def after(epoch: int | None, latest: float = math.inf) -> tuple[ArchivedHead | None, bool]:
        shown, more = honest_after(epoch, latest)
        if shown is None:
            return shown, more
        since = net.now - (net.calendar.epoch_start(epoch_of(shown.certified)) - net.calendar.lead)
        is_early = since < net.calendar.lead / 4
        return (shown, more) if is_early or since > KEPT_BACK * EPOCH else (None, False)

    agreeing._ballot, archive.after = listed, after  # type: ignore[method-assign]
    yield
    agreeing._ballot, archive.after = honest_list, honest_after  # type: ignore[method-assign]


async def watch(net: SmallNetwork, relay: Node, rounds: int) -> Seated:
    """Let a relay note its leases; the truth is used to name them only."""
    noted: list[tuple[float, bytes, int]] = []
    assert relay.daemon.overlay.relay is not None
    book = relay.daemon.overlay.relay.leases.book
    install = book.install

    def note(*args, **options):  # type: ignore[no-untyped-def]
        lease = install(*args, **options)
        noted.append((net.now, lease.id, lease.day))
        return lease

    book.install = note  # type: ignore[method-assign]
    owners: dict[bytes, tuple[int, str]] = {}
    found: Seated = defaultdict(dict)
    first = net.calendar.epoch(net.now) // PERIOD + 1
    for number in range(rounds):
        epoch = (first + number) * PERIOD
        published = net.calendar.epoch_start(epoch) - net.calendar.lead
        await net.sleep_until(published)
        noted.clear()
        await trio.sleep(1.2 * EPOCH)
        for daemon, client in enumerate(net.clients):
            for held in client.daemon.overlay.routes.held:
                for planned in held.planned.values():
                    word = lease_word(planned.installation.secret, relay.id)
                    owners[lease_id(word)] = daemon, held.topic
        today = net.calendar.day(net.calendar.epoch_start(epoch) + 0.8 * EPOCH)
        for moment, lease, day in noted:
            if lease in owners and day == today:
                found[owners[lease]].setdefault(number, (moment - published) / EPOCH)
    return found


def lists(client: Node, relay: Node) -> bool:
    """Tell whether the roster that a client acts on lists a relay."""
    return relay.id in client.daemon.overlay.rosters.whole.current().relays


async def played(clients: int, rounds: int, seed: int = 1) -> Seated:
    async with small_network(relays=4, clients=clients, epoch=EPOCH, seed=seed) as net:
        relay = net.relays[3]
        with bribed(net, relay):
            await until(lambda: not any(lists(client, relay) for client in net.clients), PERIOD * EPOCH)
            for number, client in enumerate(net.clients):
                for topic in "ab":
                    await client.listen(parse_topic(f"{number} {topic}"))
            return await watch(net, relay, rounds)


async def test_no_tree_follows_a_roster_on_its_day() -> None:
    """Early or late: so the directory's bit shows in none. Links of one daemon were seen when each did."""
    assert not await played(clients=2, rounds=5)
