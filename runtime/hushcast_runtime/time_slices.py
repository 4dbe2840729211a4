"""Work that takes long, done in the event loop step by step, so that other tasks go on in between."""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeVar

import trio

T = TypeVar("T")


async def in_steps(work: Generator[None, None, T]) -> T:
    """Run a generator to its end, with a checkpoint wherever it yields; return what it returns."""
    while True:
        try:
            next(work)
        except StopIteration as end:
            result: T = end.value
            return result
        await trio.lowlevel.checkpoint()
