"""A peer: what a relay holds of one next hop, or of one that sends to it: links, queue, and its silence."""

from __future__ import annotations

from collections import deque

import trio

from hushcast_node.session import Session
from hushcast_node.spool import Spooled
from hushcast_protocol.hops import Hop
from hushcast_runtime.backoff import Backoff


class Peer:
    """One relay or mailbox that we send to, or that sent to us."""

    def __init__(self, hop: Hop) -> None:
        """Begin without a link and with nothing to send."""
        self.hop = hop
        self.queue: deque[Spooled] = deque()
        self.queued = 0  # bytes
        self.behind = False  # the spool holds more than the queue
        self.passed_over = 0  # messages that went to the spool alone
        self.refilling = False
        self.sessions: list[Session] = []
        self.connected = trio.Event()
        self.stirred = trio.Event()  # whoever pauses between dials goes on: it connected, or a message waits
        self.dialling = False
        self.backoff: Backoff | None = None  # since it was not reached, or took nothing of what it was sent
        self.requests = 0  # tasks that wait for a session
        self.waiting_since: float | None = None  # seconds; the last acknowledgement while something waits
        self.away = False  # for so long that messages take detours
        self.diverting = False

    def stir(self) -> None:
        """Have it dialled now if it is to be dialled at all."""
        self.stirred.set()
        self.stirred = trio.Event()

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
