"""Shows on standard error that something is going on: moving on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager

import trio

from hushcast_cli.output import note, printable
from hushcast_protocol.base.errors import HushcastError
from hushcast_runtime.exception_groups import ungrouped

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


_waited_for: list[str] = []  # by the command of this process, what it began to wait for last


def forget_waiting() -> None:
    """Begin a command, which has waited for nothing."""
    _waited_for.clear()


def waited_for() -> str:
    """Say what a command waited for when its time was over, to be put behind that; nothing where unknown."""
    return f", {_waited_for[-1]}" if _waited_for else ""


@contextmanager
def waiting(text: str) -> Iterator[None]:
    """Have a time-out in the block say what was waited for."""
    _waited_for.append(text)
    yield
    _waited_for.remove(text)  # not where the block was cancelled: that is the time-out


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
