"""Drops: what strangers hand in here is kept on disk until it has been routed, as often as it takes."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

import trio

from hushcast_overlay.relay.forwarding import FULL_PAUSE, Forwarding
from hushcast_overlay.relay.intake import Intake
from hushcast_overlay.relay.keepers.hand_ins import HandIns
from hushcast_protocol.base import observations
from hushcast_protocol.base.errors import AuthenticationError, DecodeError
from hushcast_protocol.content.messages import TRAIL_SIZE, Message, check_message
from hushcast_protocol.overlay.elements import ORIGIN
from hushcast_protocol.overlay.frames import Receipt
from hushcast_protocol.overlay.late_routes import WAIT, LateRoutes
from hushcast_protocol.overlay.profile import Profile
from hushcast_runtime.context import Context
from hushcast_runtime.storage.spool import Spool
from hushcast_runtime.storage.store import Change

TRIED_AT_ONCE = 16  # accepted messages for which there is still no room until the others wait, too
GATHER = 2.0  # seconds at most from a lease until what waited for it is sent: leases come in company


class Drops:
    """The drops at one relay."""

    def __init__(
        self, profile: Profile, forwarding: Forwarding, hand_ins: HandIns, spool: Spool, context: Context
    ) -> None:
        self._forwarding = forwarding
        self._hand_ins = hand_ins
        self._spool = spool
        self._env = context.env
        self._store = context.store
        self._counters = context.counters
        self._tracer = context.tracer
        self._spawn = context.spawn
        self._intake = Intake(context.store, spool)
        self._without_room: deque[bytes] | None = None  # of these, what there is no room for
        self._awaits_routes = profile.late_routes
        self._late: LateRoutes | None = None  # and what had no next hop, where there is some

    async def load(self) -> None:
        """Take up what a restart interrupted."""
        self._wait_for_room(*await self._intake.load(), pause=0.0)

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

    async def _route(self, key: bytes, message: Message, is_late: bool = False) -> bool:
        """Route what was dropped here; return whether there was room for it, and keep it for later if not."""

        def settle(is_routed: bool) -> Change | None:
            return self._intake.settle(key) if is_routed or not self._awaits_routes else None

        unrouted, is_held = await self._forwarding.route([message], ORIGIN, settle, is_late)
        if is_held:
            self._wait_for_room(key)
        elif unrouted and self._awaits_routes:
            self._wait_for_route(key, message)
        elif is_late:
            self._counters.add("messages_routed_late")
        return not is_held

    def _wait_for_room(self, *keys: bytes, pause: float = FULL_PAUSE) -> None:
        if self._without_room is not None:
            self._without_room.extend(keys)
        elif keys:
            self._without_room = deque(keys)
            self._spawn(self._find_room, self._without_room, pause)

    async def _find_room(self, waiting: deque[bytes], pause: float) -> None:
        """Route what there was no room for, in order of arrival, until all is gone."""
        while waiting:
            await trio.sleep(pause)
            tries = TRIED_AT_ONCE
            for _ in range(len(waiting)):
                key = waiting[0]
                message = await self._intake.read(key)
                if self._forwarding.is_open(message.day):
                    has_left = await self._route(key, message)
                elif has_left := self._env.is_certain():
                    self._counters.add("messages_expired")
                    self._settle([key])
                else:
                    waiting.append(key)
                waiting.popleft()
                tries -= not has_left
                if not tries:
                    break
            pause = FULL_PAUSE
        self._without_room = None

    def take_up(self, elements: Iterable[bytes]) -> None:
        """Route, a moment later, what waits for one of these elements: a lease has come."""
        if self._late and (keys := self._late.take(elements)):
            self._spawn(self._route_late, keys)

    async def _route_late(self, keys: list[bytes]) -> None:
        await trio.sleep(GATHER * self._env.uniform(0.5, 1.0))
        for key in keys:
            await self._route(key, await self._intake.read(key), is_late=True)

    def _wait_for_route(self, key: bytes, message: Message) -> None:
        if self._late is None:
            self._late = LateRoutes()
            self._spawn(self._lapse, self._late)
        elements = self._forwarding.entry(message)
        self._settle(self._late.wait(key, elements, len(message.body), self._env.elapsed()))
        if self._forwarding.has_entry(message.day, elements):  # since it was looked up
            self.take_up(elements)

    async def _lapse(self, late: LateRoutes) -> None:
        """Forget what has waited long enough for a route, until nothing waits."""
        await trio.sleep(WAIT)
        while late:
            self._settle(late.lapse(self._env.elapsed()))
            if late:
                await trio.sleep(max(1.0, late.next_lapse() - self._env.elapsed()))
        self._late = None

    def _settle(self, keys: list[bytes]) -> None:
        self._store.write_soon(*(self._intake.settle(key) for key in keys))
