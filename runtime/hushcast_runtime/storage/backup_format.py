"""The form of a backup: a line that names it, a line of JSON, the files' bytes, and a checksum of all before.

There are no paths in it: a file is one of those that a daemon of the role has, or the backup is refused.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, BinaryIO

import msgspec

from hushcast_protocol.base.errors import HushcastError, UsageError, unreadable
from hushcast_protocol.base.roster import Network

_NAME, _FORM = b"hushcast backup ", 1
_FIRST_LINE = _NAME + b"%d\n" % _FORM
MAX_HEADER = 16 * 1024  # bytes of the line of JSON; ours have some 500
MAX_FILES = 16  # in a backup; a relay's has five
_CHUNK = 1 << 20  # bytes copied at once
_CHECKSUM = hashlib.sha256().digest_size


class BackupError(HushcastError):
    """A file that should be a backup is none, or is damaged, or none can be made."""


class BackupPart(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A file in a backup."""

    name: str
    size: Annotated[int, msgspec.Meta(ge=0)]  # bytes


class BackupHeader(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a backup is of."""

    role: str
    network: str
    profile: str
    epoch_seconds: int
    version: Annotated[int, msgspec.Meta(ge=0)]  # of the state
    made: Annotated[int, msgspec.Meta(ge=0, le=253402300799)]  # Unix seconds, up to the year 9999
    files: Annotated[tuple[BackupPart, ...], msgspec.Meta(max_length=MAX_FILES)]

    def is_of(self, network: Network) -> bool:
        """Tell whether it is of a daemon in this network."""
        return network == Network(self.network, self.profile, self.epoch_seconds)


_decoder = msgspec.json.Decoder(BackupHeader)


def write_backup(out: BinaryIO, header: BackupHeader, files: Sequence[Path]) -> None:
    """Write a backup of `files`, which are those that the header names, in its order."""
    digest = hashlib.sha256()

    def put(data: bytes) -> None:
        digest.update(data)
        out.write(data)

    put(_FIRST_LINE)
    put(msgspec.json.encode(header) + b"\n")
    for path in files:
        with path.open("rb") as file:
            while data := file.read(_CHUNK):
                put(data)
    out.write(digest.digest())


@contextmanager
def open_backup(path: Path) -> Iterator[BackupReader]:
    """Open a backup and read what it is of; raise `BackupError`, or `UsageError` where there is no file."""
    try:
        # Not blocking: what is no file, such as a pipe that nobody writes to, is found out at once.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        raise unreadable(f"the backup {path}", error) from None
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode):
        os.close(descriptor)
        raise UsageError(f"{path} is not a file")
    with os.fdopen(descriptor, "rb") as file:
        yield BackupReader(path, file, found.st_size)


class BackupReader:
    """One backup, read from its beginning to its end once; never more of it than its file holds."""

    def __init__(self, path: Path, file: BinaryIO, size: int) -> None:
        """Read what it is of; raise `BackupError`. `size` is the file's, in bytes."""
        self._path = path
        self._file = file
        self._digest = hashlib.sha256()
        first = file.readline(len(_FIRST_LINE) + 8)
        if not first.startswith(_NAME):
            raise BackupError(f"{path} is no backup: `hushcast admin backup FILE` makes one")
        if first != _FIRST_LINE:
            form = first.removeprefix(_NAME).strip().decode("ascii", "replace")
            if not form.isdecimal():
                raise self._damaged()
            raise BackupError(
                f"{path} is a backup of form {form}, this program knows {_FORM}: use a newer one"
            )
        self._digest.update(first)
        line = file.readline(MAX_HEADER)
        self._digest.update(line)
        try:
            self.header = _decoder.decode(line)
        except (msgspec.MsgspecError, ValueError, RecursionError):
            raise self._damaged() from None
        claimed = len(first) + len(line) + sum(part.size for part in self.header.files) + _CHECKSUM
        if not line.endswith(b"\n") or claimed != size:
            raise self._damaged()

    def check_files(self, sizes: Mapping[str, int], of_any_size: str) -> None:
        """Raise `BackupError` unless it holds one file `of_any_size`, then just these, so large (bytes)."""
        first, *rest = self.header.files or (BackupPart("", 0),)
        if first.name != of_any_size or [(part.name, part.size) for part in rest] != list(sizes.items()):
            raise self._damaged()

    def copy(self, make: Callable[[str], BinaryIO]) -> None:
        """Copy each file to what `make(name)` opens; raise `BackupError` at the end unless all is as written.

        Nothing that was copied may be used before this returns.
        """
        for part in self.header.files:
            left = part.size
            with make(part.name) as out:
                while left:
                    data = self._file.read(min(left, _CHUNK))
                    if not data:
                        raise self._damaged()
                    self._digest.update(data)
                    out.write(data)
                    left -= len(data)
                out.flush()
                os.fsync(out.fileno())
        if self._file.read(_CHECKSUM + 1) != self._digest.digest():
            raise self._damaged()

    def _damaged(self) -> BackupError:
        return BackupError(f"the backup {self._path} is damaged or cut short: use another copy of it")
