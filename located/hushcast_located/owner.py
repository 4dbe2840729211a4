"""The owner: makes the next batch of a feed from a file of messages, and signs it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from hushcast_located.batch_folder import BatchFolder
from hushcast_located.input_lines import read_messages
from hushcast_located.owner_handover import signing_keys, take_over
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.crypto.signatures import Signed
from hushcast_protocol.base.errors import UsageError
from hushcast_protocol.spatial.batch import Batch, BatchInterval, check_batch, make_batch
from hushcast_protocol.spatial.keywords import NEWEST
from hushcast_protocol.spatial.located_answer import ProviderBatch
from hushcast_protocol.spatial.located_messages import LocatedMessage
from hushcast_protocol.spatial.places import chord
from hushcast_protocol.spatial.weight_table import WeightTable, idf, sign_again, sign_table

FAN_OUT = 4  # of a tree; proofs of 2 are as long, and trees take twice as long to make
DISTANCE = 100.0  # kilometres from which on a place counts nothing, unless the owner says otherwise


@dataclass(frozen=True)
class BatchOptions:
    """What the owner asks for: when the interval begins (`None`: as `_start` has it), and the weights."""

    seconds: int
    start: int | None = None
    fan_out: int = FAN_OUT
    max_distance: float | None = None
    """In kilometres; of new weights."""
    new_weights: bool = False
    former: Seed | None = None
    """The key that signed so far, where another is to take its place."""


def add_batch(
    seed: Seed, folder: BatchFolder, messages: Path, wanted: BatchOptions, now: int
) -> tuple[Path, Batch]:
    """Make the next batch of a folder; return its file and what was signed. Raises `UsageError`."""
    take_over(folder, seed, wanted.former)
    keys = signing_keys(folder, seed)
    newest = folder.newest()
    last = None if newest is None else folder.read(newest)[1]
    previous = None if last is None else last.batch
    start = _start(wanted, previous, now) if wanted.start is None else wanted.start
    interval = BatchInterval(start, wanted.seconds, previous)
    fresh = last is None or wanted.new_weights
    said = read_messages(messages, interval.number, NEWEST if last is None or fresh else last.table.body.rule)
    table = _table(seed, last, said, wanted, keys)
    whole = make_batch(seed, interval, table, wanted.fan_out, said)
    file = folder.write(whole, interval.number, table)
    return file, check_batch(whole.signed, seed.public())


def _start(wanted: BatchOptions, previous: Batch | None, now: int) -> int:
    """Return the beginning of the interval that it is now, or of the next that has no batch yet."""
    current = now - now % wanted.seconds
    return current if previous is None else max(current, previous.end)


def _table(
    seed: Seed,
    last: ProviderBatch | None,
    said: list[LocatedMessage],
    wanted: BatchOptions,
    keys: tuple[Signed, ...],
) -> WeightTable:
    if last is not None and not wanted.new_weights:
        if wanted.max_distance is not None:
            raise UsageError("the greatest distance is signed with the weights: give --new-weights, too")
        return last.table if last.table.whole.keys == keys else sign_again(seed, last.table, keys)
    weights, other = idf(one.words for one in said)
    version = 1 if last is None else last.table.body.version + 1
    if wanted.max_distance is not None:
        most = chord(wanted.max_distance)
    else:
        most = chord(DISTANCE) if last is None else last.table.body.most
    return sign_table(seed, version, weights, other, most, keys=keys)
