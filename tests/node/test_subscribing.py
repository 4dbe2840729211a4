"""Subscribing takes what relays that are there take to answer, and not what is waited for others."""

from __future__ import annotations

import pytest
import trio
from hosted_network import LONG, hosts_of, in_use, subscribed
from small_network import DAY_SECONDS, EPOCH_SECONDS, small_network, until

from hushcast_overlay.routes.route import LATEST_RENEWAL
from hushcast_overlay.routes.upkeep import OTHERS_WITHIN

ANSWERED_WITHIN = 4.0  # virtual seconds: a link to the host, and two down the tree, none of which was there

ATTEMPTS_WITHIN = 25.0  # virtual seconds: two attempts to reach who lets one wait


@pytest.mark.parametrize("away", [0, 1, 2])
async def test_relays_that_are_away_hold_up_nobody(away: int) -> None:
    async with small_network(relays=10, clients=1, seed=4, epoch=LONG) as net:
        silent = {relay.id for relay in net.relays[:away]}
        for relay in net.relays[:away]:
            relay.gate.shut()
        began = trio.current_time()
        ear = await net.clients[0].listen()
        took = trio.current_time() - began
        assert hosts_of(net, net.clients[0])[0].id not in silent, "else it is waited for the second"
        assert took < ANSWERED_WITHIN + (OTHERS_WITHIN if away else 0.0)
        (planned,) = net.clients[0].route().planned.values()
        assert planned.unconfirmed == silent, "all others are told"
        assert ear.feed.nodes == net.seats - away


async def test_tomorrow_holds_up_nobody() -> None:
    async with small_network(clients=1) as net:
        midnight = net.calendar.day_start(net.calendar.day(net.now) + 1)
        await net.sleep_until(midnight - LATEST_RENEWAL * DAY_SECONDS + EPOCH_SECONDS)
        with trio.move_on_after(ANSWERED_WITHIN) as too_long:
            await subscribed(net.clients[0])
        assert not too_long.cancelled_caught
        (today,) = net.clients[0].route().planned.values()
        assert today.installation.day == net.calendar.day(net.now)
        await until(lambda: len(net.clients[0].route().planned) == 2, DAY_SECONDS / 4, "tomorrow is planned")


async def test_a_first_host_that_is_away_is_tried_twice() -> None:
    async with small_network(relays=10, clients=1, seed=2, epoch=LONG) as net:
        net.relays[0].gate.shut()
        began = trio.current_time()
        await subscribed(net.clients[0])
        first, second = hosts_of(net, net.clients[0])
        assert first is net.relays[0]
        assert in_use(net, net.clients[0]) is second
        assert trio.current_time() - began < ATTEMPTS_WITHIN + ANSWERED_WITHIN + OTHERS_WITHIN
