"""A daemon without a network, and a program beside it that runs under trio or under asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import trio
from fake_daemon import FakeDaemon

T = TypeVar("T")


class World:
    """Both of them."""

    def __init__(self, socket: Path, nursery: trio.Nursery, backend: str) -> None:
        self.socket = socket
        self.daemon = FakeDaemon(socket)
        self._nursery = nursery
        self._backend = backend

    async def start(self) -> None:
        await self.daemon.start(self._nursery)

    async def run(self, program: Callable[[], Awaitable[T]]) -> T:
        """Run a program to its end; half a minute is enough for all of them."""
        if self._backend == "trio":
            with trio.fail_after(30):
                return await program()
        return await trio.to_thread.run_sync(lambda: asyncio.run(asyncio.wait_for(program(), 30)))  # type: ignore[arg-type]

    async def do(self, function: Callable[..., Awaitable[T]], *args: Any) -> T:
        """Do something at the daemon's side, from within the program."""
        if self._backend == "trio":
            return await function(*args)
        return trio.from_thread.run(function, *args)

    async def put(self, *payloads: str, topic: str = "t") -> list[str]:
        """Let messages arrive; return their ids."""
        return [(await self.do(self.daemon.put, topic, payload.encode())).hex() for payload in payloads]

    async def stop(self) -> None:
        """Let the daemon die."""

        async def stop() -> None:
            self.daemon.stop()
            while self.socket.exists():  # noqa: ASYNC110
                await trio.sleep(0.01)

        await self.do(stop)

    async def start_again(self) -> None:
        await self.do(self.daemon.start, self._nursery)

    async def acknowledged(self, topic: str = "t") -> int:
        """Return up to where the daemon knows messages as acknowledged."""

        async def look() -> int:
            return (await self.daemon.hold(topic)).inbox.progress.acknowledged

        return await self.do(look)
