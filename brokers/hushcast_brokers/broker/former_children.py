"""Former children: brokers that have left the tree, and whose own children are finding other parents.

Until those have advertised there, all that a former child had asked for goes on waiting for it, on disk; then
it is matched again. So only what a broker had acknowledged itself goes with it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence, Set

import trio

from hushcast_brokers.broker.downstream import Downstream, hop_of
from hushcast_brokers.broker.matching import Place, Rematching, child_of
from hushcast_brokers.broker.tables import Tables
from hushcast_protocol.base.wire import PublicKey
from hushcast_protocol.content.messages import Message
from hushcast_runtime.context import Context
from hushcast_runtime.storage.spool import Spool, SpooledMessage, SpoolMove

REMATCH_AFTER = 600.0  # seconds after which no more former grandchildren are awaited
SETTLED_AFTER = 60.0  # seconds without an advertisement, or a new link, after which nobody else will come
LOOK_EVERY = 5.0  # seconds between looks whether it is time

Others = Callable[[Message], Mapping[PublicKey, Sequence[Message]]]


class FormerChildren:
    """The former children of one broker."""

    def __init__(
        self, matching: Rematching, tables: Tables, spool: Spool, downstream: Downstream, context: Context
    ) -> None:
        self._matching = matching
        self._tables = tables
        self._spool = spool
        self._downstream = downstream
        self._counters = context.counters
        self._now = context.env.elapsed
        self._spawn = context.spawn
        self._left: dict[PublicKey, float] = {}  # since when
        self._is_waiting = False
        self._known: Set[PublicKey] | None = None  # the children of the tree before
        self._fresh: set[PublicKey] = set()  # children that came since: what they ask for is not all yet

    def follow(self, children: Set[PublicKey]) -> None:
        """Hear who the children are by the tree of now."""
        if self._known is not None:
            self._fresh |= children - self._known
        self._known = frozenset(children)
        self._fresh &= children
        now = self._now()
        left = (self._tables.routes.children | self._left.keys()) - children
        self._left = {child: self._left.get(child, now) for child in left}
        if not left:
            self._fresh.clear()
        elif not self._is_waiting:
            self._is_waiting = True
            self._spawn(self._wait)

    def divert(self, interested: Set[Place]) -> Set[Place]:
        """Return for whom a message is to wait, given those who are interested by what is known now.

        What a former child asked for goes to none of those yet that may ask for more of it.
        """
        if not self._fresh or not any(child_of(place) in self._left for place in interested):
            return interested
        return {place for place in interested if child_of(place) not in self._fresh}

    async def _wait(self) -> None:
        while self._left:
            await trio.sleep(LOOK_EVERY)
            while (child := self._settled()) is not None:
                await self._rematch(child)
        self._is_waiting = False

    def _settled(self) -> PublicKey | None:
        """Return a former child for which there is nothing more to wait, if there is one."""
        now = self._now()
        is_settled = now - self._last_heard() >= SETTLED_AFTER
        for child, since in self._left.items():
            if (is_settled and now - since >= SETTLED_AFTER) or now - since >= REMATCH_AFTER:
                return child
        return None

    def _last_heard(self) -> float:
        """Return when somebody last asked for more that may have come from a former child."""
        known = self._known or ()
        if any(not self._downstream.is_linked(child) for child in known):
            return math.inf
        return max((self._tables.heard(child) for child in self._fresh or known), default=0.0)

    async def _rematch(self, child: PublicKey) -> None:
        """Let what waits for a former child wait for whoever has asked for it now, until it is back.

        One that is back and has left once more meanwhile is awaited anew: it may have asked for other things.
        """
        since = self._left[child]

        def is_gone() -> bool:
            return self._left.get(child) == since

        others = self._matching.leaving(child)
        await self._tables.drop(child, is_gone)
        while (items := await self._spool.waiting(hop_of(child))) and is_gone():
            moves = self._moves(items, others)
            moved = {move.item.key for move in moves}
            self._spool.done(item for item in items if item.key not in moved)
            self._downstream.enqueue(await self._spool.move(moves))
        if is_gone():
            del self._left[child]
        if not self._left:
            self._fresh.clear()

    def _moves(self, items: Sequence[SpooledMessage], others: Others) -> list[SpoolMove]:
        moves = []
        for item in items:
            # Also those that it went to before: some below them may have asked since.
            found = {key: forms for key, forms in others(item.message).items() if key not in self._left}
            moves += [SpoolMove(item, hop_of(key), form) for key, forms in found.items() for form in forms]
            self._counters.add("messages_rematched" if found else "messages_orphaned")
        return moves
