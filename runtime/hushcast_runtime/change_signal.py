"""A signal between tasks: something changed, look again."""

from __future__ import annotations

import trio


class ChangeSignal:
    """Wakes everybody who waits."""

    def __init__(self) -> None:
        self._event = trio.Event()

    def tell(self) -> None:
        """Wake all that wait now."""
        self._event.set()
        self._event = trio.Event()

    async def wait(self) -> None:
        """Return when there is news."""
        await self._event.wait()
