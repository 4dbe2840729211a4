"""The daemon that a command is for, and the time that the command may take."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TypeVar

import trio

from hushcast import sockets
from hushcast.daemon import Daemon, connect
from hushcast.errors import TimedOut
from hushcast_cli.options import Choices
from hushcast_cli.progress import forget_waiting, shown_when_slow, waited_for
from hushcast_runtime.wording import counted

T = TypeVar("T")


def daemon_socket(choices: Choices) -> Path:
    """Return the chosen daemon's socket, or the first of the usual ones that exists.

    Raises `NoDaemon`, or `UsageError` for a node of a testnet that there is not.
    """
    return sockets.daemon_socket(chosen_socket(choices))


def chosen_socket(choices: Choices) -> Path | None:
    """Return the socket that was chosen by --socket or --node, if one was; raises `UsageError`."""
    if choices.node is None:
        return choices.socket
    from hushcast_cli.last_testnet import node_socket

    return node_socket(choices.node)


def daemon(choices: Choices, waits: bool = False) -> AbstractAsyncContextManager[Daemon]:
    """Connect to the daemon that was chosen; if it goes away, the command ends, or `waits` for it.

    What can be checked without a daemon is checked before.
    """
    return connect(daemon_socket(choices), timeout=math.inf, reconnect=waits)


def ask(
    choices: Choices,
    question: Callable[[Daemon], Awaitable[T]],
    seconds: float | None = None,
    waits: str = "waiting for the daemon's answer",
) -> T:
    """Return what the daemon answers; raise `TimedOut` after `seconds`, else as the library does.

    `waits` is what a person is told who watches, if it takes long.
    """

    async def asked() -> T:
        async with shown_when_slow(waits), daemon(choices) as asked_one:
            return await question(asked_one)

    return run(asked, seconds)


def run(work: Callable[[], Awaitable[T]], seconds: float | None = None) -> T:
    """Run `work`; raise `TimedOut` after `seconds`, which says what was waited for."""
    limit = math.inf if seconds is None else seconds
    forget_waiting()

    async def limited() -> T:
        with trio.move_on_after(limit):
            return await work()
        raise TimedOut(f"{counted(limit, 'second has', 'seconds have')} passed{waited_for()}")

    return trio.run(limited)
