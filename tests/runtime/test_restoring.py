"""Restoring: what is damaged is set aside, told and forgotten in the end; who reads records without it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import trio

from hushcast_protocol.base.errors import DecodeError
from hushcast_runtime.storage import recovery
from hushcast_runtime.storage.changes import Change
from hushcast_runtime.storage.recovery import DAMAGED, KEPT_FOR, examine_records, number, restore, sized
from hushcast_runtime.storage.state_layout import migrate
from hushcast_runtime.storage.store import MemoryStore, SqliteStore, Store

ROOT = Path(__file__).parents[2]


def filled(*values: bytes) -> MemoryStore:
    store = MemoryStore()
    store.write_soon(*(Change("thing", bytes([place]), value) for place, value in enumerate(values)))
    return store


async def taken(store: Store, at_once: int = 2) -> list[int]:
    found: list[int] = []
    await restore(store, "thing", lambda _, value: found.append(number(value)), at_once=at_once)
    return found


def good(value: int) -> bytes:
    return value.to_bytes(8, "big")


async def kinds(store: Store) -> list[bytes]:
    return [kind for kind, _ in await store.scan(DAMAGED)]


@pytest.mark.parametrize("at_once", [1, 2, 3, 100])
async def test_what_is_damaged_is_set_aside_and_the_others_are_taken(at_once: int) -> None:
    store = filled(good(1), b"", good(2), good(3)[:-1], b"\xff" * 8, good(4))
    assert await taken(store, at_once) == [1, 2, 3 + 1]
    assert [key for key, _ in await store.scan("thing")] == [b"\0", b"\2", b"\5"]
    held = recovery._read((await store.scan(DAMAGED))[0][1])
    assert held.count == 3
    assert held.records == [(b"\1", b""), (b"\3", good(3)[:-1]), (b"\4", b"\xff" * 8)]
    assert await taken(store, at_once) == [1, 2, 4], "the next start does not meet them"
    assert recovery._read((await store.scan(DAMAGED))[0][1]).count == 3


async def test_nothing_is_written_where_nothing_is_damaged() -> None:
    store = filled(good(1), good(2))
    assert await taken(store) == [1, 2]
    assert await kinds(store) == []


@pytest.mark.parametrize("raised", [ValueError, TypeError, KeyError, IndexError, OverflowError, UnicodeError])
async def test_whatever_reading_raises_is_damage(raised: type[Exception]) -> None:
    def take(key: bytes, value: bytes) -> None:
        raise raised

    store = filled(good(1))
    await restore(store, "thing", take)
    assert await store.scan("thing") == []
    assert await kinds(store) == [b"thing"]


async def test_the_first_found_are_kept_within_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recovery, "MAX_SET_ASIDE", 24)
    store = filled(*(bytes([value]) * 10 for value in range(5)))
    assert await taken(store) == []
    held = recovery._read((await store.scan(DAMAGED))[0][1])
    assert held.count == 5
    assert held.records == [(b"\0", bytes(10)), (b"\1", b"\1" * 10)]


async def test_what_was_set_aside_is_forgotten_after_some_starts() -> None:
    store = filled(b"junk")
    await taken(store)
    for _ in range(KEPT_FOR - 1):
        await migrate(store, ())
        assert await kinds(store) == [b"thing"]
    await migrate(store, ())
    assert await kinds(store) == []


async def test_a_damaged_table_of_what_was_set_aside_is_none() -> None:
    store = filled(b"junk")
    store.write_soon(Change(DAMAGED, b"thing", b"junk"), Change(DAMAGED, b"\xff", b""))
    await taken(store)
    await migrate(store, ())
    assert recovery._read(dict(await store.scan(DAMAGED))[b"thing"]).count == 1


async def test_the_doctor_tells_kinds_and_numbers_alone(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    assert examine_records(path) == []
    store = SqliteStore(path)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(store.run)
        await store.write(Change("thing", b"secret name", b"secret"), Change("thing", b"b", b""))
        await taken(store)
        (finding,) = examine_records(path)
        nursery.cancel_scope.cancel()
    store.close()
    assert finding.verdict == "warning"
    assert "thing 2" in finding.found
    assert "secret" not in repr(finding)
    assert "hushcast admin restore" in finding.advice


@pytest.mark.parametrize("data", [b"", bytes(7), bytes(9), b"\0\1" + bytes(6), b"\xff" * 8])
def test_a_number_has_eight_bytes_of_which_the_first_two_say_nothing(data: bytes) -> None:
    with pytest.raises(DecodeError):
        number(data)


def test_sized_bytes_have_that_size() -> None:
    assert sized(b"ab", 2) == b"ab"
    with pytest.raises(DecodeError):
        sized(b"ab", 3)


READ_WITHOUT = {
    # What was signed or refused before: who forgot it would do it twice.
    "directory/hushcast_directory/server/former_rosters.py": "the last roster that a directory signed",
    "directory/hushcast_directory/client/trusted_authorities.py": "heads that it followed, and a fork",
    "directory/hushcast_directory/server/resumption.py": "for which epochs an authority has voted",
    "directory/hushcast_directory/server/restoration.py": "up to which epoch nothing more is signed",
    "directory/hushcast_directory/server/key_rotation.py": "the same, when the key changes",
    "located/hushcast_located/owner_service/message_pool.py": "up to which batch an owner has signed",
    "directory/hushcast_directory/server/succession.py": "the keys that a directory had before",
    "brokers/hushcast_brokers/tomography/broker_statements.py": "the numbers of statements",
    # What closes: without it what somebody closed or took back would be open.
    "gateway/hushcast_gateway/purposes/purpose_state.py": "reservations",
    "gateway/hushcast_gateway/purposes/withdrawals.py": "withdrawals",
    # Whose feed a state is of.
    "located/hushcast_located/service/provider_store.py": "the progress; the rest is set aside there",
    # These read no value at a start, or set aside by themselves.
    "brokers/hushcast_brokers/broker/full/handed_up_store.py": "what was judged at the start",
    "directory/hushcast_directory/server/authority_driver.py": "keys, to forget or count them",
    "directory/hushcast_directory/client/trust.py": "all of them are set aside together",
    "local/hushcast_local/devices/circle_records.py": "keys, to forget them",
    "local/hushcast_local/inbox.py": "what was judged at the start",
    "local/hushcast_local/inbox_records.py": "keys, to forget them",
    "node/hushcast_node/upgrade.py": "the layout of before",
    "overlay/hushcast_overlay/relay/lease_store.py": "the layout of before",
    "overlay/hushcast_overlay/routes/route_records.py": "the layout of before",
    "overlay/hushcast_overlay/relay/intake.py": "what was judged at the start",
    "overlay/hushcast_overlay/relay/cover/porter_records.py": "what was judged at the start",
    "local/hushcast_local/waiting_parts.py": "pieces of a message whose last one came, judged at the start",
    "overlay/hushcast_overlay/rosters.py": "keys, to forget them",
    "runtime/hushcast_runtime/processes/own_address.py": "an address that does not parse is drawn anew",
    "overlay/hushcast_overlay/relay/keepers/kept_messages.py": "bodies, judged when they are asked for",
    "runtime/hushcast_runtime/storage/kept_store.py": "messages, judged when they are asked for",
    "runtime/hushcast_runtime/storage/recovery.py": "it is what sets aside",
    "runtime/hushcast_runtime/storage/spool.py": "what was judged at the start, and bodies, which it judges",
}
"""Files that read records by themselves, and why."""
_READS = re.compile(r"\.scan\(|\bRecords\(")
_ROOMS = [
    "brokers",
    "central",
    "client",
    "directory",
    "gateway",
    "local",
    "located",
    "node",
    "overlay",
    "protocol",
    "runtime",
]


def test_nobody_else_reads_records_but_by_restoring() -> None:
    found = {
        str(path.relative_to(ROOT))
        for room in (*_ROOMS, "protocol", "runtime")
        for path in (ROOT / room).rglob("*.py")
        if _READS.search(path.read_text())
    }
    assert found == READ_WITHOUT.keys()
