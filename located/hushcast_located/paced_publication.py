"""What goes out: wholes in parts; a provider's at a pace that the daemon's outbox bears."""

from __future__ import annotations

from collections.abc import Sequence

import trio

import hushcast
from hushcast_located.batch_folder import BatchFolder
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.errors import UsageError
from hushcast_protocol.base.wire import Wire, encode
from hushcast_protocol.spatial.message_parts import cut
from hushcast_protocol.spatial.owner_keys import OwnerKeys
from hushcast_runtime.counters import Counters
from hushcast_runtime.logs import log

FIRST_WAIT, LONGEST_WAIT = 0.5, 30.0  # seconds until a daemon whose outbox is full is asked again


async def send(daemon: hushcast.Daemon, link: str, whole: Wire | bytes, counters: Counters) -> None:
    """Publish a whole; return once all of its parts are on the daemon's disk, however long that takes."""
    for part in cut(whole if isinstance(whole, bytes) else encode(whole)):
        await send_part(daemon, link, part, counters)


async def send_part(
    daemon: hushcast.Daemon,
    link: str,
    part: bytes,
    counters: Counters,
    author: hushcast.Author | None = None,
    token: bytes | None = None,
) -> None:
    """Publish one message; return once it is on the daemon's disk, however long that takes.

    With a `token` that was given before it is not published again.
    """
    wait = FIRST_WAIT
    while True:
        try:
            await daemon.enqueue(link, part, author=author, token=token)
            return
        except hushcast.Refusal:
            counters.add("outbox_full")
            if wait == FIRST_WAIT:
                log.info("the daemon's outbox is full: going on as it empties")
        await trio.sleep(wait)
        wait = min(2 * wait, LONGEST_WAIT)


def to_publish(
    seed: Seed, folder: BatchFolder, number: int | None, with_table: bool | None
) -> tuple[int, list[bytes]]:
    """Return the number of an owner's batch, the newest unless given, and the messages that carry it.

    The table of weights goes first, if asked for; with `None`, if the batch before was by another. Raises
    `UsageError`.
    """
    chosen = folder.chosen(number)
    owner, feed = folder.read(chosen)
    if seed.public() not in OwnerKeys.read(owner, folder.handovers()).all:
        raise UsageError(f"the batches in {folder.path} are another owner's: name the key that signed them")
    if with_table is None:
        with_table = chosen == 1 or folder.read(chosen - 1)[1].table.digest != feed.table.digest
    wholes = [encode(feed.table.whole)] if with_table else []
    return chosen, [part for whole in (*wholes, folder.data(chosen)) for part in cut(whole)]


async def publish(daemon: hushcast.Daemon, link: str, seed: Seed, parts: Sequence[bytes]) -> None:
    """Hand an owner's messages to the daemon, signed; raises what `Daemon.enqueue` does."""
    for part in parts:
        await daemon.enqueue(link, part, author=hushcast.Author(seed))
