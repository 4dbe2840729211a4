"""A signal between tasks: something changed, look again."""

from __future__ import annotations

import trio


class ChangeSignal:
    """Wakes everybody who waits."""

    def __init__(self) -> None:
        self._event: trio.Event | None = None  # there is one while somebody waits

    def tell(self) -> None:
        """Wake all that wait now."""
        if self._event is not None:
            self._event.set()
            self._event = None

    async def wait(self) -> None:
        """Return when there is news."""
        if self._event is None:
            self._event = trio.Event()
        await self._event.wait()
