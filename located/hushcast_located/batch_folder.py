"""A folder with a feed's batches, tables of weights, and hand-overs of keys: `3.batch`, `1.table`, `keys`."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from hushcast_protocol.base.crypto.signatures import Signed
from hushcast_protocol.base.errors import PeerError, UsageError
from hushcast_protocol.base.wire import encode
from hushcast_protocol.spatial.batch import MAX_BATCH, Batch, WholeBatch, read_batch
from hushcast_protocol.spatial.located_answer import ProviderBatch
from hushcast_protocol.spatial.owner_keys import decode_handovers
from hushcast_protocol.spatial.weight_table import MAX_TABLE, WeightTable, read_table
from hushcast_runtime.files import read_most


@dataclass(frozen=True)
class BatchFolder:
    """The batches in a folder, which need not be there yet."""

    path: Path

    def newest(self) -> int | None:
        """Return the number of the newest batch, `None` where there is none."""
        return max(self.numbers(), default=None)

    def oldest(self) -> int | None:
        """Return the number of the oldest batch that is still there, `None` where there is none."""
        return min(self.numbers(), default=None)

    def numbers(self) -> list[int]:
        """Return the numbers of the batches that are there."""
        if not self.path.is_dir():
            return []
        return [int(file.stem) for file in self.path.glob("*.batch") if file.stem.isdecimal()]

    def chosen(self, number: int | None) -> int:
        """Return a number, the newest batch's unless one is given; raise `UsageError` if there is none."""
        found = self.newest() if number is None else number
        if found is None:
            raise UsageError(
                f"there is no batch in {self.path}: `hushcast located batch --out {self.path}` makes one"
            )
        return found

    def read(self, number: int) -> tuple[bytes, ProviderBatch]:
        """Return the owner, and a batch with its tree and table; raise `UsageError`."""
        file, data = self.path / f"{number}.batch", self.data(number)
        try:
            owner, batch, root = read_batch(data)
        except PeerError as error:
            raise UsageError(f"{file} is no batch as its owner made it: {error}") from None
        return owner, ProviderBatch(batch, root, self._table(batch, owner))

    def data(self, number: int) -> bytes:
        """Return a batch as it was written; raise `UsageError`."""
        return read_most(self.path / f"{number}.batch", MAX_BATCH)

    def handovers(self) -> tuple[Signed, ...]:
        """Return the hand-overs of the owner's keys, the oldest first; raise `UsageError`."""
        if not self._keys.exists():
            return ()
        try:
            return decode_handovers(read_most(self._keys, MAX_BATCH))
        except PeerError as error:
            raise UsageError(f"{self._keys} is damaged: restore it from a backup ({error})") from None

    def keep_handovers(self, handovers: tuple[Signed, ...]) -> None:
        """Write the hand-overs of the owner's keys, durably; raise `UsageError`."""
        write_whole(self._keys, encode(handovers), replace=True)

    @property
    def _keys(self) -> Path:
        return self.path / "keys"

    def _table(self, batch: Batch, owner: bytes) -> WeightTable:
        file = self._table_file(batch.body.version)
        data = read_most(file, MAX_TABLE)
        try:
            table = read_table(data, owner)
        except PeerError as error:
            raise UsageError(f"{file} is no table as its owner made it: {error}") from None
        if table.digest != batch.body.table:
            raise UsageError(f"{file} is not the table of batch {batch.body.number}")
        return table

    def write(self, batch: WholeBatch, number: int, table: WeightTable) -> Path:
        """Write a batch and its table, and return where the batch lies; raise `UsageError`.

        A batch with this number that is there already stays: two with one number would be two stories.
        """
        make_folder(self.path)
        file, of_table = self.path / f"{number}.batch", self._table_file(table.body.version)
        whole = encode(table.whole)
        # A table that no batch has yet is there where whoever wrote it was killed before its batch.
        is_left = of_table.exists() and not file.exists() and of_table.read_bytes() != whole
        if is_left or not of_table.exists():
            write_whole(of_table, whole, replace=is_left)
        return write_whole(file, encode(batch))

    def _table_file(self, version: int) -> Path:
        return self.path / f"{version}.table"


def make_folder(path: Path) -> None:
    """Make a folder that may be there already; raise `UsageError`."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{path} cannot be made: {error.strerror}") from None


def write_whole(file: Path, data: bytes, replace: bool = False, durable: bool = True) -> Path:
    """Write a file so that it is there whole or not at all; raise `UsageError` where there is one already.

    What is not `durable` may be cut off where the machine loses power: it can be made again, and the disk is
    not waited for.
    """
    fresh = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        with fresh.open("wb") as stream:
            stream.write(data)
            if durable:
                stream.flush()
                os.fsync(stream.fileno())
        if replace:
            fresh.replace(file)
        else:
            os.link(fresh, file)
    except FileExistsError:
        raise UsageError(f"{file} is there already: somebody else makes batches in this folder") from None
    except OSError as error:
        raise UsageError(f"{file} cannot be written: {error.strerror}") from None
    finally:
        with suppress(FileNotFoundError):
            fresh.unlink()
    return file
