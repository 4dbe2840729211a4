"""Requests to the daemon: finds its socket, asks, and turns refusals and timeouts into errors."""

from __future__ import annotations

import math
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import trio

from hushcast.conversation import Conversation, NoDaemon, OtherVersion, ask
from hushcast.words import Failed, Request
from hushcast_cli.exits import Failure, TimedOut
from hushcast_cli.options import Choices
from hushcast_protocol.base.errors import Refusal, UsageError
from hushcast_runtime.wording import counted

SYSTEM_SOCKET = Path("/run/hushcast/control.sock")

_FAILURES = {"usage": UsageError, "refused": Refusal, "waiting": Failure}

T = TypeVar("T")
AnswerT = TypeVar("AnswerT")


def daemon_socket(choices: Choices) -> Path:
    """Return the chosen socket, or the first of the usual ones that exists; raise `NoDaemon`."""
    if choices.socket is not None:
        return choices.socket
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    usual = [Path(runtime) / "hushcast" / "control.sock"] if runtime else []
    usual.append(SYSTEM_SOCKET)
    for path in usual:
        if _exists(path):
            return path
    places = " or ".join(str(path) for path in usual)
    raise NoDaemon(
        f"no daemon at {places}: start one with `hushcast node run`, or name its socket with --socket"
    )


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except PermissionError:
        return True  # asking it tells why not


def run(work: Callable[[], Awaitable[T]], seconds: float | None = None) -> T:
    """Run `work`; raise `TimedOut` after `seconds`."""
    limit = math.inf if seconds is None else seconds

    async def limited() -> T:
        with trio.move_on_after(limit):
            return await work()
        raise TimedOut(f"{counted(limit, 'second has', 'seconds have')} passed")

    return trio.run(limited)


async def expect(conversation: Conversation, *kinds: type[AnswerT]) -> AnswerT:
    """Return the next answer, of one of the `kinds`.

    Raises `UsageError` or `Refusal` if the daemon declines, `Failure` for a publication that has no receipt
    yet, `NoDaemon` if the daemon left.
    """
    answer = await conversation.next()
    if isinstance(answer, Failed):
        raise _FAILURES[answer.kind](answer.reason)
    if not isinstance(answer, kinds):
        raise OtherVersion("the daemon speaks another version: its answer is to another question")
    return answer


async def ask_once(path: Path, request: Request, kind: type[AnswerT]) -> AnswerT:
    """Ask the daemon at a socket one thing and return its answer."""
    async with ask(path, request) as conversation:
        return await expect(conversation, kind)
