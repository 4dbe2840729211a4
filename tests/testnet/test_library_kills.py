"""Programs beside a real daemon that is killed: each message comes once in the life of a program."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import trio
from press import Press

import hushcast

PROGRAM = Path(__file__).with_name("reading_program.py")
KILLS = 5
SUBSCRIBER, PUBLISHER = "client-1", "client-2"
ARRIVES_WITHIN = 120.0  # seconds; daemons that were killed are dialled again with backoff


class Reader:
    """One life of a program that listens."""

    def __init__(self, backend: str, socket: Path) -> None:
        self.topic = f"read under {backend}"
        self.printed: list[str] = []
        self._command = [sys.executable, str(PROGRAM), backend, str(socket), self.topic]
        self._news = trio.Event()

    async def run(self) -> None:
        """Note each line until the program ends, which it does without an error."""
        process = await trio.lowlevel.open_process(self._command, stdout=subprocess.PIPE)
        try:
            await self._read(process)
            assert await process.wait() == 0
        finally:
            process.kill()
            with trio.CancelScope(shield=True):
                await process.wait()

    async def until(self, wanted: set[str]) -> None:
        """Wait until all of these were printed, for as long as they may take."""
        with trio.move_on_after(ARRIVES_WITHIN):
            while wanted - set(self.printed):
                await self._news.wait()

    async def _read(self, process: trio.Process) -> None:
        assert process.stdout is not None
        rest = b""
        async with process.stdout:
            async for data in process.stdout:
                *lines, rest = (rest + data).split(b"\n")
                self.printed += [line.decode() for line in lines]
                self._news.set()
                self._news = trio.Event()


@pytest.mark.processes
async def test_programs_live_through_the_kills_of_their_daemon(tcp_testnet: Any) -> None:
    net, choice = tcp_testnet, random.Random(15)
    readers = [Reader(backend, net.socket(SUBSCRIBER)) for backend in ("asyncio", "trio")]
    presses = [Press(net.socket(PUBLISHER), reader.topic) for reader in readers]
    async with trio.open_nursery() as nursery:
        for reader in readers:
            nursery.start_soon(reader.run)
        for reader in readers:
            await reader.until({"ready"})
        async with trio.open_nursery() as publishing:  # its end is awaited: no id is noted afterwards
            for press in presses:
                publishing.start_soon(press.run)
            for _ in range(KILLS):
                await trio.sleep(choice.uniform(0.2, 1.5))
                await net.restart(SUBSCRIBER, by_kill=True)
            publishing.cancel_scope.cancel()
        for reader, press in zip(readers, presses, strict=True):
            await reader.until(press.queued)
            await net.publish(
                PUBLISHER, reader.topic, "end"
            )  # what was read is acknowledged when it has come
    for reader, press in zip(readers, presses, strict=True):
        assert len(press.accepted) > 20
        assert not press.queued - set(reader.printed), "what was durable arrives"
        assert len(reader.printed) == len(set(reader.printed)), "and once in the life of a program"
    await _live_again(net, readers)


async def _live_again(net: Any, readers: list[Reader]) -> None:
    """Nothing that was acknowledged comes to a program that is started again."""
    async with hushcast.connect(net.socket(SUBSCRIBER)) as daemon:
        for before in readers:
            again = Reader(before.topic.rpartition(" ")[2], net.socket(SUBSCRIBER))
            async with trio.open_nursery() as nursery:
                nursery.start_soon(again.run)
                await again.until({"ready"})
                end = await net.publish(PUBLISHER, again.topic, "end")
            assert again.printed == ["ready", end]
            assert await daemon.unsubscribe(again.topic)
