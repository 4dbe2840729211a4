"""A testnet that runs, and applications that talk to its daemons."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import trio

import hushcast
from hushcast_testnet import processes, testnet

# At the end of a day a publication that waits for a relay is given up: a test of what arrives has none in it.
LONG_EPOCH = 3600  # seconds


@dataclass
class Listening:
    """One application listening on one daemon: what it was shown, by message id."""

    nodes: int
    shown: Counter[str] = field(default_factory=Counter)
    payloads: list[str] = field(default_factory=list)
    _news: trio.Event = field(default_factory=trio.Event)

    def take(self, event: hushcast.Message) -> None:
        self.shown[event.id] += 1
        self.payloads.append(event.text)
        self._news.set()
        self._news = trio.Event()

    async def until(self, ids: set[str], seconds: float = 60) -> None:
        """Wait until all of these messages were shown."""
        with trio.move_on_after(seconds):
            while ids - self.shown.keys():
                await self._news.wait()


@dataclass(frozen=True)
class RunningTestnet:
    """A testnet and how to speak to its daemons by name."""

    directory: Path

    def member(self, name: str) -> testnet.Member:
        return next(m for m in testnet.load(self.directory).members if m.name == name)

    def socket(self, name: str) -> Path:
        return Path(self.member(name).socket or "")

    def pid(self, name: str) -> int:
        pid = testnet.holder(Path(self.member(name).state))
        assert pid is not None, f"{name} is not running"
        return pid

    def observations(self, name: str) -> list[dict]:
        return _lines(self.directory / "traces" / f"{name}.observations.jsonl")

    def truths(self, name: str) -> list[dict]:
        return _lines(self.directory / "traces" / f"{name}.truth.jsonl")

    @property
    def relays(self) -> list[str]:
        return [m.name for m in testnet.load(self.directory).members if m.role == "relay"]

    @property
    def daemons(self) -> list[str]:
        return [m.name for m in testnet.load(self.directory).members if m.role != "directory"]

    async def publish(self, name: str, topic: str, payload: str) -> str:
        async with hushcast.connect(self.socket(name)) as daemon:
            return (await daemon.publish(topic, payload)).id

    async def unsubscribe(self, name: str, topic: str) -> None:
        async with hushcast.connect(self.socket(name)) as daemon:
            assert await daemon.unsubscribe(topic)

    async def forget(self, topic: str, *names: str) -> None:
        """End the subscriptions to a topic of these daemons: each takes work in every epoch."""
        for name in names:
            async with hushcast.connect(self.socket(name)) as daemon:
                await daemon.unsubscribe(topic)

    async def status(self, name: str) -> dict:
        async with hushcast.connect(self.socket(name)) as daemon:
            return await daemon.status()

    async def told(self, name: str, topic: str, nodes: int) -> None:
        """Wait until so many relays have confirmed a subscription; an application is told by the first."""
        async with hushcast.connect(self.socket(name)) as daemon:
            with trio.fail_after(90):
                while not any(  # noqa: ASYNC110 - another process makes it true
                    (one.topic, one.described["nodes"]) == (topic, nodes)
                    for one in await daemon.subscriptions()
                ):
                    await trio.sleep(0.5)

    @asynccontextmanager
    async def listening(
        self, name: str, topic: str, within: float = 90, keep: bool = False
    ) -> AsyncIterator[Listening]:
        """Subscribe, and collect what is shown until the block ends, and with it the subscription.

        If it is to be kept, relays renew what they hold of it each epoch, and so in all tests that follow.
        """
        async with AsyncExitStack() as held:
            daemon = await held.enter_async_context(hushcast.connect(self.socket(name), reconnect=False))
            with trio.fail_after(within):
                messages = await held.enter_async_context(daemon.subscribe(topic, acknowledge="never"))
            listening = Listening(messages.nodes)

            async def collect() -> None:
                async for message in messages:
                    listening.take(message)
                    messages.done()

            async with trio.open_nursery() as nursery:
                nursery.start_soon(collect)
                yield listening
                nursery.cancel_scope.cancel()
        if not keep:
            await self.forget(topic, name)

    async def end(self, name: str, by_kill: bool = False) -> None:
        """End a daemon or the directory as its operator does, or by SIGKILL."""
        process = processes.find(name, self.pid(name))
        assert process is not None
        await (processes.kill if by_kill else processes.stop)([process])

    async def restart(self, name: str, by_kill: bool = False) -> None:
        """End a daemon or the directory, start it again with its configuration, wait until it is ready."""
        await self.end(name, by_kill)
        await self.start(name, [sys.executable])

    async def start(self, name: str, python: list[str]) -> None:
        """Start a daemon or the directory, as this Python runs it; wait until it is ready."""
        member = self.member(name)
        await self.launch(name, python)
        with trio.fail_after(120):
            while testnet.holder(Path(member.state)) is None:  # noqa: ASYNC110
                await trio.sleep(0.05)
            while member.role != "directory" and not (  # noqa: ASYNC110
                await testnet.describe(member)
            ).get("ready"):
                await trio.sleep(0.1)

    async def launch(self, name: str, python: list[str]) -> processes.ProcessRecord:
        """Start it, and wait for nothing."""
        member = self.member(name)
        module = "hushcast_directory" if member.role == "directory" else "hushcast_node"
        command = [*python, "-m", module, member.config]
        return await processes.launch(name, command, Path(member.config).parent / "log")


def _lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
