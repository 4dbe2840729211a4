"""The settings of whoever keeps, alone for its network, what is published: for how long, and how much."""

from __future__ import annotations

from typing import Annotated

import msgspec

from hushcast_protocol.base.keeping_rule import MAX_DAYS_KEPT
from hushcast_protocol.content.kept_shares import MAX_KEPT
from hushcast_runtime.processes.config import Section
from hushcast_runtime.wording import counted

MIN_ROOM = (
    16 * 1024 * 1024
)  # bytes: an eighth of it, half of that for large bodies, holds a few of the largest
MAX_ROOM = 1024 * 1024 * 1024  # bytes: of small messages half a million, 300 MB of memory


class KeepingSection(Section, frozen=True, kw_only=True):
    """What is kept of what is published, for those who come later."""

    days: Annotated[int, msgspec.Meta(ge=0, le=MAX_DAYS_KEPT)] = MAX_DAYS_KEPT
    """For how many days after its own a message is kept; 0: nothing is."""
    max_bytes: Annotated[int, msgspec.Meta(ge=MIN_ROOM, le=MAX_ROOM)] = MAX_KEPT
    """For how many bytes there is room; an eighth of it is for one topic and day."""

    @property
    def text(self) -> str:
        """What it says, in words."""
        if not self.days:
            return "nothing"
        return f"{counted(self.days, 'day')}, {self.max_bytes // 2**20} MiB"


NOTHING = KeepingSection(days=0)
"""Nothing is kept."""
