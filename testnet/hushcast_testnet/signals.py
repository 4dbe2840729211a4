"""Signals: what ends a command of a testnet cancels its work, which then cleans up undisturbed."""

from __future__ import annotations

import signal
from collections.abc import Awaitable, Callable
from typing import TypeVar

import trio

T = TypeVar("T")


async def until_signalled(work: Callable[..., Awaitable[T]], *arguments: object) -> T:
    """Do some work; on SIGINT or SIGTERM cancel it, and end as that signal is told once it has cleaned up.

    Python raises `KeyboardInterrupt` between any two instructions, also in the middle of cleaning up.
    """
    caught: list[int] = []
    results: list[T] = []
    failures: list[Exception] = []  # raised once the nursery is gone, which would wrap them
    with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async with trio.open_nursery() as nursery:

            async def watch() -> None:
                async for number in signals:
                    caught.append(number)
                    nursery.cancel_scope.cancel()

            nursery.start_soon(watch)
            try:
                results.append(await work(*arguments))
            except Exception as failure:
                failures.append(failure)
            nursery.cancel_scope.cancel()
    if failures:
        raise failures[0]
    if results:
        return results[0]
    if caught[0] == signal.SIGTERM:
        raise SystemExit(128 + signal.SIGTERM)
    raise KeyboardInterrupt
