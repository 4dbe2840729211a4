"""A connection to the daemon, which may be away, and all that a program beside it does while it is there."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import trio

import hushcast
from hushcast_protocol.base.findings import Finding, bad, good
from hushcast_runtime.exception_groups import innermost
from hushcast_runtime.logs import log
from hushcast_runtime.transports.local_sockets import why_unreached

AGAIN = 5.0  # seconds between looks for a daemon that is not there, or that refuses a subscription

Task = Callable[[hushcast.Daemon], Awaitable[None]]


class DaemonConversation:
    """Keeps a connection, and tasks that need it."""

    def __init__(self, socket: Path, tasks: Sequence[Task]) -> None:
        self.is_there = False
        """Whether the daemon answers."""
        self._socket = socket
        self._tasks = tasks

    async def run(self) -> None:
        """Go on until cancelled."""
        is_told = False
        while True:
            try:
                async with hushcast.connect(self._socket, timeout=None) as daemon:
                    is_told, self.is_there = False, True
                    log.info("the daemon answers")
                    await self._work(daemon)
            except* (hushcast.NoDaemon, hushcast.Refusal) as errors:
                if not is_told:
                    log.warning("the daemon does not answer", error=type(innermost(errors)).__name__)
                    is_told = True
            self.is_there = False
            await trio.sleep(AGAIN)

    async def _work(self, daemon: hushcast.Daemon) -> None:
        async with trio.open_nursery() as nursery:
            for task in self._tasks:
                nursery.start_soon(self._again, task, daemon)

    async def _again(self, task: Task, daemon: hushcast.Daemon) -> None:
        """Run a task for ever: a subscription may be refused for now, or ended by somebody."""
        while True:
            try:
                await task(daemon)
            except hushcast.Refusal:
                log.warning("the daemon refuses a subscription")
            await trio.sleep(AGAIN)


async def examine_daemon(socket: str, advice: str) -> Finding:
    """Return whether the daemon at a control socket can be reached, from outside."""
    reason = await why_unreached(socket)
    if reason is None:
        return good("network", f"the daemon at {socket} answers")
    return bad("network", f"the daemon at {Path(socket)}: {reason}", advice)
