"""Shows what is waited for while tasks wait for it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import trio

from hushcast_cli.progress import PATIENCE, person_watches, reporting, waiting
from hushcast_protocol.base.errors import HushcastError
from hushcast_runtime.exception_groups import ungrouped


@asynccontextmanager
async def shown_when_slow(
    text: str, how_far: Callable[[], Awaitable[str]] | None = None
) -> AsyncIterator[None]:
    """Tell what is waited for if the body takes over a second and a person watches, and at a time-out.

    `how_far` is asked every second, and its answer put behind the text.
    """
    with waiting(text):
        async with _shown_late(text, how_far):
            yield


@asynccontextmanager
async def _shown_late(text: str, how_far: Callable[[], Awaitable[str]] | None) -> AsyncIterator[None]:
    with ungrouped(HushcastError):  # the body's own, as if there were nobody to show anything
        async with trio.open_nursery() as nursery:
            if person_watches():
                nursery.start_soon(_show_late, text, how_far)
            yield
            nursery.cancel_scope.cancel()


async def _show_late(text: str, how_far: Callable[[], Awaitable[str]] | None) -> None:
    await trio.sleep(PATIENCE)
    with reporting() as report:
        report(text)
        while how_far is not None:
            report(f"{text}: {await how_far()}")
            await trio.sleep(PATIENCE)
        await trio.sleep_forever()
