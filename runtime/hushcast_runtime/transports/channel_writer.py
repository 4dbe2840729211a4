"""Writes frames for the other end of a channel, in order, without making whoever has one wait."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import trio

from hushcast_protocol.base.wire import Wire
from hushcast_runtime.transports.base import TransportError
from hushcast_runtime.transports.channel import Channel

MAX_POSTED = 16_384  # frames that wait to be written; who has more does not read, and the link is given up
MAX_LATER = 524_288  # frames that are yet to be made: more than a full spool has references
_AT_ONCE = 16  # frames of a write: each may have a quarter of a MiB


Make = Callable[[], Wire | None]
"""Makes a frame when its turn has come; none where nobody waits for it any more."""


def _ignore(frame: Wire) -> None:
    pass


class Writer:
    """What is to be written to one channel; a broken one cancels `scope`.

    A frame that is made only when its turn comes takes no memory until then, and is not counted.
    """

    def __init__(
        self,
        channel: Channel[Any],
        spawn: Callable[..., None],
        scope: trio.CancelScope | None = None,
        wrote: Callable[[Wire], None] = _ignore,
    ) -> None:
        """`wrote` hears of each frame that the channel has taken."""
        self.channel = channel
        self.scope = scope or trio.CancelScope()
        """Of the task that reads from the channel."""
        self._spawn = spawn
        self._wrote = wrote
        self._entries: deque[Wire | Make] = deque()
        self._posted = 0
        self._writing = False

    @property
    def is_full(self) -> bool:
        """Tell whether no more may be posted."""
        return self._posted >= MAX_POSTED

    def post(self, frame: Wire) -> None:
        """Write a frame after all before it."""
        if self.is_full:
            self.scope.cancel()
            return
        self._posted += 1
        self._add(frame)

    def post_later(self, make: Make) -> None:
        """Write a frame after all before it, made when its turn comes."""
        if len(self._entries) >= MAX_LATER:
            self.scope.cancel()
            return
        self._add(make)

    def _add(self, entry: Wire | Make) -> None:
        self._entries.append(entry)
        if not self._writing:
            self._writing = True
            self._spawn(self._write)

    async def _write(self) -> None:
        try:
            while self._entries and not self.scope.cancel_called:
                turns = range(min(_AT_ONCE, len(self._entries)))
                frames = [frame for _ in turns if (frame := self._next()) is not None]
                await self.channel.send(*frames)
                for frame in frames:
                    self._wrote(frame)
        except TransportError:
            self.scope.cancel()
        finally:
            self._writing = False

    def _next(self) -> Wire | None:
        entry = self._entries.popleft()
        if isinstance(entry, Wire):
            self._posted -= 1
            return entry
        return entry()
