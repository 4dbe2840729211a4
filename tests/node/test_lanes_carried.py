"""Blocks of boxes come down by host, second and porter of a whole network, whoever is away or killed."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pytest
import trio
from damage import set_aside
from lane_owner import LaneOwner
from late_disk import LateDisk
from lettered_network import ROUND, desks_of, kill, lettered_network, role_of
from owner_end import BODY, OwnerEnd, drop, leads_to, message
from small_network import Node, SmallNetwork, until

from hushcast_overlay.relay.cover.lane_desk import LaneDesk
from hushcast_overlay.relay.cover.porter import Porter
from hushcast_protocol.base.wire import encode
from hushcast_protocol.content.messages import Message
from hushcast_protocol.cover.lane_seconds import LANES
from hushcast_runtime.storage.changes import Change

pytestmark = pytest.mark.slow

Seen = dict[bytes, list[tuple[int, float, int, bytes]]]
"""By lane, or bill: round, moment as a share of a round from its begin, bytes of the frame, block."""


def seen_of(monkeypatch: pytest.MonkeyPatch, kind: type, method: str, name: str, net: SmallNetwork) -> Seen:
    """What relays are handed from now on by one kind of frame."""
    seen: Seen = defaultdict(list)
    take = getattr(kind, method)

    def taken(desk: Any, frame: Any, relay: bytes) -> None:
        moment = net.now / ROUND - frame.round
        seen[getattr(frame, name)].append((frame.round, moment, len(encode(frame)), frame.block))
        take(desk, frame, relay)

    monkeypatch.setattr(kind, method, taken)
    return seen


async def carried(net: SmallNetwork) -> tuple[LaneOwner, Node]:
    """A daemon whose three lanes carry blocks, the first with elements of today; and their top relay."""
    owner = LaneOwner(net)
    taken = {owner.porter, owner.second, owner.third, *owner.hosts}
    top = next(node for node in net.relays if node not in taken and node.id not in owner.seconds)
    await owner.begun_on_a_new_day()
    for lane in range(LANES):
        owner.ask(lane)
    await until(lambda: not owner.letters.messages, 8 * ROUND, "the errands are listed")

    def is_carried() -> bool:
        owner.read()
        return len({lane for lane, _ in owner.opened}) == LANES

    await until(is_carried, 100 * ROUND, "all lanes open")
    if net.now % net.calendar.day_seconds > net.calendar.day_seconds / 4:
        day = net.calendar.day(net.now) + 1
        await net.sleep_until(net.calendar.day_start(day) + ROUND)
    owner.ask(0, (top,), with_errand=False)
    await until(lambda: not owner.letters.messages, 8 * ROUND, "what leads to the box is listed")
    await leads_to(net, top, owner.hosts[0])
    return owner, top


async def is_heard(owner: LaneOwner, messages: list[Message], rounds: int, times: int = 1) -> None:
    """Wait until all came down so often."""

    def have_come() -> bool:
        owner.read()
        return all(owner.heard[one.id] >= times for one in messages)

    await until(have_come, rounds * ROUND, "what came for the box came down")


async def test_what_comes_for_a_box_comes_down_and_its_second_sees_no_difference(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with lettered_network() as net:
        owner, top = await carried(net)
        end = OwnerEnd(net, owner.hosts[0], owner.seeds[0])
        await end.attach()
        given = seen_of(monkeypatch, LaneDesk, "take", "lane", net)
        handed = seen_of(monkeypatch, Porter, "take_block", "bill", net)
        first = owner.now + 2
        await trio.sleep(5 * ROUND)
        sent = [message(net.calendar.day(net.now), size=size) for size in (BODY, 15 * 1024 + BODY)]
        await drop(net, top, *sent)
        await is_heard(owner, sent, 16)
        await is_heard(owner, sent, 8, times=2)  # what was said longest ago is said again
        assert not end.heard, "nothing goes over its owner's link"
        owner.go()
        await end.detach()
        await trio.sleep(5 * ROUND)
        last = owner.now - 1
        assert len(given) == len(handed) == LANES
        for seen in (given, handed):
            for of_one in seen.values():
                rounds = [number for number, *_ in of_one if first <= number < last]
                assert rounds == list(range(first, last)), "one a round, whoever is there"
                moments = [moment for _, moment, *_ in of_one]
                assert max(moments) - min(moments) < 0.02, "each has its moment"
            assert len({size for of_one in seen.values() for _, _, size, _ in of_one}) == 1
        owner.come()
        await until(lambda: len(owner.blocks) and owner.blocks[-1].round >= last, 4 * ROUND, "it is back")
        owner.read()
        rounds_read = {number for lane, number in owner.opened if lane == 1 and first < number <= last}
        assert rounds_read == set(range(first + 1, last + 1)), "blocks of its absence are kept"


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(1, 50))])
async def test_all_comes_down_and_no_key_seals_twice_whoever_is_killed_when(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twelve kills each; of host, second and porter two hundred in all seeds."""
    async with lettered_network(seed=seed) as net:
        owner, top = await carried(net)
        given = seen_of(monkeypatch, LaneDesk, "take", "lane", net)
        handed = seen_of(monkeypatch, Porter, "take_block", "bill", net)
        ways = [owner.hosts[0], net.relay(owner.seconds[0]), owner.porter]
        for node in ways:
            await node.stop()
            node.store = LateDisk(node.store, net.env)
            await node.start()
        sent: list[Message] = []
        for number in range(12):
            sent.append(message(net.calendar.day(net.now)))
            await drop(net, top, sent[-1])
            await trio.sleep(net.env.uniform(0.0, 2 * ROUND))
            await kill(net, ways[number % 3])
        await is_heard(owner, sent, 30)
        for seen in (given, handed):
            for of_one in seen.values():
                assert len({number for number, *_ in of_one}) == len({(one[0], one[3]) for one in of_one})


