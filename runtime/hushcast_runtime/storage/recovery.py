"""Recovery: reads back at a start what was kept, judged as when it came, and sets aside what is damaged.

A damaged record goes out of its kind into `DAMAGED`, in one commit, so that no start fails for it, and the
next does not meet it again. What must not be lost in silence, as what somebody has signed, is read without
this and ends the start (docs/decisions/0043-damaged-records.md).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from hushcast_protocol.base.errors import DecodeError, HushcastError
from hushcast_protocol.base.findings import Finding, warning
from hushcast_protocol.base.record_kinds import RecordKind, StateOwner
from hushcast_runtime.environment import Compute
from hushcast_runtime.logs import log
from hushcast_runtime.storage.changes import Change
from hushcast_runtime.storage.store import AT_ONCE, Store, StoreError, read_records

MAX_SET_ASIDE = 64 * 1024  # bytes of one kind that are kept to be looked at; of more only the number is
KEPT_FOR = 8  # starts: whoever looks after the daemon has seen it by then, and what is old is to go
DAMAGED = RecordKind(
    "damaged",
    StateOwner.EVERY_PROGRAM,
    holds="damaged records that a start met",
    lifetime=f"{KEPT_FOR} starts",
    bound=f"{MAX_SET_ASIDE // 1024} KiB of each kind",
)
"""The kind of what was set aside: a record for each kind, by its name."""

_ABOVE = 2**48  # as `wire.Counter`

_WRONG = (HushcastError, ValueError, TypeError, LookupError, ArithmeticError)
"""What reading bytes that nobody wrote may raise."""

Take = Callable[[bytes, bytes], object]
"""Takes up a record, by key and value, or raises, having changed nothing, if it is damaged."""


class _SetAside(msgspec.Struct, frozen=True, array_like=True):
    """What was set aside of one kind; the first found are kept, which are the nearest to the cause."""

    count: int
    starts: int
    """Since the last one was found."""
    records: list[tuple[bytes, bytes]]


_decoder = msgspec.msgpack.Decoder(_SetAside)
_encode = msgspec.msgpack.Encoder().encode


async def restore(
    store: Store,
    kind: RecordKind,
    take: Take,
    prefix: bytes = b"",
    at_once: int = AT_ONCE,
    compute: Compute | None = None,
) -> None:
    """Have `take` take up all records of a kind, in order of their keys, `at_once` in one read.

    Those for which it raises are set aside, durably on return. With `compute` each is taken up by it, one
    after the other: where one alone takes long.
    """
    after: bytes | None = None
    count = 0
    while records := await store.scan(kind, prefix, after, at_once):
        damaged = []
        for key, value in records:
            if compute is None:
                is_taken = _is_taken(take, key, value)
            else:
                is_taken = await compute(_is_taken, take, key, value)
            if not is_taken:
                damaged.append((key, value))
        if damaged:
            await set_aside(store, kind, damaged)
        count += len(damaged)
        after = records[-1][0]
    tell(kind, count)


def sized(data: bytes, size: int) -> bytes:
    """Return bytes of a key or value that has just so many; raise `DecodeError` for others."""
    if len(data) != size:
        raise DecodeError("a record has another size")
    return data


def number(data: bytes) -> int:
    """Return a number of 8 bytes, as of a day, which has none of the first two; raise `DecodeError`."""
    found = int.from_bytes(sized(data, 8), "big")
    if found >= _ABOVE:
        raise DecodeError("a number is too large")
    return found


def tell(kind: RecordKind, count: int) -> None:
    """Log that records of a kind were set aside, if any were."""
    if count:
        log.warning("damaged records were set aside", kind=kind, count=count)


async def set_aside(store: Store, kind: RecordKind, damaged: Sequence[tuple[bytes, bytes]]) -> None:
    """Move damaged records out of their kind; durable on return."""
    held = _read(dict(await store.scan(DAMAGED, kind.encode())).get(kind.encode(), b""))
    records = held.records
    room = MAX_SET_ASIDE - sum(len(key) + len(value) for key, value in records)
    for key, value in damaged:
        if (room := room - len(key) - len(value)) < 0:
            break
        records.append((key, value))
    kept = _SetAside(held.count + len(damaged), 0, records)
    gone = (Change(kind, key, None, len(value)) for key, value in damaged)
    await store.write(Change(DAMAGED, kind.encode(), _encode(kept)), *gone)


async def grow_older(store: Store) -> None:
    """Begin another start: what was set aside `KEPT_FOR` starts ago is forgotten."""
    changes = []
    for kind, value in await store.scan(DAMAGED):
        held = _read(value)
        kept = msgspec.structs.replace(held, starts=held.starts + 1)
        changes.append(Change(DAMAGED, kind, _encode(kept) if kept.starts < KEPT_FOR else None))
    if changes:
        await store.write(*changes)


def examine_records(database: Path) -> list[Finding]:
    """Look at what was set aside in a database, in use or not; there is nothing to say as a rule."""
    try:
        records = read_records(database, DAMAGED) if database.exists() else []
    except (StoreError, OSError):
        records = []  # whoever looks at the state tells of that
    held = [(kind.decode(errors="replace"), _read(value)) for kind, value in records]
    if not held:
        return []
    told = ", ".join(f"{kind} {one.count}" for kind, one in held)
    return [
        warning(
            "records",
            f"damaged ones were set aside ({told})",
            "look at the disk; restore a backup with `hushcast admin restore` if what they held is missed: "
            f"after {KEPT_FOR} starts they are forgotten",
        )
    ]


def _is_taken(take: Take, key: bytes, value: bytes) -> bool:
    try:
        take(key, value)
    except _WRONG:
        return False
    return True


def _read(value: bytes) -> _SetAside:
    try:
        return _decoder.decode(value)
    except msgspec.MsgspecError:
        return _SetAside(0, 0, [])  # none yet, or damaged itself
