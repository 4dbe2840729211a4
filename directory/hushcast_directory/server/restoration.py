"""Restoration: what a directory whose state was put back from a backup may have signed since that was made.

Two heads of one epoch with a quorum each are proof of a fork, at which daemons stop for good. So `hushcast
admin restore` notes in the state up to which epoch nothing more is signed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

from hushcast_protocol.base.epochs import Calendar
from hushcast_protocol.base.record_kinds import RecordKind, StateOwner
from hushcast_protocol.base.roster import Network
from hushcast_protocol.base.wire import encode
from hushcast_runtime.storage.changes import Change
from hushcast_runtime.storage.store import Store, change_records, record_reader
from hushcast_runtime.wording import counted

SIGNS_TWICE = "without it this directory might sign for an epoch twice; "
"""Why it does not go on without what it keeps of what it signed (`store.record_reader`)."""
_RESTORED = RecordKind(
    "restored",
    StateOwner.DIRECTORY,
    holds="up to which epoch nothing is signed after a backup was restored",
    lifetime="for ever",
    bound="1",
)

_decode: Callable[[bytes], int] = record_reader(int, "restored", SIGNS_TWICE)


def note_restored(database: Path, network: Network, now: float) -> None:
    """Note in a database that was restored, and is not in use, what may be signed already.

    That is the epoch that runs and, from its middle on, when votes for it begin, the next. Raises
    `StoreError`.
    """
    calendar = network.calendar
    change_records(database, signs_after(calendar.epoch(now + calendar.grace)))


def signs_after(epoch: int) -> Change:
    """Return what notes that nothing is signed up to an epoch."""
    return Change(_RESTORED, b"", encode(epoch))


async def last_restored(store: Store) -> int:
    """Return the last epoch for which nothing is signed, as noted; -1 if no backup was restored."""
    return max([_decode(value) for _, value in await store.scan(_RESTORED)], default=-1)


def silence(calendar: Calendar, last: int, now: float) -> str | None:
    """Return why nothing is signed at a moment, and until when, if that is noted up to an epoch `last`."""
    left = calendar.epoch_start(last + 1) - calendar.lead - now
    if left <= 0:
        return None
    return (
        f"nothing is signed here up to epoch {last}: a backup was restored, and these may be signed already;"
        f" it goes on in {counted(math.ceil(left / 60), 'minute')}, with the roster of epoch {last + 1}"
    )
