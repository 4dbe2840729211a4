"""A directory that lists one colluding relay, for an epoch or for some, wants it at the top of all trees.

It sees how many trees it is at the top of: these leases lead to hosts.
"""

from __future__ import annotations

import math

import pytest
import trio
from small_network import EPOCH_SECONDS, Node, SmallNetwork, small_network, until

from hushcast_protocol.authorities.listing import ListedRelay
from hushcast_protocol.base.roster_standing import MAX_HELD, UNSEAT_AFTER
from hushcast_protocol.content.bodies import Content
from hushcast_protocol.content.topics import parse_topic
from hushcast_protocol.overlay.hops import is_host
from hushcast_protocol.overlay.installations import HostRoot
from hushcast_protocol.overlay.tree import (
    LEAST_LEAVING,
    MOST_LEAVING,
    STRAINED,
    Tree,
    branching,
    strain,
)

pytestmark = pytest.mark.slow

RELAYS, MOLE = 16, 9  # whoever it is, it must be nobody's host
TOPICS = [parse_topic(f"topic {number}") for number in range(3)]


class Directory:
    """The network's directory, bribed by a relay: for some rosters it lists that one and no other."""

    def __init__(self, net: SmallNetwork, mole: Node) -> None:
        self.short = 0
        agreeing = net.directory.agreeing
        honest = agreeing._ballot

        async def listed(epoch: int, agreed: float) -> tuple[ListedRelay, ...]:
            everybody = await honest(epoch, agreed)
            self.short -= 1
            return tuple(one for one in everybody if one[0] == mole.id) if self.short >= 0 else everybody

        agreeing._ballot = listed  # type: ignore[method-assign]


def trees(net: SmallNetwork) -> list[Tree]:
    held = [client.route(topic) for client, topic in zip(net.clients, TOPICS, strict=True)]
    today = net.calendar.day(net.now)
    return [planned.installation.tree for one in held for planned in one.on(today)]


def at_the_top(mole: Node) -> int:
    assert mole.daemon.overlay.relay is not None
    return sum(is_host(lease.hop) for lease in mole.daemon.overlay.relay.leases.book.leases())


async def subscribed(net: SmallNetwork, mole: Node) -> list[Tree]:
    for client, topic in zip(net.clients, TOPICS, strict=True):
        await client.listen(topic)
    assert all(mole.id in tree.parents for tree in trees(net)), "it is nobody's host"
    return trees(net)


async def test_one_short_roster_changes_no_tree() -> None:
    async with small_network(relays=RELAYS, clients=3) as net:
        mole = net.relays[MOLE]
        directory = Directory(net, mole)
        before = await subscribed(net, mole)
        known = at_the_top(mole)
        directory.short = 1
        rosters = net.clients[0].daemon.overlay.rosters
        await until(lambda: rosters.newest and len(rosters.newest.relays) == 1, 2 * EPOCH_SECONDS)
        assert len(rosters.whole.seating().listed) == RELAYS
        assert rosters.held == 1
        assert net.clients[0].daemon.status()["roster"]["held"] == 1
        await trio.sleep(EPOCH_SECONDS / 3)
        assert len(rosters.whole.current().relays) == RELAYS, "publications do not all go to it either"
        await trio.sleep(4 * EPOCH_SECONDS)
        assert trees(net) == before
        assert at_the_top(mole) == known
        assert rosters.held == 0
        assert net.clients[0].count("rosters_held") == 1
        assert net.count("roster_mismatches") == 0


async def test_a_restart_forgets_no_roster_that_is_held() -> None:
    async with small_network(relays=RELAYS, clients=3) as net:
        mole = net.relays[MOLE]
        directory = Directory(net, mole)
        before = await subscribed(net, mole)
        directory.short = 2
        await trio.sleep(2 * EPOCH_SECONDS)
        for client in net.clients:
            await client.restart()
        rosters = net.clients[0].daemon.overlay.rosters
        assert rosters.held > 0 or len(rosters.whole.current().relays) == RELAYS
        assert rosters.whole.seating().kept == {relay.id for relay in net.relays}
        await trio.sleep(3 * EPOCH_SECONDS)
        assert trees(net) == before


async def test_short_rosters_for_long_take_hold_slowly_and_heal_by_themselves() -> None:
    """What the directory says for long is believed of the next day; when it is honest again, it heals."""
    async with small_network(relays=RELAYS, clients=3) as net:
        mole = net.relays[MOLE]
        directory = Directory(net, mole)
        before = await subscribed(net, mole)
        today = net.calendar.day(net.now)
        # The mole serves its own descriptor to the end; the others go on registering and are not listed.
        directory.short = MAX_HELD + UNSEAT_AFTER + 12
        await net.sleep_until(net.calendar.day_start(today + 1) - 1)
        assert directory.short <= 0
        routes = [client.route(topic) for client, topic in zip(net.clients, TOPICS, strict=True)]
        assert [route.on(today)[0].installation.tree for route in routes] == before
        least = net.seats - max(LEAST_LEAVING, net.seats // MOST_LEAVING)
        sizes = [len(route.on(today + 1)[0].installation.tree.parents) for route in routes]
        assert min(sizes) == least
        await net.sleep_until(net.calendar.day_start(today + 2) + 2 * EPOCH_SECONDS)
        for route in routes:
            tree = route.on(today + 2)[0].installation.tree
            assert len(tree.parents) == net.seats
            assert strain(tree, net.profile.depth) < STRAINED
            assert 3 <= len(tree.children[None]) <= branching(RELAYS, net.profile.depth)
        ears = [await client.listen(topic) for client, topic in zip(net.clients, TOPICS, strict=True)]
        for topic, ear in zip(TOPICS, ears, strict=True):
            await net.clients[0].daemon.service.publish(topic, Content(b"x"))
            assert await ear.hears(1) == [b"x"]


async def test_a_tree_broken_before_is_drawn_anew_for_the_next_day() -> None:
    """As a daemon of before finds its trees that were all put under one relay."""
    async with small_network(relays=RELAYS, clients=1, later=14) as net:
        mole = net.relays[MOLE]
        await net.clients[0].listen()
        route = net.clients[0].route()
        (planned,) = route.planned.values()
        root = planned.installation.root
        assert isinstance(root, HostRoot)
        assert root.relay != mole.id
        everybody = {relay.id for relay in net.relays} - {root.relay}
        broken = Tree({relay: None if relay == mole.id else mole.id for relay in everybody})
        object.__setattr__(planned.installation, "tree", broken)
        assert STRAINED <= strain(broken, net.profile.depth) < math.inf
        await net.sleep_until(net.calendar.day_start(planned.installation.day + 1) - 1)
        (tomorrow,) = route.on(planned.installation.day + 1)
        assert strain(tomorrow.installation.tree, net.profile.depth) == 1
        assert net.each_seat_holds(2)
