"""Bodies of messages in the spool: one for all that wait with it, in the store and in memory."""

from __future__ import annotations

from weakref import ref

import msgspec


class SharedBody:
    """A body in memory: all messages that hold it at a time hold this one."""

    __slots__ = ("__weakref__", "data")

    def __init__(self, data: bytes) -> None:
        self.data = data


class SpooledBody(msgspec.Struct, gc=False):
    """A body in the store, and how many next hops it waits for."""

    size: int
    day: int
    number: int | None = None  # where it lies; none where it is in the one record of its message
    each: int = 0  # bytes that a next hop adds
    waiting: int = 0
    _shared: ref[SharedBody] | None = None

    def in_memory(self) -> SharedBody | None:
        """Return the body if a message holds it."""
        return self._shared() if self._shared is not None else None

    def share(self, data: bytes) -> SharedBody:
        """Return the body as it is held in memory, by now."""
        if (shared := self.in_memory()) is None:
            shared = SharedBody(data)
            self._shared = ref(shared)
        return shared
