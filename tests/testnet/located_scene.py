"""A located feed on a testnet: an owner who runs commands, a provider and subscribers that are processes."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import trio
from sockets_seen import connections, socket_owners, unix_paths

import hushcast
from soak.located_feed import ready_private

PROGRAMS = [sys.executable, str(Path(__file__).with_name("located_programs.py"))]
COMMAND = [sys.executable, "-m", "hushcast_cli.start", "located"]
KINDS = ("tcp", "tcp6", "udp", "udp6", "raw", "raw6")


class Scene:
    """All of it; `strange` are sockets that nobody but a daemon may have."""

    def __init__(self, folder: Path, nursery: trio.Nursery, sockets: dict[str, Path]) -> None:
        """`sockets` are the daemons' by who uses them: `owner`, `provider`, and subscribers."""
        self.folder, self.sockets = folder, sockets
        self.told: dict[str, list[dict[str, Any]]] = {}
        self.strange: set[Any] = set()
        self.published: dict[int, float] = {}
        self._nursery = nursery
        self._pids: dict[str, int] = {}
        link = folder / "feed.link"
        link.touch(0o600)
        link.write_text(hushcast.new_link("feed", private=True))

    async def command(self, *arguments: object) -> str:
        """Run one of the owner's commands, looked at while it runs; return what it prints."""
        env = os.environ | {"HUSHCAST_SOCKET": str(self.sockets["owner"])}
        command = [*COMMAND, *map(str, arguments)]
        process = await trio.lowlevel.open_process(command, env=env, stdout=subprocess.PIPE)
        assert process.stdout is not None
        self._pids["owner"] = process.pid
        told = b""
        with trio.fail_after(120):
            while process.poll() is None:
                self.look()
                await trio.sleep(0.02)
            async for part in process.stdout:
                told += part
        assert process.returncode == 0, told
        del self._pids["owner"]
        return told.decode().strip()

    async def start_provider(self, left_out: int = 0) -> None:
        """Start the provider, which answers all batches but one."""
        owner = await self.command("key", "new", self.folder / "owner.key")
        config = self.folder / "provider.toml"
        config.write_text(
            f'program = "located-provider"\nstate = "{self.folder}/state"\n'
            f'owner = "{owner}"\nfeed = "{self.folder}/feed.link"\n'
            f'difficulty = 4\npatience = 60\n[daemon]\nsocket = "{self.sockets["provider"]}"\n'
        )
        async with hushcast.connect(self.sockets["provider"]) as daemon:
            before = await ready_private(daemon)
            await self._start("provider", "provider", str(config), str(left_out))
            with trio.fail_after(120):
                while len(await ready_private(daemon) - before) < 2:  # noqa: ASYNC110 - no event tells
                    await trio.sleep(0.2)

    async def start_subscriber(self, name: str, keywords: str, patience: float) -> None:
        given = [self.sockets[name], self.folder / "state" / "offer", keywords, self.folder / name, patience]
        self.told[name] = []
        await self._start(name, "subscriber", *map(str, given))

    async def batch(self, number: int, interval: int, messages: list[dict[str, Any]]) -> None:
        """Sign the batch of the interval that it is now, and publish it."""
        file = self.folder / "messages.jsonl"
        file.write_text("".join(json.dumps(one) + "\n" for one in messages))
        given = ["--key", self.folder / "owner.key", "--in", file, "--out", self.folder / "batches"]
        given += ["--interval", interval, "--feed", self.folder / "feed.link"]
        await self.command("batch", *given)
        self.published[number] = time.time()

    async def until(self, name: str, event: str, count: int, within: float) -> list[dict[str, Any]]:
        """Wait until a subscriber was told of so many events of a kind; return them."""
        with trio.fail_after(within):
            while len(found := [one for one in self.told[name] if one["event"] == event]) < count:  # noqa: ASYNC110
                await trio.sleep(0.05)
        return found

    def look(self) -> None:
        """Look at the sockets of all that runs: theirs are Unix sockets alone."""
        owned: dict[int, str] = {}
        for name, pid in self._pids.items():
            with suppress(FileNotFoundError, ProcessLookupError):
                owned |= dict.fromkeys(socket_owners([pid]), name)
                self.strange |= {(name, path) for path in unix_paths(pid)} - {
                    (name, ""),
                    ("provider", f"{self.folder}/state/doctor.sock"),
                    ("provider", f"{self.folder}/state/ready.sock"),
                }
        for kind in KINDS:  # they have our network: one look at the kernel's table is for all
            lines = connections(os.getpid(), kind)
            self.strange |= {(owned[inode], kind) for *_, inode, _ in lines if inode in owned}

    async def _start(self, name: str, *arguments: str) -> None:
        start = functools.partial(
            trio.run_process, [*PROGRAMS, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        process: trio.Process = await self._nursery.start(functools.partial(start, deliver_cancel=_end))
        self._pids[name] = process.pid
        assert process.stdout is not None
        assert process.stderr is not None
        self._nursery.start_soon(self._read, name, process.stdout)
        self._nursery.start_soon(_log, self.folder / f"{name}.log", process.stderr)

    async def _read(self, name: str, stream: trio.abc.ReceiveStream) -> None:
        rest = b""
        async for part in stream:
            *lines, rest = (rest + part).split(b"\n")
            self.told.setdefault(name, []).extend(json.loads(line) for line in lines)


async def _log(file: Path, stream: trio.abc.ReceiveStream) -> None:
    async for part in stream:
        with file.open("ab") as log:
            log.write(part)


async def _end(process: trio.Process) -> None:
    process.kill()
    await process.wait()
