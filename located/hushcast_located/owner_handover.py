"""An owner's key hands over to another, or is revoked: what that leaves beside the batches that it signed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec.structs import replace

from hushcast_located.batch_folder import BatchFolder
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.crypto.signatures import Signed
from hushcast_protocol.base.errors import UsageError
from hushcast_protocol.spatial.batch import MAX_INTERVAL, Batch, BatchInterval, check_batch, make_batch
from hushcast_protocol.spatial.owner_keys import OwnerKeys, sign_handover
from hushcast_protocol.spatial.weight_table import sign_again
from hushcast_runtime.storage.state_layout import DATABASE
from hushcast_runtime.storage.state_lock import locked


def signing_keys(folder: BatchFolder, seed: Seed) -> tuple[Signed, ...]:
    """Return a feed's hand-overs up to this key, which signs its next batch; raise `UsageError` if not."""
    known = OwnerKeys.read(seed.public(), folder.handovers())
    if known.current is None:
        raise UsageError(
            f"the key of the batches in {folder.path} was revoked: begin another feed, with a key, a folder "
            "and a topic of its own"
        )
    if known.current != seed.public():
        raise UsageError(
            f"this key has handed over to another, for the batches in {folder.path}: name that one"
        )
    return known.signed


def take_over(folder: BatchFolder, seed: Seed, former: Seed | None) -> None:
    """Let the former key of a feed hand over to the one of now, durably, unless it has.

    Raises `UsageError` where the batches are another owner's.
    """
    if (newest := folder.newest()) is None:
        return
    signer, feed = folder.read(newest)
    known = OwnerKeys.read(signer, folder.handovers())
    if seed.public() in known.all:
        return
    if former is None or former.public() != known.current:
        raise UsageError(
            f"the batches in {folder.path} are another owner's: name a folder of your own, or, for this key "
            "to go on with them, the one that signed them as the former key"
        )
    if known.current != signer:
        raise UsageError(f"the former key has signed no batch in {folder.path} so far: let it sign one")
    handover = sign_handover(former, seed.public(), newest, feed.batch.digest)
    folder.keep_handovers(known.extended((*known.signed, handover)).signed)


def revoke(seed: Seed, folder: BatchFolder, now: int) -> Batch:
    """Sign a feed's last batch, which has no messages, and that no key follows; raise `UsageError`.

    Killed before its end it has done nothing but to sign a batch; it can be done again.
    """
    with _alone(folder.path):
        take_over(folder, seed, None)
        newest, handovers = folder.newest(), signing_keys(folder, seed)
        if newest is None:
            raise UsageError(f"there is no batch in {folder.path}: nobody follows this key so far")
        _, last = folder.read(newest)
        table = sign_again(seed, last.table, handovers)
        seconds = min(max(now - last.batch.end, 1), MAX_INTERVAL)
        interval = BatchInterval(last.batch.end, seconds, last.batch)
        whole = make_batch(seed, interval, table, last.batch.body.fan_out, ())
        batch = check_batch(whole.signed, seed.public())
        end = sign_handover(seed, None, interval.number, batch.digest)
        told = OwnerKeys.read(seed.public(), (*handovers, end)).signed
        folder.write(
            replace(whole, keys=told),
            interval.number,
            type(table)(replace(table.whole, keys=told), table.body),
        )
        folder.keep_handovers(told)
    return batch


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Hold the state that a folder of batches is part of, if it is: an owner that runs signs on."""
    state = folder.parent
    if not (state / DATABASE).exists():
        yield
        return
    with locked(state):
        yield