async def test_records_of_lanes_are_judged_as_when_they_came_and_what_is_damaged_is_set_aside() -> None:
    async with lettered_network() as net:
        owner, _ = await carried(net)
        second = net.relay(owner.seconds[0])
        for node in (owner.hosts[0], second, owner.porter):
            await node.restart()
            await until(lambda node=node: role_of(node).desks, what="they have parts")  # type: ignore[misc]
        assert len(owner.host_desk(0)) == 1
        assert desks_of(second).lanes._bills._kept == {owner.shown[0].name}
        (place,) = desks_of(owner.porter).porter.places
        assert place.lanes is not None
        assert place.lanes.names == tuple(bill.name for bill in owner.shown)
        name, when = place.name, owner.now.to_bytes(8, "big")
        owner.hosts[0].store.write_soon(Change("box-lane", owner.seeds[0].public(), b"x"))
        second.store.write_soon(Change("cover-bill", owner.shown[0].name[:-1] + b"x", b"x"))
        owner.porter.store.write_soon(
            Change("cover-bills", name, b"x"), Change("cover-lanes", name + when, b"x")
        )
        for node, kinds in (
            (owner.hosts[0], {"box-lane"}),
            (second, {"cover-bill"}),
            (owner.porter, {"cover-bills", "cover-lanes"}),
        ):
            await node.restart()
            await until(lambda node=node: role_of(node).desks, what="they have parts")  # type: ignore[misc]
            assert set_aside(node.store) == kinds
        assert len(owner.host_desk(0)) == 0


async def test_what_waits_in_a_box_before_it_has_a_lane_is_said_in_it_and_kept_for_two_weeks() -> None:
    async with lettered_network() as net:
        owner = LaneOwner(net)
        host, box = owner.hosts[0], owner.seeds[0].public()
        top = next(node for node in net.relays if node not in owner.hosts)
        end = OwnerEnd(net, host, owner.seeds[0], acknowledges=False)
        await end.attach()
        await end.hold(top)
        await leads_to(net, top, host)
        day = net.calendar.day(net.now)
        await drop(net, top, message(day))
        await until(lambda: len(end.heard) == 1, 10)
        await end.detach()
        assert host.daemon.overlay.relay is not None
        boxes = host.daemon.overlay.relay.boxes
        assert not boxes.keeps(box, day - 13)
        await owner.host_desk(0).hold(owner.asked(0), True)
        assert boxes.keeps(box, day - 13)
        assert not boxes.keeps(box, day - 15)
        ((place, _),) = owner.host_desk(0)._lanes[box].box.said(owner.now)
        assert await boxes.lanes.read(place) == end.heard[0]
        await end.attach()
        await trio.sleep(10)
        assert len(end.heard) == 1, "what waits is not pushed any more"
