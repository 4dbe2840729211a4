"""A world around one hop machine: its spool, its links, and the other end, moved by numbers from a script."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random
from unittest import mock

from hushcast_protocol.base.link import hop
from hushcast_protocol.base.link.hop import DETOUR_AFTER, MAX_LINKS_A_PEER, NextHop
from hushcast_protocol.base.link.hop_link import IDLE, LinkState
from hushcast_protocol.base.link.hop_values import (
    BacklogState,
    Close,
    DialState,
    HopActions,
    HopCommand,
    HopRules,
    ReadBack,
    Reroute,
    SendItems,
    Settle,
)

QUEUE, WINDOW, READ_AT_ONCE = 24, 9, 4  # caps low enough to be reached
LARGEST = 5
AHEAD = 4  # a queue takes what one read brings


@contextmanager
def low_caps() -> Iterator[None]:
    with (
        mock.patch.object(hop, "MAX_QUEUE", QUEUE),
        mock.patch.object(hop, "MAX_UNACKNOWLEDGED", WINDOW),
        mock.patch.object(hop, "READ_AHEAD", AHEAD),
    ):
        yield


@dataclass(frozen=True)
class Parcel:
    """An item: its number, and the bytes that it counts."""

    number: int
    size: int


Link = LinkState[Parcel]


@dataclass
class Wire:
    """What is between the two ends of one link, and the far end of it."""

    far: Link
    there: list[Parcel] = field(default_factory=list)  # sent, and not taken over
    acks: list[tuple[int, tuple[int, ...]]] = field(default_factory=list)  # on their way back
    last: tuple[int, tuple[int, ...]] = (0, ())
    open: set[int] = field(default_factory=set)  # sent on this link, and not answered on it


class World:
    """Everything that a machine is told, and all that it may rely on."""

    def __init__(self, pick: Callable[[int], int], goes_around: bool = True, dials: bool = True) -> None:
        """`pick(n)` chooses from 0 to n - 1."""
        self.pick = pick
        self.now = 1000.0
        self.rules = HopRules(lambda item: item.number in self.spool, Random(1).randbytes, goes_around, dials)
        self.hop: NextHop[Link, Parcel] = NextHop(self.rules)
        self.spool: dict[int, Parcel] = {}
        self.wires: dict[Link, Wire] = {}
        self.taken: set[int] = set()  # by the far end, for good
        self.nowhere: set[int] = set()  # that the far end had no route for
        self.stuck: set[int] = set()  # of these, for which there is no other way, and a retry to come
        self.waiters = 0
        self.count = 0
        self.is_up = True  # the far end: while it is not, nothing comes from there
        self.is_dialling = self.is_moving = False
        self.reading: list[Parcel] | None = None  # what the spool held when it was asked
        self.asked = 0  # the item behind which that was
        self.progress = self.now  # when the far end answered last, or the machine was told to begin anew
        self.pauses: list[float] = []

    # What the machine wants done.

    def do(self, actions: HopActions[Link, Parcel]) -> None:
        for action in actions:
            if isinstance(action, SendItems):
                self._send(action.link, action.items)
            elif isinstance(action, Settle):
                for item in action.items:
                    assert item.number in self.taken or not self.rules.goes_around, "settled, and not taken"
                    assert item.number in self.taken | self.nowhere
                    self.spool.pop(item.number, None)
            elif isinstance(action, ReadBack):
                self._read(action.after)
            elif isinstance(action, Reroute):
                self._reroute(action.items)
            elif isinstance(action, Close):
                assert action.link not in self.hop.links
                del self.wires[action.link]
            else:
                self._do_named(action)

    def _do_named(self, action: HopCommand) -> None:
        if action is HopCommand.DIAL:
            assert not self.is_dialling
            assert self.rules.dials
            assert self.hop.needs_dial, "dialled for nobody"
            self.is_dialling = True
        elif action is HopCommand.STOP_DIALLING:
            assert self.is_dialling
            assert not self.hop.is_wanted
            self.is_dialling = False
        elif action is HopCommand.GO_AROUND:
            assert not self.is_moving
            assert self.hop.is_away
            self.is_moving = True
        elif action is HopCommand.WENT_AWAY:
            assert self.rules.goes_around
        else:
            assert action is HopCommand.CAME_BACK
            self.progress = self.now

    def _read(self, after: Parcel | None) -> None:
        assert self.reading is None
        assert self.rules.dials or self.hop.links
        if after is None:
            assert not self.in_memory(), "read again what is in memory"
        else:
            assert self.hop.queued < AHEAD
            assert max(self.in_memory(), default=0) <= after.number, "memory has what comes behind"
        self.asked = after.number if after is not None else 0
        # A read that is slow returns what was there when it began, or what is there when it ends.
        self.reading = self._next_items()

    def _next_items(self) -> list[Parcel]:
        return [item for item in self.spool.values() if item.number > self.asked][:READ_AT_ONCE]

    def _send(self, link: Link, items: list[Parcel]) -> None:
        assert link is self.hop.links[-1], "sent on a link that is not the newest"
        wire = self.wires[link]
        for item in items:
            assert item.number in self.spool, "sent what the spool does not hold"
            assert item.number not in wire.open, "sent on one link twice"
            wire.open.add(item.number)
            self.stuck.discard(item.number)
        wire.there += items

    def _reroute(self, items: list[Parcel]) -> None:
        assert self.rules.goes_around
        for item in items:
            if self.pick(2):
                self.spool.pop(item.number, None)
            elif item.number in self.spool:
                self.stuck.add(item.number)
        if self.stuck:
            self.do(self.hop.retry_later(self.now))

    # What happens.

    def enqueue(self) -> None:
        items = []
        for _ in range(1 + self.pick(6)):
            self.count += 1
            item = Parcel(self.count, 1 + self.pick(LARGEST))
            self.spool[item.number] = item
            items.append(item)
        self.do(self.hop.enqueue(items, self.now))

    def want(self) -> None:
        self.waiters += 1
        self.do(self.hop.want(self.now))

    def unwant(self) -> None:
        if self.waiters:
            self.waiters -= 1
            self.do(self.hop.unwant())

    def link_up(self, is_dialled: bool = False) -> None:
        if not self.is_up:
            return
        link = Link(self.now)
        self.wires[link] = Wire(Link(self.now))
        self.do(self.hop.link_up(link, is_dialled, self.now))

    def break_link(self, link: Link) -> None:
        del self.wires[link]
        self._went(self.hop.link_ended(link, self.away_after(), self.now))

    def break_one(self) -> None:
        if self.wires:
            self.break_link(list(self.wires)[self.pick(len(self.wires))])

    def far_restarts(self) -> None:
        for link in list(self.wires):
            if link in self.wires:
                self.break_link(link)

    def far_goes_down(self) -> None:
        """It is cut off, or its machine is: some links break, others fall silent."""
        self.is_up = False
        if self.pick(2):
            self.far_restarts()

    def far_comes_up(self) -> None:
        self.is_up = True

    def restart(self) -> None:
        """This end dies; what it had in memory is gone."""
        self.hop = NextHop(self.rules)
        self.wires.clear()
        self.stuck.clear()
        self.waiters = 0
        self.is_dialling = self.is_moving = False
        self.reading = None
        self.progress = self.now
        if self.spool:
            self.do(self.hop.resume(self.now))

    def dial_ends(self) -> None:
        if not self.is_dialling:
            return
        self.is_dialling = False
        if not self.hop.needs_dial and self.pick(2):
            self.do(self.hop.dial_unneeded(self.now))
        elif self.is_up and self.pick(4):
            self.link_up(is_dialled=True)
        else:
            self._went(self.hop.dial_failed(self.away_after(), self.now))

    def read_ends(self) -> None:
        if self.reading is not None:
            items = self.reading
            if self.pick(2):
                items = self._next_items()
            self.reading = None
            self.do(self.hop.read_back(items, self.now))

    def move_ends(self) -> None:
        if self.is_moving:
            items = list(self.spool.values())[:READ_AT_ONCE]
            moved = items[: self.pick(READ_AT_ONCE + 1)]
            for item in moved:
                del self.spool[item.number]
            self.is_moving = False
            self.do(self.hop.went_around(bool(items), bool(moved), self.now))

    def far_takes_over(self) -> None:
        """The far end takes over some of what is there, has no route for others, and acknowledges."""
        wires = [wire for wire in self.wires.values() if wire.there]
        if not wires or not self.is_up:
            return
        wire = wires[self.pick(len(wires))]
        batch = wire.there[: 1 + self.pick(6)]
        del wire.there[: len(batch)]
        places = [place for place in range(len(batch)) if self.pick(4) == 0]
        for place, item in enumerate(batch):
            (self.nowhere if place in places else self.taken).add(item.number)
        assert wire.far.take_over(len(batch), places)
        if self.pick(3):  # else it goes with the next one
            wire.far.owe(wire.far.taken)
            due = wire.far.due()
            assert due is not None
            wire.acks.append(due)

    def ack_arrives(self) -> None:
        links = [link for link, wire in self.wires.items() if wire.acks]
        if links and self.is_up:
            self.deliver_ack(links[self.pick(len(links))])

    def all_goes_well(self) -> None:
        """For a while what was asked for is done, and the far end takes over what comes."""
        for _ in range(self.pick(60)):
            self.dial_ends()
            self.far_takes_over()
            self.ack_arrives()
            self.check()
            if self.pick(4):
                self.read_ends()
                self.move_ends()

    def many_links_up(self) -> None:
        for _ in range(self.pick(6)):
            self.link_up()

    def deliver_ack(self, link: Link) -> None:
        wire = self.wires[link]
        number, unrouted = wire.last = wire.acks.pop(0)
        answered = bool(link.unacknowledged)
        still = {item.number for item in link.unacknowledged[max(0, number - link._acknowledged) :]}
        wire.open &= still
        if answered and len(still) < len(link.unacknowledged):
            self.progress = self.now
        self.do(self.hop.acknowledged(link, number, unrouted, self.now))
        link.touch(self.now)

    def ack_is_repeated(self) -> None:
        """Once more what was said already: it answers nothing new."""
        for link, wire in list(self.wires.items()):
            before = list(link.unacknowledged)
            self.do(self.hop.acknowledged(link, *wire.last, self.now))
            assert list(link.unacknowledged[: len(before)]) == before

    def expire(self) -> None:
        if self.spool:
            del self.spool[list(self.spool)[self.pick(len(self.spool))]]

    def pass_time(self) -> None:
        """To the next deadline or a little on, and sometimes past several at once."""
        step = self.pick(4)
        later = [at for at in self.deadlines() if self.now < at < math.inf] or [self.now + 1]
        self.now = min(later) if step else self.now + self.pick(400)
        if step == 1:
            self.now += self.pick(20)
        self.meet_deadlines()

    def deadlines(self) -> list[float]:
        return [self.hop.deadline, *(link.deadline for link in self.hop.links)]

    def meet_deadlines(self) -> None:
        for link in list(self.wires):
            if link in self.wires and link.deadline <= self.now:
                self.break_link(link)
        if self.hop.deadline <= self.now:
            if self.hop._retry_at <= self.now:
                self.stuck.clear()
                self.progress = self.now
            self.do(self.hop.tick(self.now))

    def away_after(self) -> float:
        self.patience = (DETOUR_AFTER, DETOUR_AFTER, DETOUR_AFTER, 0.0, math.inf)[self.pick(5)]
        return self.patience

    def _went(self, actions: HopActions[Link, Parcel]) -> None:
        if HopCommand.WENT_AWAY in actions:
            assert self.now - self.progress >= self.patience, "it counts as away, and answered just now"
        self.do(actions)

    # What must be true whatever happened.

    def in_memory(self) -> set[int]:
        held = {item.number for item in self.hop._queue}
        return held.union(*({item.number for item in link.unacknowledged} for link in self.hop.links))

    def check(self) -> None:
        machine = self.hop
        assert machine.links == tuple(self.wires)
        assert len(machine.links) <= MAX_LINKS_A_PEER
        assert machine.queued == sum(item.size for item in machine._queue) <= QUEUE
        for link in machine.links:
            assert link.in_flight == sum(item.size for item in link.unacknowledged) < WINDOW + LARGEST
            assert self.now <= link.deadline <= self.now + IDLE
        self._check_nothing_is_lost()
        self._check_it_is_not_stuck()

    def _check_nothing_is_lost(self) -> None:
        left = set(self.spool) - self.in_memory() - self.stuck
        assert not left or self.hop.backlog, "the spool holds what will never be sent"
        assert not self.stuck or self.hop.backlog or self.hop._retry_at < math.inf

    def _check_it_is_not_stuck(self) -> None:
        machine = self.hop
        assert machine.deadline > self.now
        assert (machine.dialling is DialState.DIALLING) == self.is_dialling
        assert (machine.backlog is BacklogState.READING) == (self.reading is not None)
        assert (machine.backlog is BacklogState.MOVING) == self.is_moving
        assert (machine.dialling is DialState.PAUSED) == (machine._dial_at < math.inf)
        if not self.rules.dials:
            assert machine.dialling is DialState.IDLE
            assert machine.links or not machine._queue
        elif machine.needs_dial:
            assert machine.dialling is not DialState.IDLE
        if machine._queue and machine.links:
            assert machine.links[-1].unacknowledged
        if machine.backlog is BacklogState.SPOOLED and (self.rules.dials or machine.links):
            assert machine._around_at < math.inf if machine.is_away else self.in_memory()
        if machine.is_unused:
            assert not set(self.spool) - self.stuck
            assert not self.waiters

    def move(self) -> None:
        """Let one thing happen."""
        self.moves()[self.pick(len(self.moves()))]()
        self.meet_deadlines()
        self.check()

    def moves(self) -> list[Callable[[], None]]:
        often = [self.far_takes_over, self.ack_arrives, self.dial_ends, self.read_ends, self.move_ends]
        often += [self.enqueue, self.all_goes_well, self.pass_time, self.pass_time]
        seldom = [self.want, self.unwant, self.link_up, self.many_links_up, self.break_one, self.far_restarts]
        seldom += [self.far_goes_down, self.far_comes_up, self.restart, self.ack_is_repeated, self.expire]
        return 2 * often + seldom

    def settle_down(self) -> None:
        """From now on nothing goes wrong: everything must leave, and then nothing be left."""
        self.is_up = True
        self.waiters, waiters = 0, self.waiters
        for _ in range(waiters):
            self.do(self.hop.unwant())
        self.pick = lambda most: most - 1  # the far end knows all, dials succeed, all moves at once
        for _ in range(40 + 4 * self.count):
            self.dial_ends()
            self.read_ends()
            self.move_ends()
            self.far_takes_over()
            self.ack_arrives()
            self.check()
            if not self.rules.dials and not self.hop.links:
                self.link_up()
            if self.hop.is_unused or (not self.rules.dials and not self.hop.is_wanted and not self.spool):
                break
            if not (self.is_dialling or self.is_moving or self.reading is not None or self._is_under_way()):
                self.now = min(self.deadlines())
                self.meet_deadlines()
        if not self.rules.dials:
            self.far_restarts()
        assert self.hop.is_unused, "it waits for nothing, and is not done"
        assert self.hop.deadline == math.inf
        assert not self.spool, "something was never sent"

    def _is_under_way(self) -> bool:
        return any(wire.there or wire.acks for wire in self.wires.values())


def play(
    pick: Callable[[int], int], more: Callable[[], bool], goes_around: bool = True, dials: bool = True
) -> None:
    """Let things happen for as long as the script has `more`, and then come to rest."""
    with low_caps():
        world = World(pick, goes_around, dials)
        while more():
            world.move()
        world.settle_down()
