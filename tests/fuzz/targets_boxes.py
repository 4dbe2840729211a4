"""Targets: the boxes of a host, moved by owners, by what comes for them, by time and by restarts."""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from typing import Any
from unittest import mock

import core_examples as examples
import trio
import trio.testing
from core_examples import NETWORK, NOW, relay_id, stream
from fuzzing import Script, Target, scripts

from hushcast_node.counters import COUNTERS
from hushcast_overlay.relay.boxes import box_ids, kept_boxes, sought_trunks
from hushcast_overlay.relay.boxes.box_lanes import BoxLanes
from hushcast_overlay.relay.boxes.kept_boxes import KeptBoxes
from hushcast_overlay.relay.boxes.sought_trunks import SoughtTrunks, windows
from hushcast_overlay.relay.identity import Identity
from hushcast_overlay.relay.lease_store import LeaseStore
from hushcast_protocol.base.crypto.secrets import FilterKey
from hushcast_protocol.base.errors import PeerError, Refusal
from hushcast_protocol.base.keeping_rule import KeepingRule
from hushcast_protocol.content.hops import HopMessage
from hushcast_protocol.content.messages import Message
from hushcast_protocol.overlay import box_shares, leases
from hushcast_protocol.overlay.box_frames import Hold, SoughtTrunk, box_lease
from hushcast_protocol.overlay.hops import box_hop, key_of
from hushcast_runtime.context import Context
from hushcast_runtime.counters import Counters
from hushcast_runtime.environment import Environment, run_here
from hushcast_runtime.logs import LEVELS, log
from hushcast_runtime.storage.spool import Spool, SpooledMessage
from hushcast_runtime.storage.store import MemoryStore
from hushcast_runtime.tracing import NoTracer

_IDENTITY = Identity(examples.seed(0), examples.seed(0), examples.parcel_key(0), FilterKey(bytes(32)))
_BOXES = [relay_id(number) for number in range(5)]
_IDS = 20  # that are remembered of all boxes
_MOST = 4 * 1167  # bytes of a box; its messages have 1,167 each


@cache
def _sealed(number: int, day: int) -> Message:
    return examples.small_message(number=number, day=day)


class _Lists:
    """What a host knows of keepers here."""

    keeping = KeepingRule(1, 3)


class _Host:
    """One host over its lives, and what has to hold of it."""

    def __init__(self, nursery: trio.Nursery) -> None:
        self.now = NOW
        self.store = MemoryStore()
        self._nursery = nursery
        self._told: dict[bytes, int] = {}
        self.places: dict[bytes, list[SpooledMessage]] = {}

    async def start(self) -> None:
        async def compute(function: Any, *args: Any) -> Any:
            return run_here(function, *args)

        env = Environment(lambda: self.now, stream(), compute)
        context = Context(env, self.store, Counters(COUNTERS), NoTracer(), self._nursery.start_soon)
        self.leases = LeaseStore(_IDENTITY, NETWORK.calendar, context)
        self.spool = Spool(self.store)
        lists: Any = _Lists()
        self.sought = SoughtTrunks(lists, NETWORK.calendar, context)
        self.boxes = KeptBoxes(self.leases, self.spool, self.sought, BoxLanes(self.spool, context), context)
        await self.leases.load()
        await self.sought.load()
        await self.spool.load()
        await self.boxes.load()
        self.places.clear()

    def day(self) -> int:
        return NETWORK.calendar.day(self.now)

    async def come(self, script: Script) -> None:
        """Messages come for boxes that leases lead to."""
        to = [hop for hop in self.leases.book.next_hops() if script.number() % 2]
        if not to:
            return
        one = _sealed(script.number() % 40, self.day())
        placed = self.spool.put([HopMessage(hop, one) for hop in to])
        for box, item in self.boxes.take(placed):
            self.places.setdefault(box, []).append(item)
        await self.boxes.make_room()

    async def lapse(self) -> None:
        first = NETWORK.calendar.open_days(self.now).start
        for _ in self.spool.expire(lambda hop, day: day >= first - 1 or self.boxes.keeps(key_of(hop), day)):
            pass
        await self.leases.lapse()
        await self.boxes.lapse()

    def forget_told(self) -> None:
        """Expect a box that was forgotten to count anew."""
        self._told = {box: told for box, told in self._told.items() if box in self.boxes}

    async def check(self) -> None:
        await trio.testing.wait_all_tasks_blocked()
        held: dict[bytes, int] = {}
        for place, size in self.spool.held():
            held[place[1:33]] = held.get(place[1:33], 0) + size
        for box in {*held, *_BOXES}:
            assert self.boxes._shares.size_of(box) == held.get(box, 0) <= _MOST
            _, gave_way, sought = self.boxes.standing(box)
            if box not in self.boxes:
                assert not self.leases.book.held_for(box_hop(box)), "a lease leads to a box that is not kept"
                assert not held.get(box), "something waits in a box that is not kept"
                assert sought is None, "keepers are asked for a box that is not kept"
            else:
                assert gave_way >= self._told.get(box, 0), "what gave way was told, and is no more"
                self._told[box] = gave_way
        assert self.boxes._shares.size == sum(held.values()) <= 2 * _MOST
        assert len(self.boxes) <= 4
        assert len(self.sought) <= 3
        had = self.sought._ids
        assert len(had) == sum(map(len, had._had.values())) <= _IDS
        for day, trunk in self.sought.wanted(2**40):
            assert self.sought.boxes(day, trunk)


