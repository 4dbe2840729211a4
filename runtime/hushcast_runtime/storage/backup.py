"""Backup and restoring of a state directory: a consistent copy while the daemon runs; nothing is overwritten.

The copy is made by whoever may read the state directory, not by the daemon over its control socket: members
of the socket's group use the daemon, and its keys are not for them.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import BinaryIO

from hushcast_protocol.base.errors import UsageError, unreadable
from hushcast_runtime.files import acting_as_owner, private_directory, sync_directory
from hushcast_runtime.storage.backup_format import (
    BackupError,
    BackupHeader,
    BackupPart,
    open_backup,
    write_backup,
)
from hushcast_runtime.storage.failures import FAILURES, told
from hushcast_runtime.storage.state_directory import KEY_SIZE, StateKind, check_access, move_aside
from hushcast_runtime.storage.state_layout import DATABASE, check_version
from hushcast_runtime.storage.state_lock import locked

_PART = "restore.part"  # in the state directory, while a backup is unpacked


def make_backup(state: Path, kind: StateKind, now: float, out: Path, force: bool) -> BackupHeader:
    """Write a backup of a state directory, whose daemon may be running, to `out`; return what it is of.

    It is there whole or not at all, for its owner only. Raises `UsageError` or `BackupError`.
    """
    check_access(state)
    _check_target(out, force)
    part = out.with_name(out.name + ".part")
    try:
        part.mkdir(mode=0o700)
    except FileExistsError:
        raise UsageError(
            f"{part} exists: another backup is being made, or one was interrupted; then remove it"
        ) from None
    except OSError as error:
        raise UsageError(f"{out} cannot be made: {error.strerror}") from None
    try:
        version = _copy_state(state, kind.keys, part)
        files = [part / name for name in (DATABASE, *kind.keys)]
        sizes = tuple(BackupPart(path.name, path.stat().st_size) for path in files)
        network = kind.network
        header = BackupHeader(
            kind.role, network.name, network.profile, network.epoch_seconds, version, int(now), sizes
        )
        with _private_file(part / "backup") as file:
            write_backup(file, header, files)
            file.flush()
            os.fsync(file.fileno())
        _check_target(out, force)
        (part / "backup").replace(out)
        sync_directory(out.parent)
    except OSError as error:
        raise BackupError(f"the backup {out} cannot be written: {error.strerror}") from error
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return header


def restore_backup(
    backup: Path, state: Path, kind: StateKind, now: float, force: bool
) -> tuple[BackupHeader, Path | None]:
    """Unpack a backup into a state directory whose daemon does not run.

    Returns what the backup is of, and where the state of before was moved, `None` if there was none. Raises
    `UsageError` where it does not fit the daemon, or where a state is there and `force` is not given, and
    `BackupError` where it is damaged; then the state is as it was.
    """
    check_access(state)
    with open_backup(backup) as reader:
        header = reader.header
        _check_fits(backup, header, kind)
        reader.check_files(dict.fromkeys(kind.keys, KEY_SIZE), DATABASE)
        with acting_as_owner(state), locked(private_directory(state)):
            if not force and (held := kind.held_in(state)):
                raise UsageError(
                    f"{state} holds a state already ({held[0]}): --force moves it aside, or name an empty "
                    "directory in the configuration"
                )
            part = state / _PART
            shutil.rmtree(part, ignore_errors=True)  # of a restoring that was interrupted
            try:
                part.mkdir(mode=0o700)
                reader.copy(lambda name: _private_file(part / name))
                if kind.note_restored is not None:
                    kind.note_restored(part / DATABASE, kind.network, now)
                held = kind.held_in(state)
                # Keys go first and come last: with them and without its records a directory would sign anew.
                held.sort(key=lambda name: name not in kind.keys)
                aside = move_aside(state, held, now) if held else None
                for name in (DATABASE, *kind.keys):
                    (part / name).replace(state / name)
                sync_directory(state)
            except OSError as error:
                raise BackupError(f"{state} cannot be written: {error.strerror}") from error
            finally:
                shutil.rmtree(part, ignore_errors=True)
    return header, aside


def _check_fits(backup: Path, header: BackupHeader, kind: StateKind) -> None:
    if header.role != kind.role:
        raise UsageError(f"{backup} is of a {header.role}, and the configuration is of a {kind.role}")
    if not header.is_of(kind.network):
        raise UsageError(
            f"{backup} is of another network ({header.network}, {header.profile}, epochs of "
            f"{header.epoch_seconds} s) than the configuration"
        )
    check_version(header.version, kind.known)


def _check_target(out: Path, force: bool) -> None:
    """Raise `UsageError` where a backup would take the place of another file, or of what is no file."""
    try:
        mode = out.lstat().st_mode
    except FileNotFoundError:
        return
    except OSError as error:
        raise UsageError(f"{out} cannot be made: {error.strerror}") from None
    if not stat.S_ISREG(mode):
        raise UsageError(f"{out} is not a file: name another")
    if not force:
        raise UsageError(f"{out} exists: name another file, or overwrite it with --force")


def _copy_state(state: Path, keys: Sequence[str], part: Path) -> int:
    """Copy the database as it is at one moment, and the keys; return the state's version."""
    try:
        with acting_as_owner(state):
            if not (state / DATABASE).is_file():
                raise UsageError(f"there is no state in {state}: a daemon makes one when it runs")
            seeds = {name: _read_key(state / name) for name in keys}
            source = sqlite3.connect(f"{(state / DATABASE).absolute().as_uri()}?mode=ro", uri=True)
        with closing(source):
            with acting_as_owner(state):
                source.execute("BEGIN")
                (version,) = source.execute("PRAGMA user_version").fetchone()
                source.execute("SELECT 1 FROM sqlite_master").fetchone()  # the moment that is copied
            _private_file(part / DATABASE).close()
            with closing(sqlite3.connect(part / DATABASE)) as copy:
                source.backup(copy)
                (sound,) = copy.execute("PRAGMA quick_check(1)").fetchone()
    except FAILURES as error:
        raise BackupError(f"the database in {state} cannot be read: {told(error)}") from error
    if sound != "ok":
        raise BackupError(f"the database in {state} is damaged: no backup was made")
    for name, seed in seeds.items():
        with _private_file(part / name) as file:
            file.write(seed)
    return int(version)


def _read_key(path: Path) -> bytes:
    try:
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "rb") as file:
            data = file.read(KEY_SIZE + 1)
    except OSError as error:
        raise unreadable(path, error) from None
    if len(data) != KEY_SIZE:
        raise UsageError(f"{path} should hold {KEY_SIZE} bytes: no backup was made")
    return data


def _private_file(path: Path) -> BinaryIO:
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb")
