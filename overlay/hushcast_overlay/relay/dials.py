"""Dials: so many attempts to open a link at once, and whose turn it is when more are wanted.

A next hop need not exist: anybody can install leases that send to a host that nobody runs. An attempt to
reach it takes a circuit for half a minute, so attempts are few, and a next hop that never answered waits for
those that did, but for so many only.
"""

from __future__ import annotations

import heapq
import itertools
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio

from hushcast_protocol.content.hops import Hop

MAX_DIALS = 64  # at once; where nobody answers, two or three circuits a second
MAX_KNOWN = 65_536  # next hops remembered to have answered, or not; 10 MB

BEHIND = 1024  # that ask later and go first, for each attempt in vain: no next hop is kept out for good
NEVER = 2  # attempts in vain that one counts as that never answered: it waits for such as failed once


class Dials:
    """The attempts of one relay."""

    def __init__(self) -> None:
        self._under_way = 0
        self._waiting: list[tuple[int, int, trio.Event]] = []  # place, order of asking
        self._order = itertools.count()
        self._known: OrderedDict[Hop, int] = OrderedDict()
        """How many attempts were in vain since a next hop answered last."""

    @asynccontextmanager
    async def turn(self, hop: Hop) -> AsyncIterator[None]:
        """Wait for this next hop's turn to be dialled, and hold it.

        The less often it failed to answer, the earlier; one that never did counts as `NEVER` failures.
        But each attempt in vain lets only so many go first that ask later: nobody can keep others out by
        asking for ever new next hops, or for such as answer now and then.
        """
        await self._begin(hop)
        try:
            yield
        finally:
            self._end()

    def answered(self, hop: Hop) -> None:
        """Note that a link to a next hop opened, from either end."""
        self._note(hop, 0)

    def failed(self, hop: Hop) -> None:
        """Note that a next hop was not reached."""
        self._note(hop, self._known.get(hop, NEVER) + 1)

    def _note(self, hop: Hop, failures: int) -> None:
        self._known[hop] = failures
        self._known.move_to_end(hop)
        if len(self._known) > MAX_KNOWN:
            self._known.popitem(last=False)

    async def _begin(self, hop: Hop) -> None:
        if self._under_way < MAX_DIALS:
            self._under_way += 1
            return
        mine, order = trio.Event(), next(self._order)
        place = order + BEHIND * self._known.get(hop, NEVER)
        heapq.heappush(self._waiting, (place, order, mine))
        try:
            await mine.wait()
        except trio.Cancelled:
            if mine.is_set():
                self._end()
            else:
                self._waiting = [entry for entry in self._waiting if entry[-1] is not mine]
                heapq.heapify(self._waiting)
            raise

    def _end(self) -> None:
        if self._waiting:
            heapq.heappop(self._waiting)[-1].set()  # the turn is handed on
        else:
            self._under_way -= 1
