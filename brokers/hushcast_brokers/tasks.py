"""Tasks that end with something: with a link, as a rule."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import trio


class Tasks:
    """What runs for as long as a link is open."""

    def __init__(self, spawn: Callable[..., None]) -> None:
        """`spawn` starts a task that ends with the daemon."""
        self._spawn = spawn
        self._scopes: set[trio.CancelScope] = set()
        self._has_ended = False

    def start(self, work: Callable[..., Awaitable[None]], *args: object) -> None:
        """Do something until it is done, or until the end."""
        self._spawn(self._run, work, args)

    def end(self) -> None:
        """Cancel all that runs, and start nothing more."""
        self._has_ended = True
        for scope in self._scopes:
            scope.cancel()

    async def _run(self, work: Callable[..., Awaitable[None]], args: tuple[object, ...]) -> None:
        with trio.CancelScope() as scope:
            if self._has_ended:
                return
            self._scopes.add(scope)
            try:
                await work(*args)
            finally:
                self._scopes.discard(scope)
