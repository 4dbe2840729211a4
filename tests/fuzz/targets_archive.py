"""Targets: what an authority keeps of a network in shards, asked by anybody, and back from a damaged disk."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from fuzzing import Target
from mutating import mutate_packed
from several_bench import FIRST, NETWORK, a_set, agreed, drawn, entry
from targets_daemons import _Records, finished

from hushcast_directory.server.archive import Archive
from hushcast_directory.server.shard_days import ShardDays
from hushcast_protocol.authorities.beacon import day_of
from hushcast_protocol.authorities.directory_requests import (
    Fetch,
    RegisterRelay,
    decode_directory_answer,
    decode_directory_request,
)
from hushcast_protocol.authorities.head_inside import inside_of
from hushcast_protocol.authorities.heads import decode_head
from hushcast_protocol.authorities.listing import Listing
from hushcast_protocol.base.crypto.signatures import Signed
from hushcast_protocol.base.errors import HushcastError, PeerError
from hushcast_protocol.base.roster import descriptor_digest
from hushcast_protocol.base.sharding import Sharding
from hushcast_protocol.base.wire import encode
from hushcast_protocol.shards.guides import read_whole_piece
from hushcast_protocol.shards.shard_requests import (
    AskLeaf,
    AskPiece,
    AskSlice,
    ShardUnavailable,
    ShownLeaf,
    ShownPiece,
    ShownSlice,
)
from hushcast_protocol.shards.slices import read_leaf, read_slice
from hushcast_runtime.storage.changes import Change

TODAY, NUMBERS = day_of(FIRST), tuple(range(8))


async def compute(function: Callable[..., Any], *args: Any) -> Any:
    return function(*args)


@cache
def _known() -> dict[bytes, Signed]:
    """The descriptors of all relays, by digest."""
    signed = [entry(number, FIRST).descriptor for number in NUMBERS]
    return {descriptor_digest(one.body): one for one in signed}


def _listing() -> Listing:
    cut = drawn(FIRST, TODAY, NUMBERS, bits=2)
    return Listing(FIRST, tuple((relay, known, 0, since) for relay, known, since in cut.seats), (), (cut,))


@cache
def _served() -> tuple[Archive, _Records, Sharding]:
    """An authority's archive of a network in four shards, what is on its disk, and what the head says."""
    store: Any = _Records()
    archive, listing = Archive(NETWORK.id, store, compute), _listing()
    (certified,) = agreed(a_set(1, 1), FIRST, NUMBERS, shards=listing.shards).heads
    assert finished(archive.begin(certified, listing, _known().get))
    return archive, store, inside_of(decode_head(certified.head)).shards[0]


def _asked(data: bytes) -> object:
    """Whatever is asked, the answer is a part that the head stands for, or that there is none."""
    archive, _, sharding = _served()
    request = decode_directory_request(data)
    if isinstance(request, RegisterRelay | Fetch):
        return request
    answer = archive.part(request)
    assert decode_directory_answer(encode(answer)) == answer
    if isinstance(answer, ShardUnavailable):
        number = request.number if isinstance(request, AskPiece) else 4 * request.shard
        assert request.day != TODAY or number > 0 or isinstance(request, AskLeaf)
        return answer
    if isinstance(answer, ShownPiece):
        assert isinstance(request, AskPiece)
        read_whole_piece(answer.body, answer.path, sharding, request.number)
        return answer
    assert not isinstance(request, AskPiece)
    shown = archive.part(AskLeaf(FIRST, TODAY, request.shard))
    assert isinstance(shown, ShownLeaf)
    leaf = read_leaf(shown.leaf, shown.path, sharding, request.shard)
    if isinstance(answer, ShownSlice):
        read_slice(answer.body, leaf, sharding, NETWORK)
    return answer


def _requests() -> Iterator[bytes]:
    for number in range(5):
        yield encode(AskLeaf(FIRST, TODAY, number))
        yield encode(AskSlice(TODAY, number))
        yield encode(AskPiece(TODAY, number))


def _restored(kind: str, data: bytes) -> None:
    """A damaged record is refused, or what it held is missing, and taken when it comes again."""
    store: Any = _Records()
    store.records = {name: dict(records) for name, records in _served()[1].records.items()}
    store.write_soon(Change(kind, min(store.records[kind]), data))
    days = ShardDays(NETWORK.id, store, compute)
    finished(days.load())
    days.follow(FIRST, finished(days.made(_listing(), {}.get)))
    days.supply(_known())
    assert not days.missing
    assert isinstance(days.part(AskSlice(TODAY, 0)), ShownSlice)


def _records(kind: str) -> list[bytes]:
    return list(_served()[1].records[kind].values())


TARGETS = [
    Target("directory-parts", _asked, _requests, (PeerError,), mutate_packed),
    *(
        Target(
            f"{kind}-record",
            lambda data, kind=kind: _restored(kind, data),  # type: ignore[misc]
            lambda kind=kind: _records(kind),  # type: ignore[misc]
            (HushcastError,),
            mutate_packed,
            2,
        )
        for kind in ("cut", "cut-descriptors")
    ),
]
