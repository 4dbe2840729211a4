"""The layout of a state: its version, migrations to the next one and one step back, refusal of newer ones."""

from __future__ import annotations

import sqlite3
from collections.abc import Awaitable, Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from hushcast_protocol.base.errors import UsageError
from hushcast_runtime.logs import log
from hushcast_runtime.storage.changes import Change
from hushcast_runtime.storage.failures import FAILURES, told
from hushcast_runtime.storage.recovery import grow_older
from hushcast_runtime.storage.store import Store, StoreError

DATABASE = "state.db"
"""In the state directory: all records."""

WAY_OUT_OF_NEWER = (
    "install the version of Hushcast that wrote it, or a newer one; `hushcast admin step-back` of that takes "
    "it one version back; or restore a backup from before the upgrade"
)
"""What whoever meets a state of a later version can do."""

Step = Callable[[Store], Awaitable[Sequence[Change]]]
"""Returns the changes that bring a store of one version to another; it reads, and writes nothing itself."""


@dataclass(frozen=True)
class Migration:
    """Between a version and the next."""

    up: Step
    down: Step
    """Raises `UsageError`, naming it, where there is something that the version before cannot hold."""


async def unchanged(store: Store) -> Sequence[Change]:
    """Leave all records as they are: both versions read them."""
    return ()


FIRST: tuple[Migration, ...] = (Migration(up=unchanged, down=unchanged),)
"""The migrations of a program whose records have kept their layout: from 0, which is no state at all, or one
of before there were versions, with the same records. None is ever taken out or changed."""


def kept_version(state: Path) -> int:
    """Return the version of the state in a directory, 0 where there is none; changes nothing.

    Raises `StoreError` if it cannot be read.
    """
    path = state / DATABASE
    try:
        if not path.exists():
            return 0
        # By SQLite, not from the file's header: the newest version may still lie in the write-ahead log.
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as database:
            return int(database.execute("PRAGMA user_version").fetchone()[0])
    except (*FAILURES, OSError) as error:
        raise StoreError(f"the database {path} cannot be read: {told(error)}") from error


def check_version(found: int, known: int) -> None:
    """Raise `UsageError` for a state newer than the `known` version, `StoreError` for none of ours."""
    if found < 0:
        raise StoreError("the database is damaged: restore a backup with `hushcast admin restore`")
    if found > known:
        raise UsageError(
            f"the state is of version {found}, and this program knows versions up to {known}: "
            f"{WAY_OUT_OF_NEWER}; nothing was changed"
        )


async def migrate(store: Store, migrations: Sequence[Migration]) -> None:
    """Bring a store to the version after the last migration, in one commit a version: a daemon starts.

    The first migration is that of version 0. Whatever moment this is interrupted in, the next start goes on
    from the version that is written. Raises as `check_version` does.
    """
    check_version(store.version, len(migrations))
    for version in range(store.version, len(migrations)):
        changes = await migrations[version].up(store)
        await store.advance(version + 1, *changes)
        if changes:
            log.info("the state of an earlier version was upgraded", count=len(changes))
    await grow_older(store)


async def step_back(store: Store, migrations: Sequence[Migration]) -> None:
    """Bring a store to the version before its own, in one commit: that program can be installed again.

    Raises as `check_version` does, and `UsageError` where there is no version before, or it cannot hold what
    this one does; then nothing was changed.
    """
    check_version(store.version, len(migrations))
    if store.version == 0:
        raise UsageError("the state is of version 0: there is none before that")
    changes = await migrations[store.version - 1].down(store)
    await store.advance(store.version - 1, *changes)
