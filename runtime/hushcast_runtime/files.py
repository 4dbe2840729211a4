"""Files and directories that only their owner may read; writes are atomic."""

from __future__ import annotations

import os
import pwd
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from hushcast_protocol.base.crypto.secrets import Randomness, Seed
from hushcast_protocol.base.errors import UsageError, unreadable


def read_most(path: Path, most: int) -> bytes:
    """Return what is in a file, of a longer one a byte more than `most`; raise `UsageError`."""
    try:
        with path.open("rb") as file:
            return file.read(most + 1)
    except OSError as error:
        raise unreadable(path, error) from None


def private_directory(path: Path) -> Path:
    """Make a directory for the owner only; refuse one that others may enter (`UsageError`)."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{path} cannot be made: {error.strerror}") from None
    if path.stat().st_mode & 0o077:
        raise UsageError(f"{path} is open to other users: chmod 700 it, or name another directory")
    return path


def write_private(path: Path, data: bytes) -> None:
    """Write a file with mode 0600 so that a crash leaves the old or the new one, never half of it."""
    replace_file(path, data, lambda descriptor: None)


def replace_file(path: Path, data: bytes, prepare: Callable[[int], None]) -> None:
    """Write a file as `write_private` does; `prepare` may give it, still empty, another mode or owner."""
    part = path.with_name(path.name + ".part")
    part.unlink(missing_ok=True)
    with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        prepare(file.fileno())
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)


def load_or_create(path: Path, size: int, randomness: Randomness) -> bytes:
    """Return a secret of `size` bytes kept in a file, drawing it the first time."""
    if not path.exists():
        write_private(path, randomness(size))
    data = path.read_bytes()
    if len(data) != size:
        raise UsageError(f"{path} should hold {size} bytes and holds {len(data)}: restore it from a backup")
    return data


def load_seed(path: Path, randomness: Randomness) -> Seed:
    """Return the Ed25519 seed kept in a file, drawing it the first time."""
    return Seed(load_or_create(path, Seed.LENGTH, randomness))


def sync_directory(path: Path) -> None:
    """Make durable which files a directory holds, after some were renamed."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def acting_as_owner(path: Path) -> Iterator[None]:
    """Let root act as the user whom a directory belongs to; others, and where there is none, as themselves.

    So the daemon can read what is made there, and links that its user laid lead root nowhere. The whole
    process changes, so it is for commands, not for daemons.
    """
    if os.geteuid() != 0 or not path.exists():
        yield
        return
    owner, group, groups = path.stat(), os.getegid(), os.getgroups()
    os.setgroups(_groups(owner))
    os.setegid(owner.st_gid)
    os.seteuid(owner.st_uid)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(group)
        os.setgroups(groups)


def _groups(owner: os.stat_result) -> list[int]:
    """Return the groups of a file's owner, who may be nobody that this machine knows by name."""
    try:
        return os.getgrouplist(pwd.getpwuid(owner.st_uid).pw_name, owner.st_gid)
    except KeyError:
        return [owner.st_gid]
