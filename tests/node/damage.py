"""Damages the records of a daemon that is stopped, as a disk that lost or mixed up blocks does."""

from __future__ import annotations

from collections.abc import Iterable

from hushcast_runtime.storage.changes import Change, packed
from hushcast_runtime.storage.recovery import DAMAGED
from hushcast_runtime.storage.store import MemoryStore

WAYS = ("truncated", "flipped", "foreign")
FOREIGN = ((b"", b""), (b"x", b"junk"), (b"\xff" * 40, b"\xc1" * 64), (b"a" * 41, bytes(8)))
"""Records that no daemon wrote."""


def damage(store: MemoryStore, way: str, kinds: Iterable[str], spared: Iterable[str] = ()) -> set[str]:
    """Damage a record of each kind in a store, or of all `kinds`, but the `spared`; return which kinds."""
    found = ({*kinds} if way == "foreign" else {*store._records}) - {*spared, DAMAGED}
    for kind in sorted(found):
        for key, value in FOREIGN if way == "foreign" else _first(store, kind):
            if way == "truncated":
                value = value[: len(value) // 2]
            elif way == "flipped":
                value = (
                    value[: len(value) // 2]
                    + bytes(b ^ 4 for b in value[len(value) // 2 :][:1])
                    + value[len(value) // 2 + 1 :]
                )
            store.write_soon(Change(kind, key, value))
    return found


def set_aside(store: MemoryStore) -> set[str]:
    """Return the kinds of what was set aside."""
    return {kind.decode() for kind in store._records.get(DAMAGED, {})}


def _first(store: MemoryStore, kind: str) -> list[tuple[bytes, bytes]]:
    return [(key, packed(value)) for key, value in store._records[kind].items() if value != b""][:1]
