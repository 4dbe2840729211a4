"""Commits of changes: what they write is what their changes say, one after the other."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hushcast_protocol.base.record_kinds import RecordKind, StateOwner
from hushcast_protocol.base.wire import encode
from hushcast_protocol.content.hops import HopMessage
from hushcast_protocol.content.messages import TRAIL_SIZE, Message
from hushcast_protocol.overlay.hops import relay_hop
from hushcast_runtime.storage.changes import Change, Commit, packed
from hushcast_runtime.storage.spool import Spool
from hushcast_runtime.storage.store import MemoryStore, SqliteStore, read_records

KINDS = [RecordKind(name, StateOwner.RELAY, holds="", lifetime="") for name in "ab"]
STEP = st.tuples(
    st.sampled_from(["put", "delete", "commit"]), st.integers(0, 1), st.integers(0, 3), st.booleans()
)


def message(number: int) -> Message:
    return Message(number.to_bytes(32, "big"), 7, (b"t" * 16,), bytes(TRAIL_SIZE), b"body of %d" % number)


@settings(max_examples=300)
@given(st.lists(STEP, max_size=40))
def test_a_store_holds_what_its_changes_say_however_they_are_cut_into_commits(
    steps: list[tuple[str, int, int, bool]],
) -> None:
    expected: dict[tuple[str, bytes], bytes] = {}
    stored: dict[tuple[str, bytes], bytes] = {}
    used: set[tuple[str, bytes]] = set()
    commit = Commit()
    for number, (what, kind, place, is_wire) in enumerate([*steps, ("commit", 0, 0, False)]):
        key = (KINDS[kind], b"%d" % place)
        if what == "put":
            value = message(number) if is_wire else b"%d" % number
            commit.add([Change(*key, value, is_new=key not in used)])
            expected[key] = packed(value)
            used.add(key)
        elif what == "delete":
            commit.add([Change(*key, None)])
            expected.pop(key, None)
        else:
            assert len(commit) == len(list(commit.puts())) + sum(len(keys) for _, keys in commit.gone())
            stored |= {(one, name): record for one, name, record in commit.puts()}
            for one, names in commit.gone():
                for name in names:
                    stored.pop((one, name), None)
            assert commit.size >= 0
            assert bool(commit.size) == bool(len(commit)) or commit.size > 0
            commit = Commit()
    assert stored == expected


def test_what_is_not_bytes_is_encoded_when_it_is_written_or_read(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "state.db")
    store.write_soon(Change(KINDS[0], b"key", message(1), 100))
    store.close()
    assert read_records(tmp_path / "state.db", KINDS[0]) == [(b"key", encode(message(1)))]


async def test_a_store_in_memory_gives_back_what_a_disk_would() -> None:
    store = MemoryStore()
    store.write_soon(Change(KINDS[0], b"key", message(1), 100))
    assert await store.scan(KINDS[0]) == [(b"key", encode(message(1)))]


@pytest.mark.parametrize("hops", [1, 3])
def test_messages_acknowledged_before_the_commit_are_never_on_disk(tmp_path: Path, hops: int) -> None:
    """Neither they nor, where several wait for one, its body or the references to it."""
    path = tmp_path / "state.db"
    store = SqliteStore(path)
    spool = Spool(store)
    sends = [HopMessage(relay_hop(bytes([hop]) * 32), message(n)) for n in range(50) for hop in range(hops)]
    placed = [item for _, item in spool.put(sends)]
    spool.done([item for item in placed if item.message != message(49)])
    assert len(store._commits[-1]) == (1 if hops == 1 else hops + 1)
    store.close()
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT count(*) FROM records WHERE kind = 'spool'").fetchone() == (hops,)
    assert b"body of 3" not in b"".join(file.read_bytes() for file in tmp_path.iterdir())


def test_what_was_committed_before_is_deleted(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    store = SqliteStore(path)
    spool = Spool(store)
    placed = spool.put([HopMessage(relay_hop(b"h" * 32), message(number)) for number in range(3)])
    store._commit(store._take())
    spool.done([item for _, item in placed])
    store.close()
    assert read_records(path, RecordKind("spool", StateOwner.RELAY, holds="", lifetime="")) == []
