"""A porter's records: its places, the letters that wait in them, and the lists for daemons that are away."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated

import msgspec

from hushcast_protocol.base.crypto.hashes import DIGEST
from hushcast_protocol.base.errors import DecodeError
from hushcast_protocol.base.record_kinds import RecordKind, StateOwner
from hushcast_protocol.base.wire import Counter, RelayId, encode
from hushcast_protocol.cover.cover_frames import LanePaper
from hushcast_protocol.cover.lane_seconds import LANES
from hushcast_protocol.cover.letters import LETTER
from hushcast_protocol.cover.porter_blocks import MAX_BLOCKS_KEPT
from hushcast_protocol.cover.porter_queue import MAX_LETTERS_WAITING
from hushcast_protocol.cover.receipt_list import BLOCK
from hushcast_protocol.cover.waybills import WAYBILL
from hushcast_runtime.storage.changes import Change
from hushcast_runtime.storage.recovery import number, restore, sized
from hushcast_runtime.storage.store import Store, record_reader

MAX_PLACES = 64  # daemons of one porter; 620 MB. Twenty are the mean at 10,000 daemons and 500 relays

_PLACE = RecordKind(
    "cover-place",
    StateOwner.RELAY,
    holds="the daemons that it is the porter of: their waybills, when their letters begin, their last round",
    lifetime="two to four days without the daemon",
    bound=f"{MAX_PLACES}",
)
_LETTER = RecordKind(
    "cover-letter",
    StateOwner.RELAY,
    holds="letters that wait for their rounds at their porter, sealed as they came",
    lifetime="until the end of the round in which they are due, within a day",
    bound=f"{MAX_LETTERS_WAITING} of each daemon, 2.5 MB",
)
_BLOCK = RecordKind(
    "cover-block",
    StateOwner.RELAY,
    holds="lists of receipts for its daemons, sealed to them",
    lifetime="three days",
    bound=f"{MAX_BLOCKS_KEPT} of each daemon, 1.8 MB",
)
_BILLS = RecordKind(
    "cover-bills",
    StateOwner.RELAY,
    holds="the bills of its daemons' lanes, sealed as they came, and to which seconds they are shown",
    lifetime="as long as the daemon's place, or until others take their place",
    bound=f"{MAX_PLACES}",
)
_LANES = RecordKind(
    "cover-lanes",
    StateOwner.RELAY,
    holds="blocks of its daemons' lanes, sealed to them, or random",
    lifetime="three days",
    bound=f"{MAX_BLOCKS_KEPT} of each daemon, 5.3 MB",
)
_ROUND = 8  # bytes
_INDEX = 1  # byte: which letter of a round
_READ_AT_ONCE = 64  # records of 4 KiB; letters are opened, 10 ms of them


class PlaceRecord(msgspec.Struct, frozen=True, array_like=True):
    """A place as it lies in the store."""

    second: RelayId
    waybill: Annotated[bytes, msgspec.Meta(min_length=WAYBILL, max_length=WAYBILL)]
    begins: Counter
    patience: Counter
    last_there: Counter


class BillsRecord(msgspec.Struct, frozen=True, array_like=True):
    """The bills of a place, as they lie in the store."""

    told: Counter
    """The round in which they were told."""
    bills: Annotated[tuple[tuple[RelayId, LanePaper], ...], msgspec.Meta(min_length=LANES, max_length=LANES)]


_decode = record_reader(PlaceRecord, "place")
_decode_bills = record_reader(BillsRecord, "bills of lanes")


def place_change(place: bytes, record: PlaceRecord | None) -> Change:
    """Return the change that keeps a place, or forgets it."""
    return Change(_PLACE, place, None if record is None else encode(record))


def letter_key(place: bytes, came: int, index: int) -> bytes:
    """Return the key of a letter, by the round in which it came and its place among those of the round."""
    return place + came.to_bytes(_ROUND, "big") + bytes([index])


def letter_change(key: bytes, sealed: bytes | None) -> Change:
    """Return the change that keeps a letter as it came, or forgets it."""
    return Change(_LETTER, key, sealed)


def block_change(place: bytes, round_: int, block: tuple[int, bytes] | None) -> Change:
    """Return the change that keeps the list which a round's blocks have, or forgets it."""
    value = None if block is None else block[0].to_bytes(_ROUND, "big") + block[1]
    return Change(_BLOCK, place + round_.to_bytes(_ROUND, "big"), value)


def bills_change(place: bytes, record: BillsRecord | None) -> Change:
    """Return the change that keeps the bills of a place, or forgets them."""
    return Change(_BILLS, place, None if record is None else encode(record))


def lanes_change(place: bytes, round_: int, blocks: Sequence[bytes] | None) -> Change:
    """Return the change that keeps what a round's blocks have of lanes, or forgets it."""
    value = None if blocks is None else b"".join(blocks)
    return Change(_LANES, place + round_.to_bytes(_ROUND, "big"), value)


async def kept_lanes(store: Store, place: bytes, round_: int) -> list[bytes] | None:
    """Return what a round's blocks have of lanes, in their order; `None`: nothing is kept."""
    records = await store.scan(_LANES, place + round_.to_bytes(_ROUND, "big"))
    return _lanes(records[0][1]) if records else None


async def kept_block(store: Store, place: bytes, round_: int) -> tuple[int, bytes] | None:
    """Return the list that a round's blocks have, and of which round it is; `None`: it has none."""
    records = await store.scan(_BLOCK, place + round_.to_bytes(_ROUND, "big"))
    return _block(records[0][1]) if records else None


async def load_places(
    store: Store,
    take_place: Callable[[bytes, PlaceRecord], None],
    take_letter: Callable[[bytes, int, bytes, bytes], None],
    take_block: Callable[[bytes, int], None],
    take_bills: Callable[[bytes, BillsRecord], None],
    take_lanes: Callable[[bytes, int], None],
) -> None:
    """Read back all places, and then what is kept for them; what takes raises sets a record aside."""
    await restore(store, _PLACE, lambda key, value: take_place(sized(key, DIGEST), _decode(value)))

    def letter(key: bytes, value: bytes) -> None:
        sized(key, DIGEST + _ROUND + _INDEX)
        came = number(key[DIGEST : DIGEST + _ROUND])
        take_letter(key[:DIGEST], came, key, sized(value, LETTER))

    def block(key: bytes, value: bytes) -> None:
        sized(key, DIGEST + _ROUND)
        _block(value)
        take_block(key[:DIGEST], number(key[DIGEST:]))

    def lanes(key: bytes, value: bytes) -> None:
        sized(key, DIGEST + _ROUND)
        _lanes(value)
        take_lanes(key[:DIGEST], number(key[DIGEST:]))

    await restore(store, _LETTER, letter, at_once=_READ_AT_ONCE)
    await restore(store, _BLOCK, block, at_once=_READ_AT_ONCE)
    await restore(store, _BILLS, lambda key, value: take_bills(sized(key, DIGEST), _decode_bills(value)))
    await restore(store, _LANES, lanes, at_once=_READ_AT_ONCE)


def _lanes(value: bytes) -> list[bytes]:
    if len(value) != LANES * BLOCK:
        raise DecodeError("blocks of lanes are kept of another size")
    return [value[begin : begin + BLOCK] for begin in range(0, len(value), BLOCK)]


def _block(value: bytes) -> tuple[int, bytes]:
    listed, sealed = value[:_ROUND], value[_ROUND:]
    if len(sealed) != BLOCK:
        raise DecodeError("a list is kept of another size")
    return number(listed), sealed
