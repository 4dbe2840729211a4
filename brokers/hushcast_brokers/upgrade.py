"""Upgrade: the migrations by which a broker's state of a version becomes one of the next."""

from __future__ import annotations

from hushcast_runtime.storage.state_layout import Migration
from hushcast_runtime.storage.store import Change, Store


async def _count_from_here(store: Store) -> list[Change]:
    """From 0, which is no state at all."""
    return []


MIGRATIONS: tuple[Migration, ...] = (_count_from_here,)
"""In order: the first brings version 0 to 1. None is ever taken out or changed."""
VERSION = len(MIGRATIONS)
"""The version of the state that this program writes."""
