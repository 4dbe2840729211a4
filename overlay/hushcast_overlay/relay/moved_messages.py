"""Moved messages: what waits for a host goes on to where the lease that it follows leads now.

A relay at the top of a tree keeps what comes for a host that is away, and goes around it nowhere. Where the
host is away for good, the owner of the box gives the lease another next hop. Then what waits follows, also
over restarts: until all has, the lease says on disk which next hop it had before. Where other leases lead to
that host still, it waits there as well.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import trio

from hushcast_overlay.relay.lease_store import LeaseStore
from hushcast_overlay.relay.next_hops import NextHops
from hushcast_protocol.content.hops import Hop
from hushcast_protocol.overlay.forwarding import Router
from hushcast_protocol.overlay.hops import is_box, is_host
from hushcast_protocol.overlay.leases import Lease
from hushcast_runtime.context import Context
from hushcast_runtime.storage.spool import READ_AT_ONCE, Spool, SpooledMessage, SpoolMove, by_hop

READ_A_SECOND = 4 * 1024 * 1024  # bytes of bodies looked through: a share takes 8 s, and others have the rest
MOVES_AT_ONCE = 1024  # of messages, each to one next hop, that one step places: 10 ms of a processor
NO_ROOM_PAUSE = 60.0  # seconds until it is tried again where a new next hop had no room for all


class MovedMessages:
    """What waits at one relay for hosts that leases do not lead to any more."""

    def __init__(
        self, leases: LeaseStore, router: Router, spool: Spool, next_hops: NextHops, context: Context
    ) -> None:
        self._leases = leases
        self._router = router
        self._spool = spool
        self._next_hops = next_hops
        self._env = context.env
        self._counters = context.counters
        self._spawn = context.spawn
        self._left: dict[Hop, None] = {}  # hosts, in the order in which they are looked through
        self._is_begun = False

    def resume(self) -> None:
        """Go on where a restart interrupted; leases and spool are read back already."""
        self._follow([*self._leases.book.moves.left(), *self._spool.shares])

    def took(self, lease: Lease) -> None:
        """Have what waits follow a lease that is held from now on; it is on disk."""
        if is_box(lease.hop):
            self._follow(self._router.beside(lease.day, lease.elements))
        elif lease.before is not None:
            self._follow([lease.before])

    def _follow(self, hops: Iterable[Hop]) -> None:
        self._left.update(dict.fromkeys(hop for hop in hops if is_host(hop)))
        if self._left and not self._is_begun:
            self._is_begun = True
            self._spawn(self._run)

    async def _run(self) -> None:
        while self._left:
            hop = next(iter(self._left))
            del self._left[hop]
            if not await self._look_through(hop):
                self._spawn(self._later, hop)
        self._is_begun = False

    async def _later(self, hop: Hop) -> None:
        await trio.sleep(NO_ROOM_PAUSE)
        self._follow([hop])

    async def _look_through(self, hop: Hop) -> bool:
        """Move on what waits for a host and has a lease that leads elsewhere; return whether all had room.

        What comes while it is looked through follows those leases already.
        """
        moved = self._leases.book.moves.leases(hop)
        left = self._spool.shares.get(hop, 0)
        after: SpooledMessage | None = None
        is_whole = True
        while left > 0 and (items := await self._spool.waiting(hop, after, READ_AT_ONCE)):
            after, size = items[-1], sum(item.size for item in items)
            is_whole &= await self._move(hop, items)
            left -= size
            await trio.sleep(size / READ_A_SECOND)
        if is_whole:
            await self._leases.settle(moved, hop)
        return is_whole

    async def _move(self, hop: Hop, items: list[SpooledMessage]) -> bool:
        is_whole = True
        moves: list[SpoolMove] = []
        coming: Counter[Hop] = Counter()
        for item in items:
            message, now = item.message, self._env.elapsed()
            ways = self._router.moved(message, hop, now)
            if full := {way for way in ways if not self._has_room(way, item.size + coming[way])}:
                self._router.unsent(message, full)
                is_whole = False
            stays = bool(full) or self._router.leads_to(message, hop)
            ways = [way for way in ways if way not in full]
            coming.update(dict.fromkeys(ways, item.size))
            while ways:
                some = ways[:MOVES_AT_ONCE]
                del ways[:MOVES_AT_ONCE]
                moves += [SpoolMove(item, way, message, stays or bool(ways)) for way in some]
                if len(moves) >= MOVES_AT_ONCE:
                    await self._place(moves)
                    moves = []
                    coming.clear()
        await self._place(moves)
        return is_whole

    def _has_room(self, way: Hop, size: int) -> bool:
        return is_box(way) or (self._spool.has_share(way, size) and not self._spool.is_full(size))

    async def _place(self, moves: list[SpoolMove]) -> None:
        if moves:
            placed = await self._spool.move(moves)
            self._counters.add("messages_moved", len(placed))
            self._next_hops.enqueue(by_hop(placed))
            await self._next_hops.make_room()
