"""What daemons do while it is not known who serves a topic, or who there will be tomorrow: it has to wait."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import trio
from small_network import DAY_SECONDS, EPOCH_SECONDS, ONE, Node, SmallNetwork, small_network, until

from hushcast_local.outbox import NoReceiptYet
from hushcast_overlay.neighbourhood import Neighbourhood
from hushcast_overlay.relay.detours import Detours
from hushcast_overlay.shards.shards import Shards
from hushcast_protocol.base.epochs import EPOCHS_A_DAY
from hushcast_protocol.base.errors import DecodeError, HushcastError
from hushcast_protocol.base.link.hop import DETOUR_AFTER
from hushcast_protocol.base.roster_standing import RosterStanding
from hushcast_protocol.content.bodies import Content
from hushcast_protocol.content.hops import Hop
from hushcast_protocol.overlay.hops import relay_hop
from hushcast_protocol.overlay.tree import Tree
from hushcast_runtime.storage.spool import SpooledMessage
from hushcast_runtime.transports.base import TransportError

LONG = 4 * 3600  # seconds of an epoch, so long that no tree is mended during a test
ERRORS = [TransportError("no guide answers"), DecodeError("a guide shows something else")]


class Outage:
    """While it lasts nobody finds out which relays serve a topic."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, error: HushcastError | TransportError) -> None:
        self.lasts = False
        self.asked = 0
        found = Shards.find

        async def find(shards: Shards, day: int, trunk: bytes, copy: int = 0) -> Neighbourhood:
            if self.lasts:
                self.asked += 1
                raise error
            return await found(shards, day, trunk, copy)

        monkeypatch.setattr(Shards, "find", find)


