"""What the root keeps of publications, for whoever asks without a name."""

from __future__ import annotations

from collections.abc import Sequence

from hushcast_protocol.base.epochs import Calendar
from hushcast_protocol.base.errors import Refusal
from hushcast_protocol.brokers.frames import AskPast
from hushcast_protocol.content.kept_shares import trunk_day
from hushcast_protocol.content.messages import Message
from hushcast_runtime.context import Context
from hushcast_runtime.processes.keeping_section import KeepingSection
from hushcast_runtime.storage.changes import Change
from hushcast_runtime.storage.kept_store import KeptStore


class RootKeeping:
    """What the root keeps: by the word that all messages of a topic have, which is their first."""

    def __init__(self, keeping: KeepingSection, calendar: Calendar, context: Context) -> None:
        self.calendar = calendar
        self._days = keeping.days
        self._kept = KeptStore(keeping.max_bytes if keeping.days else 0, context)
        self._env = context.env
        self._counters = context.counters

    @property
    def size(self) -> int:
        """The bytes that are kept."""
        return self._kept.size

    async def load(self) -> None:
        """Know what was kept before a restart; what is of too early days goes with the next look."""
        await self._kept.load()

    def keep(self, message: Message) -> Sequence[Change]:
        """Keep a publication, if any is kept; return what that changes in the store."""
        return self._kept.keep(message) if self._days else ()

    async def page(self, asked: AskPast) -> list[Message]:
        """Return some of what is asked for, the same to all; none at its end. Raises `Refusal`."""
        if not self._days:
            raise Refusal("unknown")
        days = self.calendar.open_days(self._env.now())
        if not days.start - self._days <= asked.day < days.stop:
            raise Refusal("day")
        self._counters.add("kept_asked_for")
        name = trunk_day(asked.day, asked.word)
        after = None if asked.after is None else name + asked.after
        while True:
            messages, after = await self._kept.read(name, after)
            if messages or after is None:  # or all that was read was damaged
                self._counters.add("kept_brought", len(messages))
                return messages

    async def expire(self, now: float) -> None:
        """Forget the days that are over for long enough, some messages at a time."""
        await self._kept.lapse(self.calendar.open_days(now).start - self._days)
