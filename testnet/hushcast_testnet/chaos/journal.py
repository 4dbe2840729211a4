"""The journal: what the applications of a chaos run did and saw, and the faults, by one clock.

The daemons' own traces have the rest, by clocks of their own, which a run may set wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal

import msgspec

from hushcast_testnet.chaos import fault_plan

# What publishers tell, what listeners do, and faults.
Kind = Literal["queued", "published", "refused", "listening", "shown", "acknowledged", "left", "begin", "end"]


class JournalEntry(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line; what does not apply is absent."""

    time: float  # seconds from the start of the run
    kind: Literal[
        "queued", "published", "refused", "listening", "shown", "acknowledged", "left", "begin", "end"
    ]
    daemon: str
    message: str | None = None  # id
    cursor: int | None = None  # of what was shown, or up to which was acknowledged
    fault: fault_plan.Kind | None = None
    lasts: float | None = None  # seconds, of a fault that begins
    amount: float | None = None  # of a fault


class Journal:
    """Writes events down as they happen, and keeps them."""

    def __init__(self, path: Path, clock: Callable[[], float]) -> None:
        path.parent.mkdir(mode=0o700, exist_ok=True)
        self._file = path.open("wb", buffering=0)
        self._clock = clock
        self.events: list[JournalEntry] = []

    def note(self, kind: str, daemon: str, **fields: object) -> None:
        """Write one event down."""
        event = msgspec.convert(
            {"time": round(self._clock(), 3), "kind": kind, "daemon": daemon, **fields}, JournalEntry
        )
        self.events.append(event)
        self._file.write(msgspec.json.encode(event) + b"\n")

    def close(self) -> None:
        """Write no more."""
        self._file.close()