@pytest.fixture(params=ERRORS, ids=["silent", "wrong"])
def outage(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Outage:
    return Outage(monkeypatch, request.param)


def trees_of(subscriber: Node) -> dict[int, Tree]:
    planned = subscriber.route().planned.values()
    return {one.installation.day: one.installation.tree for one in planned}


async def test_a_subscription_waits_and_tries_again(outage: Outage) -> None:
    async with small_network(relays=4) as net:
        outage.lasts = True
        async with trio.open_nursery() as nursery:
            nursery.start_soon(net.clients[0].listen)
            await trio.sleep(2 * EPOCH_SECONDS)
            assert trees_of(net.clients[0]) == {}
            assert outage.asked > 5
            assert not net.clients[0].route().ready.is_set()
            outage.lasts = False
        assert net.clients[0].route().ready.is_set()
        assert net.count("internal_errors") == 0


async def test_a_publication_waits_in_the_outbox(outage: Outage) -> None:
    async with small_network(relays=4, clients=2) as net:
        ear = await net.clients[0].listen()
        outage.lasts = True
        with pytest.raises(NoReceiptYet, match="which relays take the message could not be fetched"):
            await net.clients[1].daemon.service.publish(ONE, Content(b"x"))
        assert ear.heard == []
        outage.lasts = False
        assert await ear.hears(1) == [b"x"]
        assert net.count("internal_errors") == 0


@pytest.mark.slow
async def test_relays_are_told_to_forget_once_they_are_known(outage: Outage) -> None:
    async with small_network(relays=4) as net:
        ear = await net.clients[0].listen()
        outage.lasts = True
        ear.close()
        await net.clients[0].daemon.service.unsubscribe(ONE)
        await trio.sleep(2 * EPOCH_SECONDS)
        assert sum(net.leases().values()) == net.seats
        assert outage.asked > 1
        outage.lasts = False
        await until(lambda: set(net.leases().values()) == {0}, 2 * EPOCH_SECONDS, "it is withdrawn")


@pytest.mark.slow
async def test_tomorrow_is_not_planned_while_nothing_is_known_of_it_and_today_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is known from the first roster of tomorrow on, which comes shortly before the day."""
    async with small_network(relays=4, clients=2) as net:
        began = net.calendar.day(net.now)
        first = net.calendar.day_start(began + 1) - 0.5 * net.calendar.lead

        def knows(shards: Shards, day: int) -> bool:
            return day <= net.calendar.day(net.now) or net.now >= first

        monkeypatch.setattr(Shards, "knows", knows)
        ear = await net.clients[0].listen()
        await net.sleep_until(first - 1)
        assert list(trees_of(net.clients[0])) == [began]
        await net.sleep_until(net.calendar.day_start(began + 1))
        assert list(trees_of(net.clients[0])) == [began, began + 1]
        await trio.sleep(1)
        await net.clients[1].daemon.service.publish(ONE, Content(b"x"))
        assert await ear.hears(1) == [b"x"]


@pytest.mark.slow
async def test_where_it_is_late_to_be_known_tomorrow_is_looked_for_often(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with small_network(relays=4) as net:
        began = net.calendar.day(net.now)
        known = net.calendar.day_start(began + 1) - 0.05 * net.calendar.lead
        asked: list[float] = []

        def knows(shards: Shards, day: int) -> bool:
            if day > began:
                asked.append(net.now)
            return day <= began or net.now >= known

        monkeypatch.setattr(Shards, "knows", knows)
        await net.clients[0].listen()
        await net.sleep_until(known)
        assert list(trees_of(net.clients[0])) == [began]
        assert 6 <= len({*asked}) < 1.5 * EPOCHS_A_DAY, "a look an epoch, and some at the first hour"
        await trio.sleep(net.calendar.lead)
        assert list(trees_of(net.clients[0])) == [began, began + 1]


@pytest.mark.slow
async def test_what_fails_of_tomorrow_keeps_nothing_of_today_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with small_network(relays=4, clients=2) as net:
        today = net.calendar.day(net.now)
        found = Shards.find
        asked: list[float] = []

        async def find(shards: Shards, day: int, trunk: bytes, copy: int = 0) -> Neighbourhood:
            if day > today:
                asked.append(net.now)
                raise TransportError("nobody has heard of tomorrow")
            return await found(shards, day, trunk, copy)

        monkeypatch.setattr(Shards, "find", find)
        await net.sleep_until(net.calendar.day_start(today + 1) - 0.2 * DAY_SECONDS)
        ear = await net.clients[0].listen()
        await trio.sleep(EPOCH_SECONDS)  # it renews in the second half of a day
        assert len(asked) > 3
        await net.clients[1].daemon.service.publish(ONE, Content(b"x"))
        assert await ear.hears(1) == [b"x"]


@pytest.mark.slow
async def test_messages_go_around_by_relays_of_their_own_neighbourhood_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with small_network(relays=12, clients=2, origins=1, epoch=LONG) as net:
        ear = await net.clients[0].listen()
        (tree,) = trees_of(net.clients[0]).values()
        top = next(relay for relay in tree.children[None] if tree.children.get(relay))
        below = net.relay(tree.children[top][0])
        near = [relay for relay in tree.parents if relay not in (top, below.id)][:2]
        own = smaller_neighbourhood(net, below, {top, below.id, *near})
        monkeypatch.setattr(below.daemon.overlay.shards, "own", lambda day: own)
        taken = ways_around(below, monkeypatch)
        await net.relay(top).stop()
        for number in range(6):
            await net.drop_at(below, ONE, Content(b"%d" % number))
        await ear.hears(6, within=4 * DETOUR_AFTER)
        assert len(taken) >= 6
        assert set(taken) <= {relay_hop(relay) for relay in near}


def ways_around(relay: Node, monkeypatch: pytest.MonkeyPatch) -> list[Hop]:
    """Note by which relays a relay takes messages around others."""
    taken: list[Hop] = []
    around = Detours.around

    async def noted(detours: Detours, hop: Hop, items: Any, away: Any) -> list[tuple[Hop, SpooledMessage]]:
        placed = await around(detours, hop, items, away)
        if detours._relay == relay.id:
            taken.extend(way for way, _ in placed)
        return placed

    monkeypatch.setattr(Detours, "around", noted)
    return taken


def smaller_neighbourhood(net: SmallNetwork, node: Node, relays: set[bytes]) -> Neighbourhood:
    """What a relay would hold of a shard of these."""
    whole = node.daemon.overlay.rosters.whole
    near = Neighbourhood(whole.calendar, net.env)
    for standing in whole.standings:
        kept = {name: relay for name, relay in standing.roster.relays.items() if name in relays}
        roster = replace(standing.roster, relays=kept)
        near.hold(RosterStanding(roster, roster))
    return near


async def test_who_drops_at_a_relay_far_away_sees_that_it_holds_another_roster() -> None:
    """A client has no relays near it on a day that is cut; those that it drops at are listed all the same."""
    async with small_network(relays=4) as net:
        client = net.clients[0].daemon.overlay
        view = client.rosters.view()
        assert view is not None
        client.shards.relay = lambda relay: None  # type: ignore[method-assign]
        await net.clients[0].daemon.service.publish(ONE, Content(b"x"))
        assert net.clients[0].count("roster_mismatches") == net.clients[0].count("views_passed_over") == 0
        client.rosters._digests[view.epoch] = b"another" + bytes(25)
        with pytest.raises(NoReceiptYet):
            await net.clients[0].daemon.service.publish(ONE, Content(b"y"))
        assert net.clients[0].count("roster_mismatches") > 0