async def _boxes(data: bytes) -> None:
    script = Script(data)
    async with trio.open_nursery() as nursery:
        host = _Host(nursery)
        await host.start()
        while script:
            await _move(script, host)
            host.forget_told()
            if script.number() % 4 == 0:
                await host.check()
        await host.check()


async def _move(script: Script, host: _Host) -> None:
    move, box = script.number() % 20, script.choose(_BOXES)
    if move == 0:
        host.now += NETWORK.calendar.epoch_seconds * (script.number() ** 2 / 1024)  # up to 64 epochs
        await host.lapse()
    elif move == 1:
        await trio.testing.wait_all_tasks_blocked()  # what has been decided is written
        await host.start()
    elif move == 2:
        await host.boxes.close(box)
    elif move <= 5:
        host.boxes.settled(box, host.places.pop(box, [])[: script.number() % 4 + 1])
    elif move <= 9:
        name, day = bytes([script.number() % 12]) * 16, host.day() + script.choose((0, 0, 1, 2))
        try:
            lease = box_lease(box, Hold(1, name, day, (script.take(16).ljust(16),), (), None))
            await host.boxes.hold(box, lease, script.number() > 9)
        except (Refusal, PeerError):
            return
    elif move <= 15:
        await host.come(script)
    elif move == 16:
        epoch = NETWORK.calendar.epoch(host.now)
        for day, trunk in host.sought.wanted(host.day()):
            host.sought.asked(host.sought.boxes(day, trunk), day, min(epoch, windows(day).stop))
    else:
        days = {host.day() + script.number() % 9 - 4: script.number() % 2 for _ in range(3)}
        trunks = [SoughtTrunk(day, bytes([day % 5]) * 16, bool(whole)) for day, whole in days.items()]
        with suppress(Refusal, PeerError):
            await host.boxes.seek(box, trunks, script.number() > 9)


def _run(data: bytes) -> None:
    log._silent = LEVELS
    with (
        mock.patch.multiple(
            box_shares, MAX_BOX=_MOST, MAX_ALL_BOXES=2 * _MOST, GIVEN_AT_ONCE=_given_at_once(data)
        ),
        mock.patch.object(kept_boxes, "MAX_BOXES", 4),
        mock.patch.object(leases, "MAX_BOX_LEASES", 3),
        mock.patch.object(sought_trunks, "MAX_SEEKING", 3),
        mock.patch.object(box_ids, "MAX_BOX_IDS", _IDS),
    ):
        trio.run(_boxes, data, clock=trio.testing.MockClock(autojump_threshold=0))


def _given_at_once(data: bytes) -> int:
    """Return how much gives way at once in this run: little, or more than a box has."""
    return 1 if len(data) % 2 else 2 * _MOST


TARGETS = [Target("boxes", _run, lambda: scripts(size=300), weight=2)]
