"""Retries: repeats an attempt, with growing pauses, until it succeeds."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

import trio

from hushcast_protocol.base.backoff import Backoff

T = TypeVar("T")


async def retry(
    attempt: Callable[[], Awaitable[T]],
    errors: type[Exception] | tuple[type[Exception], ...],
    backoff: Backoff,
    note: Callable[[str, int], None],
) -> T:
    """Return what `attempt` returns, the first time that it raises none of `errors`.

    `note` hears the reason of each failure, for people, and in how many seconds the next attempt is.
    """
    while True:
        try:
            return await attempt()
        except errors as error:
            pause = backoff.next()
            note(str(error), round(pause))
            await trio.sleep(pause)
