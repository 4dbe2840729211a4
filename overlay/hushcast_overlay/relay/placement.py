"""Placement: what becomes of a message to be sent, by the room that the spool has for its next hop.

A next hop whose share is full is gone around, but for a host. Where there is no way around, or the whole
spool is full, the message is *held*: whoever keeps it still (the link that brought it, or this relay's record
of what it accepted) brings it again. Only what waits for a host is lost when all shares for it are full,
and what waits for a host when its share is full here.
"""

from __future__ import annotations

import math
from collections.abc import Container, Sequence

from hushcast_overlay.relay.detours import Detours
from hushcast_protocol.content.hops import Hop, HopMessage
from hushcast_protocol.content.messages import Message
from hushcast_protocol.overlay.forwarding import Router
from hushcast_protocol.overlay.hops import is_host, waits
from hushcast_runtime.counters import Counters
from hushcast_runtime.environment import Environment
from hushcast_runtime.logs import log
from hushcast_runtime.storage.spool import MAX_SPOOL, Spool

HANDED_ON_UP_TO = MAX_SPOOL // 4  # bytes in the spool up to which drops are handed on
TOLD_EVERY = 3600.0  # seconds between two lines of the log that messages are lost


class SpoolPlacement:
    """The room of one relay's spool."""

    def __init__(
        self, spool: Spool, detours: Detours | None, router: Router, env: Environment, counters: Counters
    ) -> None:
        self._spool = spool
        self._detours = detours
        self._router = router
        self._env = env
        self._counters = counters
        self._told = -math.inf

    def place(
        self, sends: tuple[HopMessage, ...], away: Container[Hop], spare: int
    ) -> tuple[list[HopMessage], bool]:
        """Return what may be put into the spool of one message's sends, and whether others are held.

        `spare` are the bytes of the spool that the message gives back if none is.
        """
        if not sends:
            return [], False
        size, day = len(sends[0].message.body), sends[0].message.day
        if self._spool.is_roomy(size, sends):
            return list(sends), False
        taken = self._spool.takes(size, len(sends))
        if taken < len(sends) == self._spool.takes(size - spare, len(sends)):
            taken = len(sends)
        ways: list[HopMessage] = []
        unsent: list[Hop] = [send.hop for send in sends[taken:]]
        is_held = bool(unsent)
        others: list[Hop] | None = None
        for send in sends[:taken]:
            if self._spool.has_share(send.hop, size):
                ways.append(send)
            else:
                if others is None:
                    others = self._detours.with_room(day, size, away) if self._detours is not None else []
                unsent.append(send.hop)
                if (way := self._aside(send, others)) is not None:
                    ways.append(way)
                elif waits(send.hop):
                    self._lose()
                else:
                    is_held = True
        if unsent:
            self._router.unsent(sends[0].message, unsent)
        return ways, is_held

    def elsewhere(self, drop: Message, away: Container[Hop]) -> list[HopMessage]:
        """Return where a drop whose leases may lack is sent; nowhere where the spool holds much already.

        Strangers drop what they like: what is handed on for them is to take no room from what has a way.
        """
        if self._detours is None or self._spool.size + len(drop.body) > HANDED_ON_UP_TO:
            return []
        send = self._detours.elsewhere(drop, away)
        return [send] if send is not None else []

    def _aside(self, send: HopMessage, others: Sequence[Hop]) -> HopMessage | None:
        return None if self._detours is None or is_host(send.hop) else self._detours.aside(send, others)

    def _lose(self) -> None:
        self._counters.add("messages_over_share")
        now = self._env.elapsed()
        if now - self._told >= TOLD_EVERY:
            self._told = now
            log.warning("a host takes too little: more waits for it than may, and messages are lost")
