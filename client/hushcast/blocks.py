"""Blocks: what `connect` and `connect_sync` return, which is a daemon only while its block is open."""

from __future__ import annotations

import functools
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractAsyncContextManager, AbstractContextManager, contextmanager
from types import TracebackType
from typing import Any, Generic, NoReturn, ParamSpec, TypeVar

from hushcast_protocol.base.errors import UsageError

ArgumentsP = ParamSpec("ArgumentsP")
DaemonT_co = TypeVar("DaemonT_co", covariant=True)


class _Closed:
    _way_in = ""

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"no {name} outside of the block: `{self._way_in}`")


class DaemonBlock(_Closed, AbstractAsyncContextManager[DaemonT_co], Generic[DaemonT_co]):
    """A connection that `async with` opens."""

    _way_in = "async with hushcast.connect() as daemon:"

    def __init__(self, block: AbstractAsyncContextManager[DaemonT_co]) -> None:
        self._block = block

    async def __aenter__(self) -> DaemonT_co:
        """Connect."""
        return await self._block.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        """Leave the daemon."""
        return await self._block.__aexit__(kind, error, trace)

    def __await__(self) -> Generator[Any, None, NoReturn]:
        """Raise `UsageError`: whoever awaits it would never leave the daemon."""
        raise UsageError(f"a connection is not awaited: `{self._way_in}`")


class BlockingDaemonBlock(_Closed, AbstractContextManager[DaemonT_co], Generic[DaemonT_co]):
    """A connection that `with` opens."""

    _way_in = "with hushcast.connect_sync() as daemon:"

    def __init__(self, block: AbstractContextManager[DaemonT_co]) -> None:
        self._block = block

    def __enter__(self) -> DaemonT_co:
        """Connect."""
        return self._block.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        """Leave the daemon."""
        return self._block.__exit__(kind, error, trace)


def opened_by_async_with(
    connect: Callable[ArgumentsP, AbstractAsyncContextManager[DaemonT_co]],
) -> Callable[ArgumentsP, DaemonBlock[DaemonT_co]]:
    """Return a function that says so where its daemon is used without a block."""

    @functools.wraps(connect)
    def block(*given: ArgumentsP.args, **named: ArgumentsP.kwargs) -> DaemonBlock[DaemonT_co]:
        return DaemonBlock(connect(*given, **named))

    return block


def opened_by_with(
    connect: Callable[ArgumentsP, AbstractContextManager[DaemonT_co]],
) -> Callable[ArgumentsP, BlockingDaemonBlock[DaemonT_co]]:
    """Return a function that says so where its daemon is used without a block."""

    @functools.wraps(connect)
    def block(*given: ArgumentsP.args, **named: ArgumentsP.kwargs) -> BlockingDaemonBlock[DaemonT_co]:
        return BlockingDaemonBlock(connect(*given, **named))

    return block


@contextmanager
def interrupt_alone() -> Iterator[None]:
    """Raise Ctrl-C by itself: it comes in whichever task runs, and the groups of tasks around wrap it."""
    try:
        yield
    except BaseExceptionGroup as group:
        if group.split(KeyboardInterrupt)[1] is None:
            raise KeyboardInterrupt from group
        raise
