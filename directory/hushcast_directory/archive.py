"""The archive: the last heads, each with the descriptors of the relays that it stands for, to be served."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import msgspec

from hushcast_protocol.authorities.heads import Certified, decode_head
from hushcast_protocol.authorities.listing import Listing
from hushcast_protocol.base.roster import Entry
from hushcast_protocol.base.signatures import Signed
from hushcast_protocol.base.wire import encode
from hushcast_runtime.store import Change, Store, record_reader

HEADS_KEPT = 48  # two days, as rosters: a daemon away for longer starts with the newest

_SHOWN = "agreed"


class Shown(msgspec.Struct, frozen=True, array_like=True):
    """A head and all that it stands for."""

    certified: Certified
    listing: Listing
    descriptors: tuple[Signed, ...]
    """In the order of the listing's seats."""

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The relays with a seat as daemons get them."""
        seats = zip(self.descriptors, self.listing.seats, strict=True)
        return tuple(Entry(signed, since) for signed, (*_, since) in seats)


_decode: Callable[[bytes], Shown] = record_reader(Shown, "head")


class _Pending(NamedTuple):
    certified: Certified
    listing: Listing
    found: dict[bytes, Signed]
    missing: set[bytes]


class Archive:
    """Heads with their relays, in memory as they are kept, and in a store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._shown: dict[int, bytes] = {}
        self._pending: _Pending | None = None

    async def load(self) -> None:
        """Read back what was kept before a restart."""
        self._shown = {int.from_bytes(key, "big"): value for key, value in await self._store.scan(_SHOWN)}

    @property
    def epochs(self) -> list[int]:
        """The epochs whose heads are kept, in order."""
        return sorted(self._shown)

    @property
    def missing(self) -> set[bytes]:
        """Digests of descriptors without which the newest head cannot be served."""
        return set() if self._pending is None else self._pending.missing

    def after(self, epoch: int | None) -> tuple[Shown | None, bool]:
        """Return the first head after an epoch, or the newest; and whether there are later ones."""
        later = [known for known in self.epochs if epoch is None or known > epoch]
        if not later:
            return None, False
        chosen = later[-1] if epoch is None else later[0]
        return _decode(self._shown[chosen]), chosen != later[-1]

    def find(self, known: bytes) -> Signed | None:
        """Return a descriptor of the newest head by its digest."""
        return None if self._pending is None else self._pending.found.get(known)

    async def begin(
        self, certified: Certified, listing: Listing, find: Callable[[bytes], Signed | None]
    ) -> bool:
        """Serve a head once all its descriptors are there; tell whether that is now. Durable on return."""
        if listing.epoch in self._shown:
            return False
        digests = [known for _, known, *_ in listing.seats]
        found = {known: signed for known in digests if (signed := find(known)) is not None}
        self._pending = _Pending(certified, listing, found, set(digests) - found.keys())
        return await self._complete()

    async def supply(self, known: bytes, signed: Signed) -> bool:
        """Take a descriptor that was checked; tell whether a head can be served now."""
        pending = self._pending
        if pending is None or known not in pending.missing:
            return False
        pending.missing.remove(known)
        pending.found[known] = signed
        return await self._complete()

    async def _complete(self) -> bool:
        pending = self._pending
        if pending is None or pending.missing:
            return False
        listing, found = pending.listing, pending.found
        descriptors = tuple(found[known] for _, known, *_ in listing.seats)
        record = encode(Shown(pending.certified, listing, descriptors))
        old = self.epochs[: max(0, len(self._shown) + 1 - HEADS_KEPT)]
        await self._store.write(
            Change(_SHOWN, epoch_key(listing.epoch), record),
            *(Change(_SHOWN, epoch_key(epoch), None) for epoch in old),
        )
        self._shown[listing.epoch] = record
        for epoch in old:
            del self._shown[epoch]
        return True


def epoch_key(epoch: int) -> bytes:
    """Return the key of an epoch's record."""
    return epoch.to_bytes(8, "big")


def epoch_of(certified: Certified) -> int:
    """Return the epoch of a head."""
    return decode_head(certified.head).epoch
