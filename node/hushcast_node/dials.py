"""Dials: so many attempts to open a link at once, and whose turn it is when more are wanted.

A next hop need not exist: anybody can install leases that send to a mailbox nobody opened. An attempt to
reach it takes a circuit for half a minute, so attempts are few, and a next hop that never answered waits for
those that did.
"""

from __future__ import annotations

import heapq
import itertools
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio

from hushcast_protocol.hops import Hop

MAX_DIALS = 64  # at once; where nobody answers, two or three circuits a second
MAX_KNOWN = 65_536  # next hops remembered to have answered, or not; 10 MB

_Turn = tuple[bool, int, int]  # never answered, attempts in vain, order of asking


class Dials:
    """The attempts of one relay."""

    def __init__(self) -> None:
        self._under_way = 0
        self._waiting: list[tuple[_Turn, trio.Event]] = []
        self._order = itertools.count()
        self._known: OrderedDict[Hop, tuple[bool, int]] = OrderedDict()
        """Whether a next hop ever answered, and how many attempts were in vain since."""

    @asynccontextmanager
    async def turn(self, hop: Hop) -> AsyncIterator[None]:
        """Wait for this next hop's turn to be dialled, and hold it.

        First come those that answered before, then those that failed to least often.
        """
        await self._begin(hop)
        try:
            yield
        finally:
            self._end()

    def answered(self, hop: Hop) -> None:
        """Note that a link to a next hop opened, from either end."""
        self._note(hop, (True, 0))

    def failed(self, hop: Hop) -> None:
        """Note that a next hop was not reached."""
        ever, failures = self._known.get(hop, (False, 0))
        self._note(hop, (ever, failures + 1))

    def _note(self, hop: Hop, known: tuple[bool, int]) -> None:
        self._known[hop] = known
        self._known.move_to_end(hop)
        if len(self._known) > MAX_KNOWN:
            self._known.popitem(last=False)

    async def _begin(self, hop: Hop) -> None:
        if self._under_way < MAX_DIALS:
            self._under_way += 1
            return
        ever, failures = self._known.get(hop, (False, 0))
        mine = trio.Event()
        heapq.heappush(self._waiting, ((not ever, failures, next(self._order)), mine))
        try:
            await mine.wait()
        except trio.Cancelled:
            if mine.is_set():
                self._end()
            else:
                self._waiting = [entry for entry in self._waiting if entry[1] is not mine]
                heapq.heapify(self._waiting)
            raise

    def _end(self) -> None:
        if self._waiting:
            heapq.heappop(self._waiting)[1].set()  # the turn is handed on
        else:
            self._under_way -= 1
