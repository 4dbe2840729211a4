"""The state directory of a daemon that does not run: whose it is, and how its files are replaced and kept."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from hushcast_protocol.base.errors import UsageError
from hushcast_protocol.base.roster import Network
from hushcast_runtime.files import acting_as_owner, private_directory, sync_directory
from hushcast_runtime.storage.recovery import DAMAGED
from hushcast_runtime.storage.state_layout import DATABASE, check_version, kept_version
from hushcast_runtime.storage.state_lock import locked
from hushcast_runtime.storage.store import forget_kinds

KEY_SIZE = 32  # bytes of every key file
_JOURNALS = (f"{DATABASE}-wal", f"{DATABASE}-shm", f"{DATABASE}-journal")


@dataclass(frozen=True)
class StateKind:
    """What kind of daemon a state directory is of."""

    role: str
    network: Network
    keys: tuple[str, ...]
    """Its key files."""
    known: int
    """The version of the state that this program writes."""
    note_restored: Callable[[Path, Network, float], None] | None = None
    """Notes in its database, before that is put in place, that it is restored at a moment."""

    def held_in(self, state: Path) -> list[str]:
        """Return the names of the files of this kind that a directory holds."""
        names = (DATABASE, *_JOURNALS, *self.keys)
        return [name for name in names if (state / name).exists()]


@dataclass(frozen=True)
class KeyChange:
    """Keys of a daemon were replaced."""

    keys: tuple[str, ...]
    aside: Path
    """The folder that has the old ones now."""
    follows: tuple[str, ...]
    """What follows, a text for each thing."""
    more: Mapping[str, object] = field(default_factory=dict)
    """What programs are told besides."""


def check_keys(state: Path, names: Sequence[str]) -> None:
    """Raise `UsageError` where keys are gone and the database that belongs to them is there.

    A daemon of other keys is another one: to draw them anew would lose all that others know it by, silently.
    A database of no version yet is of a first start that was cut short, maybe before the keys were drawn.
    """
    if kept_version(state) == 0:
        return
    if missing := [name for name in names if not (state / name).exists()]:
        raise UsageError(
            f"{state / missing[0]} is gone, and what is in {DATABASE} is of no use without it: put it back, "
            f"or a backup with `hushcast admin restore`; or empty {state} to start anew, under other keys"
        )


def check_named(kind: StateKind, named: Sequence[str], keys: Sequence[str]) -> None:
    """Raise `UsageError` where a key is named that a daemon, which has these keys, has not."""
    if wrong := [key for key in named if key not in keys]:
        raise UsageError(f"a {kind.role} has no {wrong[0]} key: its keys are {', '.join(keys)}")


def check_access(state: Path) -> None:
    """Raise `UsageError` unless this process may use a state directory, or may make it."""
    try:
        if not state.exists() or os.access(state, os.R_OK | os.W_OK | os.X_OK, effective_ids=True):
            return
    except OSError:  # nor the directory that it is in
        pass
    raise UsageError(f"{state} belongs to another user: run this as the daemon's user, or as root")


@contextmanager
def stopped(state: Path, known: int) -> Iterator[None]:
    """Hold the state directory of a program that does not run, as its owner; `UsageError` if one does.

    `known` is the version of the state that it writes.
    """
    check_access(state)
    if not state.is_dir():
        raise UsageError(f"there is no state in {state}: a program makes one when it runs")
    with acting_as_owner(state), locked(private_directory(state)):
        check_version(kept_version(state), known)
        yield


def replace_keys(state: Path, keys: Sequence[str], forgotten: Sequence[str], now: float) -> Path:
    """Move key files of a `stopped` daemon aside, which draws new ones at its start; return the folder.

    Records of the kinds `forgotten` are deleted. Raises `UsageError` where a key is missing.
    """
    if missing := [name for name in keys if not (state / name).is_file()]:
        raise UsageError(f"there is no {missing[0]} in {state}: a daemon makes one when it runs")
    if forgotten and (state / DATABASE).exists():
        forget_kinds(state / DATABASE, (*forgotten, DAMAGED))
    return move_aside(state, keys, now)


def move_aside(state: Path, names: Sequence[str], now: float) -> Path:
    """Move files of a state directory into a new folder in it that is named after the time; return that."""
    aside = folder_aside(state, now)
    for name in names:
        (state / name).replace(aside / name)
    sync_directory(state)
    return aside


def folder_aside(state: Path, now: float) -> Path:
    """Make a folder in a state directory that is named after the time."""
    stem, number = datetime.fromtimestamp(now, UTC).strftime("replaced-%Y%m%dT%H%M%SZ"), 1
    while (aside := state / (stem if number == 1 else f"{stem}-{number}")).exists():
        number += 1
    aside.mkdir(mode=0o700)
    return aside
