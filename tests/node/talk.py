"""Somebody's open connection, on which a test says what it likes."""

from __future__ import annotations

from typing import Any

import trio

from hushcast_runtime.transports.base import TransportError
from hushcast_runtime.transports.channel import Channel


class Talk:
    """One open connection, frame by frame."""

    def __init__(self, channel: Channel[Any]) -> None:
        self.channel = channel
        self._frames: list[Any] = []

    async def say(self, *frames: Any) -> None:
        await self.channel.send(*frames)

    async def hear(self, within: float = 60.0) -> Any:
        """Return the next frame; `None` where the connection is closed."""
        with trio.fail_after(within):
            if not self._frames:
                try:
                    self._frames = await self.channel.receive()
                except TransportError:
                    return None
        return self._frames.pop(0) if self._frames else None

    async def ask(self, frame: Any) -> Any:
        await self.say(frame)
        return await self.hear()

    async def close(self) -> None:
        await self.channel.aclose()
