"""Attached users: what waits at a proxy to be written to each, bounded for one and for all.

Where all together wait for too much, whoever has taken nothing for longest is let go, and attaches again: a
few that do not read must not take the room of the others.
"""

from __future__ import annotations

from collections import deque

import trio

from hushcast_central.proxy.transformation import ProxyTransformation
from hushcast_protocol.base.wire import Wire
from hushcast_protocol.central.frames import AttachAnswer, Delivery
from hushcast_protocol.central.rerouting import WrappedMessage
from hushcast_runtime.transports.channel_writer import Writer

MAX_HELD = 1024 * 1024  # bytes that wait for one user: the server's window, and what may go over it
MAX_HELD_OF_ALL = 128 * 1024 * 1024  # bytes; some hundred users that read nothing


class HeldBytes:
    """What waits for all users of one proxy."""

    def __init__(self, passing: ProxyTransformation) -> None:
        self.passing = passing
        self.total = 0
        self._behind: dict[AttachedUser, None] = {}  # for whom something waits, the slowest first

    def change(self, user: AttachedUser, by: int) -> None:
        """Count bytes that a user waits for, or has taken."""
        user.held += by
        self.total += by
        if by < 0:
            self._behind.pop(user, None)
        if user.held:
            self._behind.setdefault(user)

    def make_room(self, size: int) -> None:
        """Let go of the slowest until there is room for `size` bytes more."""
        while self.total + size > MAX_HELD_OF_ALL and self._behind:
            slowest = next(iter(self._behind))
            slowest.close()
            slowest.drop()


class AttachedUser:
    """What waits to be written to one user."""

    def __init__(self, pseudonym: bytes, all_held: HeldBytes) -> None:
        self._pseudonym = pseudonym
        self._all_held = all_held
        self._waiting: deque[WrappedMessage] = deque()
        self._writer: Writer | None = None
        self.held = 0
        """Bytes that were not written yet."""
        self.number = 0
        """The server link's number of the attachment, once there is one."""
        self.scope = trio.CancelScope()

    def begin(self, writer: Writer, answer: AttachAnswer) -> None:
        """Write the answer, what came meanwhile, and what comes; `writer` says what it `wrote`."""
        self._writer = writer
        writer.post(answer)
        for _ in self._waiting:
            writer.post_later(self._next)

    def say(self, frame: Wire) -> None:
        """Write a frame; there is a writer."""
        assert self._writer is not None
        self._writer.post(frame)

    def deliver(self, wrapped: WrappedMessage) -> None:
        """Take a delivery; one above the bound ends the attachment."""
        size = len(wrapped.payload)
        if self.held + size > MAX_HELD:
            self.close()
            return
        self._all_held.make_room(size)
        if self.scope.cancel_called:
            return
        self._all_held.change(self, size)
        self._waiting.append(wrapped)
        if self._writer is not None:
            self._writer.post_later(self._next)

    def wrote(self, frame: Wire) -> None:
        """Hear that a frame is written."""
        if isinstance(frame, Delivery):
            self._all_held.change(self, -min(self.held, len(frame.wrapped.payload)))

    def close(self) -> None:
        """End the connection."""
        self.scope.cancel()

    def drop(self) -> None:
        """Let go of what was not written: the server has it."""
        self._waiting.clear()
        self._all_held.change(self, -self.held)

    def _next(self) -> Wire | None:
        if not self._waiting:
            return None
        delivery = self._all_held.passing.delivery(self._pseudonym, self._waiting.popleft())
        if delivery is None:
            self.drop()  # what comes after it would have another number here than at the server
            self.close()
        return delivery
