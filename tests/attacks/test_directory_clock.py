"""A directory whose clock is wrong, for one look or for a while: no network breaks by it, or stays so."""

from __future__ import annotations

import math

import pytest
import trio
from small_network import EPOCH_SECONDS, ONE, TWO, Node, SmallNetwork, network_with_clocks_set, until

from hushcast_protocol.authorities.actions import AuthorityState
from hushcast_protocol.base.trusted_clock import FOLLOWED_AFTER
from hushcast_protocol.content.bodies import Content
from hushcast_protocol.overlay.leases import Lease

pytestmark = pytest.mark.slow

LATER = [30, 87_600]  # epochs; those of an hour: a day and more, ten years and more


async def works(net: SmallNetwork) -> None:
    """Everybody holds a roster of now, the trees hold all relays, messages arrive, newcomers find in."""
    epoch = net.calendar.epoch(net.now)
    for node in net.nodes:
        newest = node.daemon.overlay.rosters.newest
        assert newest is not None
        assert epoch <= newest.epoch <= epoch + 1, node.name
        assert len(newest.relays) == len(newest.origins) == len(net.relays), node.name
    subscriber, publisher = net.clients[:2]
    for planned in subscriber.route().on(net.calendar.day(net.now)):
        assert len(planned.installation.tree.parents) == net.seats
        assert not planned.unconfirmed
    ear = await publisher.listen(TWO)
    await subscriber.daemon.service.publish(TWO, Content(b"works"))
    assert await ear.hears(1) == [b"works"]
    ear.close()
    assert await publisher.daemon.service.unsubscribe(TWO)
    assert net.count("roster_mismatches") == 0


async def publish(net: SmallNetwork, later: float) -> int:
    """Have the directory publish what is due at another time, for one look; return the epoch."""
    agreeing = net.directory.agreeing
    machine = agreeing.machine
    assert machine is not None
    epoch = machine.due_alone(later)
    assert epoch is not None
    async with agreeing._moves:
        listed = await agreeing._ballot(epoch, math.inf)
        await agreeing._do(machine, machine.alone(listed, None, later))
        assert max(agreeing._archive.epochs) == epoch
    return epoch


def leases_of(relay: Node) -> list[Lease]:
    assert relay.daemon.overlay.relay is not None
    return list(relay.daemon.overlay.relay.leases.book._leases.values())


@pytest.mark.parametrize("ahead", LATER)
async def test_a_roster_signed_for_a_time_to_come_is_taken_by_nobody_and_taken_back(ahead: int) -> None:
    async with network_with_clocks_set(relays=6) as net:
        ear = await net.clients[0].listen()
        held = net.clients[0].daemon.overlay.rosters.newest
        assert await publish(net, net.now + ahead * EPOCH_SECONDS) >= net.calendar.epoch(net.now) + ahead
        joining = net.add("late", False)  # whoever joins at this moment knows no other roster
        await joining.start()
        for number in range(12):
            await net.clients[1].daemon.service.publish(ONE, Content(b"%d" % number))
            await trio.sleep(EPOCH_SECONDS / 2)
        assert await ear.hears(12) == [b"%d" % number for number in range(12)]
        assert held is not None
        newest = net.clients[0].daemon.overlay.rosters.newest
        assert newest is not None
        assert newest.epoch == held.epoch + 6
        await works(net)


async def test_daemons_live_on_while_only_rosters_for_a_time_to_come_are_there() -> None:
    """The directory is not mended: it never takes back what it signed."""
    async with network_with_clocks_set(relays=6) as net:
        ear = await net.clients[0].listen()

        async def nothing(kept: AuthorityState, now: float) -> None:
            return None

        net.directory.agreeing._ahead.take_back = nothing  # type: ignore[method-assign]
        await publish(net, net.now + 30 * EPOCH_SECONDS)
        held = net.clients[0].daemon.overlay.rosters.newest
        for number in range(20):
            await net.clients[1].daemon.service.publish(ONE, Content(b"%d" % number))
            await trio.sleep(EPOCH_SECONDS / 2)
        assert await ear.hears(20) == [b"%d" % number for number in range(20)]
        assert net.clients[0].daemon.overlay.rosters.newest is held
        today = net.calendar.day(net.now)  # the next day's may be installed by now, too
        for relay in net.relays:
            assert [lease.day for lease in leases_of(relay)].count(today) == 1


@pytest.mark.parametrize("ahead", [*LATER, -30, -87_600])
async def test_a_clock_that_jumps_signs_nothing_wrong(ahead: int) -> None:
    async with network_with_clocks_set(relays=6) as net:
        await net.clients[0].listen()
        net.directory.set_clock(float(ahead * EPOCH_SECONDS))
        for _ in range(8):  # longer than a jump takes that nobody speaks against
            await trio.sleep(FOLLOWED_AFTER * EPOCH_SECONDS / 8 - 1)
            assert net.directory.epoch <= net.calendar.epoch(net.now) + 1
        net.directory.set_clock(0.0)
        await trio.sleep(2 * EPOCH_SECONDS)
        await works(net)


@pytest.mark.parametrize("ahead", [30, 87_600])
async def test_a_clock_that_stays_wrong_and_is_set_right_costs_some_rosters(ahead: int) -> None:
    """Without a Tor, which would have told; the daemons work on by the rosters that they hold."""
    async with network_with_clocks_set(relays=6) as net:
        ear = await net.clients[0].listen()
        net.directory.set_clock(float(ahead * EPOCH_SECONDS))
        await trio.sleep((FOLLOWED_AFTER + 4) * EPOCH_SECONDS)
        assert net.directory.epoch > net.calendar.epoch(net.now) + ahead / 2
        net.directory.set_clock(0.0)
        for number in range(8):
            await net.clients[1].daemon.service.publish(ONE, Content(b"%d" % number))
            await trio.sleep(EPOCH_SECONDS)
        assert len(ear.heard) == 8
        await works(net)


@pytest.mark.parametrize("wrong", [30, -30])
async def test_a_directory_that_starts_with_a_wrong_clock_forks_nothing(wrong: int) -> None:
    """It is set right within minutes, as time services do after a start."""
    async with network_with_clocks_set(relays=6) as net:
        await net.clients[0].listen()
        await net.directory.stop()
        right = net.environment

        def environment(name: str) -> object:
            env = right(name)
            if name.startswith("directory"):
                object.__setattr__(env, "now", lambda: net.now + wrong * EPOCH_SECONDS)
            return env

        net.environment = environment  # type: ignore[method-assign,assignment]
        await net.directory.start()
        await trio.sleep(net.calendar.lead / 2)
        net.directory.set_clock(0.0)
        await trio.sleep((FOLLOWED_AFTER + 2) * EPOCH_SECONDS)
        await until(lambda: net.directory.epoch >= net.calendar.epoch(net.now), 2 * EPOCH_SECONDS)
        await trio.sleep(EPOCH_SECONDS)
        await works(net)
