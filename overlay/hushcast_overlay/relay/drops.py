"""Drops: what strangers hand in here is kept on disk until it has been routed, as often as it takes.

It stays for some minutes more, and goes to next hops whose leases come later (`late_routes.py`), too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import trio

from hushcast_overlay.relay.forwarding import FULL_PAUSE, Forwarding
from hushcast_overlay.relay.intake import Intake
from hushcast_overlay.relay.keepers.hand_ins import HandIns
from hushcast_overlay.relay.missed_trees import MissedTrees
from hushcast_protocol.base import observations
from hushcast_protocol.base.buckets import TokenBucket
from hushcast_protocol.base.errors import AuthenticationError, DecodeError
from hushcast_protocol.content.hops import Hop
from hushcast_protocol.content.messages import TRAIL_SIZE, Message, check_message
from hushcast_protocol.overlay.elements import ORIGIN
from hushcast_protocol.overlay.frames import Receipt
from hushcast_protocol.overlay.late_routes import WAIT, LateRoutes
from hushcast_protocol.overlay.leases import Lease
from hushcast_protocol.overlay.profile import Profile
from hushcast_runtime.context import Context
from hushcast_runtime.storage.changes import Change
from hushcast_runtime.storage.spool import Spool

TRIED_AT_ONCE = 16  # accepted messages for which there is still no room until the others wait, too
MAX_LATE_A_SECOND, MAX_LATE_AT_ONCE = 100.0, 1000.0  # turns of drops that go late: as many as are taken
GATHER = 2.0  # seconds from a lease until the turn of what waited for it, or half of it: they come in company


class Drops:
    """The drops at one relay."""

    def __init__(
        self,
        profile: Profile,
        forwarding: Forwarding,
        hand_ins: HandIns,
        spool: Spool,
        missed: MissedTrees,
        context: Context,
    ) -> None:
        self._forwarding = forwarding
        self._hand_ins = hand_ins
        self._spool = spool
        self._missed = missed
        self._env = context.env
        self._store = context.store
        self._counters = context.counters
        self._tracer = context.tracer
        self._spawn = context.spawn
        self._intake = Intake(context.store, spool)
        self._without_room: dict[bytes, None] | None = None  # of these, what there is no room for, in order
        self._at_work: Counter[bytes] = Counter()  # how often each is being routed, or waits for room
        self._awaits_routes = profile.late_routes
        self._late_rate = TokenBucket(MAX_LATE_A_SECOND, MAX_LATE_AT_ONCE, context.env.elapsed())
        self._late: LateRoutes | None = None  # what waits for late routes, where something does
        self._is_late_begun = False

    async def load(self) -> None:
        """Take up what a restart interrupted."""
        interrupted, routed = await self._intake.load(self._entry)
        for key, entry in routed:
            self._wait_for_routes(key, *entry)
            self._settle([key])  # as published nothing waits
        self._wait_for_room(*interrupted, pause=0.0)

    def _entry(self, message: Message) -> tuple[tuple[bytes, ...], int]:
        """Return by which elements a drop enters the overlay, and its size: what is known while it waits."""
        return self._forwarding.entry(message), len(message.body)

    async def take(self, message: Message) -> Receipt:
        """Answer before any look-up: neither verdict nor delay tells whether anybody subscribes."""
        try:
            check_message(message)
            if message.trail != bytes(TRAIL_SIZE):
                raise DecodeError("a message is dropped with a trail that is not empty")
        except (DecodeError, AuthenticationError):
            self._counters.add("refused_form")
            return Receipt("form")
        if not self._forwarding.is_open(message.day):
            self._counters.add("refused_day")
            return Receipt("day")
        if self._spool.is_full(len(message.body)):
            self._counters.add("refused_quota")
            return Receipt("quota")
        self._counters.add("messages_dropped_here")
        self._tracer.observe(observations.Drop(message.id, message.tokens, len(message.body)))
        self._hand_ins.take(message)  # in the commit that keeps the message
        key = await self._intake.take(message)
        self._spawn(self._route, key, message)
        return Receipt("accepted")

    async def _route(self, key: bytes, message: Message, late: Sequence[Hop] = ()) -> bool:
        """Route what was dropped here, to some next hops alone whose leases came late.

        Returns whether there was room for it. If not, it is routed again later.
        """
        self._at_work[key] += 1
        if not late:
            # In the step that looks up: it hears of all leases after.
            self._wait_for_routes(key, *self._entry(message))

        def settle() -> list[Change]:
            if key in (self._without_room or ()):
                return []  # a late turn found no room meanwhile: it has to be routed once more
            is_over = self._at_work[key] == 1 and not self._is_waiting(key)
            return self._intake.settle(key) if is_over else self._intake.routed(key)

        if late:
            routed = await self._forwarding.route_late(message, late)
            self._counters.add("messages_routed_late", routed.copies)
        else:
            routed = await self._forwarding.route([message], ORIGIN, settle)
            is_lacking = routed.unrouted or self._missed.may_lack(message.day)
            if is_lacking and not routed.is_held and self._awaits_routes:
                await self._forwarding.hand_on(message)
        if routed.is_held:
            self._store.write_soon(*self._intake.unrouted(key))
            self._wait_for_room(key)
        self._leave(key)
        return not routed.is_held

    def _wait_for_room(self, *keys: bytes, pause: float = FULL_PAUSE) -> None:
        if not keys:
            return
        if self._without_room is None:
            self._without_room = {}
            self._spawn(self._find_room, self._without_room, pause)
        fresh = [key for key in keys if key not in self._without_room]
        self._at_work.update(fresh)
        self._without_room.update(dict.fromkeys(fresh))

    async def _find_room(self, waiting: dict[bytes, None], pause: float) -> None:
        """Route what there was no room for, in order of arrival, until all is gone."""
        while waiting:
            await trio.sleep(pause)
            tries = TRIED_AT_ONCE
            for _ in range(len(waiting)):
                key = next(iter(waiting))
                message = await self._intake.read(key)
                del waiting[key]
                if self._forwarding.is_open(message.day):
                    has_left = await self._route(key, message)
                elif has_left := self._env.is_certain():
                    self._counters.add("messages_expired")
                else:
                    self._wait_for_room(key)
                self._leave(key)
                tries -= not has_left
                if not tries:
                    break
            pause = FULL_PAUSE
        self._without_room = None

    def take_up(self, lease: Lease) -> None:
        """Send, a moment later, what waits for one of a lease's elements to its next hop: it has come."""
        if not self._late:
            return
        self._late.take_up(
            lease.elements, lease.hop, self._env.elapsed() + GATHER * self._env.uniform(0.5, 1.0)
        )
        if self._late.turns and not self._is_late_begun:
            self._is_late_begun = True
            self._spawn(self._send_late)

    async def _send_late(self) -> None:
        """Give those their turns that leases have come for, at a pace, until there are none."""
        while self._late and self._late.turns:
            await trio.sleep(max(0.0, self._late.turns.deadline() - self._env.elapsed()))
            await trio.sleep(self._late_rate.owe(self._env.elapsed()))
            if self._late and (turn := self._late.turns.next(self._env.elapsed())):
                key, hops = turn
                self._at_work[key] += 1
                await self._route(key, await self._intake.read(key), hops)
                self._leave(key)
        self._is_late_begun = False

    def _wait_for_routes(self, key: bytes, elements: tuple[bytes, ...], size: int) -> None:
        if not self._awaits_routes or self._is_waiting(key):
            return
        if self._late is None:
            self._late = LateRoutes()
            self._spawn(self._lapse, self._late)
        self._settle(self._late.wait(key, elements, size, self._env.elapsed()))

    def _is_waiting(self, key: bytes) -> bool:
        return self._late is not None and key in self._late

    async def _lapse(self, late: LateRoutes) -> None:
        """Forget what has waited long enough for routes, until nothing waits."""
        await trio.sleep(WAIT)
        while late:
            self._settle(late.lapse(self._env.elapsed()))
            if late:
                await trio.sleep(max(1.0, late.next_lapse() - self._env.elapsed()))
        self._late = None

    def _leave(self, key: bytes) -> None:
        """Note that something is done with a drop; forget it where that was the last."""
        self._at_work[key] -= 1
        if not self._at_work[key]:
            del self._at_work[key]
            self._settle([key])

    def _settle(self, keys: list[bytes]) -> None:
        """Forget those of these drops that are kept for nothing any more."""
        over = [
            key
            for key in keys
            if key in self._intake and not self._at_work[key] and not self._is_waiting(key)
        ]
        if over:
            self._store.write_soon(*(change for key in over for change in self._intake.settle(key)))
