"""Shows on standard error that something is going on: moving on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager

import trio

from hushcast_cli.output import note, printable

PATIENCE = 1.0  # seconds that a person waits before asking what is going on


def person_watches() -> bool:
    """Tell whether standard error is a terminal."""
    return sys.stderr is not None and sys.stderr.isatty()


@contextmanager
def reporting() -> Iterator[Callable[[str], None]]:
    """Yield a function that tells what is being done now."""
    with telling() as (progress, _):
        yield progress


@contextmanager
def telling() -> Iterator[tuple[Callable[[str], None], Callable[[str], None]]]:
    """Yield a function that tells what is being done now, and one for lines that stay."""
    if not person_watches():
        yield note, lambda line: note(line, as_it_is=True)
        return
    from rich.console import Console
    from rich.text import Text

    console = Console(stderr=True)
    with console.status(Text("starting")) as status:
        yield (
            lambda text: status.update(Text(printable(text))),
            lambda line: console.print(Text(printable(line)), soft_wrap=True),
        )


@asynccontextmanager
async def shown_when_slow(
    text: str, how_far: Callable[[], Awaitable[str]] | None = None
) -> AsyncIterator[None]:
    """Tell what is waited for if the body takes over a second and a person watches.

    `how_far` is asked every second, and its answer put behind the text.
    """
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
