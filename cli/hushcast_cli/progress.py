"""Shows on standard error that something is going on: moving on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from hushcast.errors import TimedOut
from hushcast_cli.output import note, printable
from hushcast_runtime.wording import counted

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


def time_over(seconds: float) -> TimedOut:
    """Return the error of a command whose time is over, with what it waited for, where that is known."""
    waited_for = f", {_waited_for[-1]}" if _waited_for else ""
    return TimedOut(f"{counted(seconds, 'second has', 'seconds have')} passed{waited_for}")


@contextmanager
def waiting(text: str) -> Iterator[None]:
    """Have a time-out in the block say what was waited for."""
    _waited_for.append(text)
    yield
    _waited_for.remove(text)  # not where the block was cancelled: that is the time-out


@contextmanager
def shown_when_late(text: str) -> Iterator[None]:
    """Tell what is waited for if the body blocks over a second and a person watches, and at a time-out."""
    with waiting(text):
        if not person_watches():
            yield
            return
        import threading

        over = threading.Event()

        def show() -> None:
            if not over.wait(PATIENCE):
                with reporting() as report:
                    report(text)
                    over.wait()

        watch = threading.Thread(target=show, daemon=True)
        watch.start()
        try:
            yield
        finally:
            over.set()
            watch.join()
