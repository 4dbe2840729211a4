"""The daemon that a command is for, and a question to it: without a loop, which takes long to load."""

from __future__ import annotations

import math
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

from hushcast import sockets
from hushcast.errors import TimedOut
from hushcast.plain_connection import ask_plainly
from hushcast.questions import Questions
from hushcast_cli.choices import Choices
from hushcast_cli.progress import forget_waiting, shown_when_late, time_over

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


def ask(
    choices: Choices,
    question: Callable[[Questions], Coroutine[Any, Any, T]],
    seconds: float | None = None,
    waits: str = "waiting for the daemon's answer",
) -> T:
    """Return what the daemon answers; raise `TimedOut` after `seconds`, else as the library does.

    `waits` is what a person is told who watches, if it takes long.
    """
    limit = math.inf if seconds is None else seconds
    forget_waiting()
    try:
        with shown_when_late(waits):
            return ask_plainly(daemon_socket(choices), question, limit)
    except TimedOut:
        raise time_over(limit) from None
