"""A connection to the daemon that a command is for, and the time that the command may take."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import TypeVar

import trio

from hushcast.daemon import Daemon, connect
from hushcast_cli.awaited_progress import shown_when_slow
from hushcast_cli.choices import Choices
from hushcast_cli.chosen_daemon import daemon_socket
from hushcast_cli.progress import forget_waiting, time_over

T = TypeVar("T")


def daemon(choices: Choices, waits: bool = False) -> AbstractAsyncContextManager[Daemon]:
    """Connect to the daemon that was chosen; if it goes away, the command ends, or `waits` for it.

    What can be checked without a daemon is checked before.
    """
    return connect(daemon_socket(choices), timeout=math.inf, reconnect=waits)


def converse(
    choices: Choices,
    conversation: Callable[[Daemon], Awaitable[T]],
    seconds: float | None = None,
) -> T:
    """Return what comes of a conversation with the daemon; raises as `ask` of `chosen_daemon`."""

    async def conversed() -> T:
        async with shown_when_slow("waiting for the daemon's answer"), daemon(choices) as one:
            return await conversation(one)

    return run(conversed, seconds)


def run(work: Callable[[], Awaitable[T]], seconds: float | None = None) -> T:
    """Run `work`; raise `TimedOut` after `seconds`, which says what was waited for."""
    limit = math.inf if seconds is None else seconds
    forget_waiting()

    async def limited() -> T:
        with trio.move_on_after(limit):
            return await work()
        raise time_over(limit)

    return trio.run(limited)
