"""A peer: what a relay holds of one next hop, or of one that sends to it: links, queue, and its silence."""

from __future__ import annotations

from collections.abc import Callable

import trio

from hushcast_overlay.session import Session
from hushcast_overlay.spool import Spooled
from hushcast_protocol.overlay.hops import Hop
from hushcast_runtime.backoff import Backoff


class Peer:
    """One relay or mailbox that we send to, or that sent to us."""

    # There is one for each link, and most are idle: what few need is made when they need it.
    __slots__ = (
        "_connected",
        "_stirred",
        "away",
        "backoff",
        "behind",
        "dialling",
        "diverting",
        "hop",
        "passed_over",
        "queue",
        "queued",
        "refilling",
        "requests",
        "sessions",
        "waiting_since",
    )

    def __init__(self, hop: Hop) -> None:
        """Begin without a link and with nothing to send."""
        self.hop = hop
        self.queue: list[Spooled] = []
        self.queued = 0  # bytes
        self.behind = False  # the spool holds more than the queue
        self.passed_over = 0  # messages that went to the spool alone
        self.refilling = False
        self.sessions: list[Session] = []
        self.dialling: trio.CancelScope | None = None
        self.backoff: Backoff | None = None  # since it was not reached, or took nothing of what it was sent
        self.requests = 0  # tasks that wait for a session
        # By a clock that nobody sets; the last acknowledgement while something waits.
        self.waiting_since: float | None = None
        self.away = False  # for so long that messages take detours
        self.diverting = False
        self._connected: trio.Event | None = None
        self._stirred: trio.Event | None = None

    async def connected(self) -> None:
        """Return when a link has come, or at once if there is one; it may be gone again."""
        if not self.sessions:
            if self._connected is None:
                self._connected = trio.Event()
            await self._connected.wait()

    def linked(self, session: Session) -> None:
        """Take a new link, and wake who waits for one."""
        self.sessions.append(session)
        if self._connected is not None:
            self._connected.set()
            self._connected = None
        self.stir()

    def stir(self) -> None:
        """Have it dialled now if it is to be dialled at all."""
        if self._stirred is not None:
            self._stirred.set()
            self._stirred = None

    async def stirred(self) -> None:
        """Return when it connected, or a message waits: whoever pauses between dials goes on."""
        if self._stirred is None:
            self._stirred = trio.Event()
        await self._stirred.wait()

    def give_up(self) -> None:
        """Stop dialling if nothing waits for a link any more."""
        if self.dialling is not None and not self.wanted():
            self.dialling.cancel()

    def hold(self, item: Spooled) -> None:
        """Queue a message."""
        self.queue.append(item)
        self.queued += len(item.message.body)

    def keep(self, holds: Callable[[Spooled], bool]) -> None:
        """Take what the spool does not hold any more out of the queue."""
        self.queue = [item for item in self.queue if holds(item)]
        self.queued = sum(len(item.message.body) for item in self.queue)

    def leave_to_spool(self) -> None:
        """Forget what is queued: all of it is in the spool, from where it is read back in order."""
        self.queue.clear()
        self.queued = 0
        self.behind = True

    def newest(self) -> Session:
        """Return the link to send on."""
        # After a restart the peer may be back on a new link before the old one is known to be dead.
        return self.sessions[-1]

    def in_memory(self) -> bool:
        """Tell whether messages are queued, or sent and not acknowledged."""
        return bool(self.queue) or any(session.unacknowledged for session in self.sessions)

    def wanted(self) -> bool:
        """Tell whether anything waits for a link."""
        return bool(self.queue or self.behind or self.requests)
