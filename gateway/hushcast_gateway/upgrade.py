"""The layout of a gateway's state: its versions, and how a state of each becomes one of the next."""

from __future__ import annotations

from collections.abc import Sequence

from hushcast_runtime.storage.state_layout import Migration
from hushcast_runtime.storage.store import Change, Store


async def _first(store: Store) -> Sequence[Change]:
    """Begin: there is nothing before the first version."""
    return ()


MIGRATIONS: tuple[Migration, ...] = (_first,)
VERSION = len(MIGRATIONS)
"""The version that this program writes."""
