"""Backups: a consistent copy of a living state, and a restoring that takes it whole or changes nothing."""

from __future__ import annotations

import io
import os
import sqlite3
import tarfile
from pathlib import Path

import msgspec
import pytest
import trio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hushcast_protocol.base.errors import HushcastError, UsageError
from hushcast_protocol.base.roster import Network
from hushcast_runtime.storage.backup import make_backup, restore_backup
from hushcast_runtime.storage.backup_format import (
    MAX_HEADER,
    BackupError,
    BackupHeader,
    BackupPart,
    write_backup,
)
from hushcast_runtime.storage.changes import Change
from hushcast_runtime.storage.state_directory import StateKind, check_keys
from hushcast_runtime.storage.state_layout import DATABASE, kept_version
from hushcast_runtime.storage.state_lock import locked
from hushcast_runtime.storage.store import SqliteStore, StoreError

pytestmark = pytest.mark.usefixtures("open_umask")

NETWORK = Network("test", "hardened", 3600)
RELAY = StateKind("relay", NETWORK, ("identity.key", "parcel.key"), 3)
CLIENT = StateKind("client", NETWORK, (), 3)
NOW = 1_800_000_000.5
KEYS = {name: bytes([number]) * 32 for number, name in enumerate(RELAY.keys)}


async def fill(path: Path, records: int = 20, version: int = 2) -> None:
    path.mkdir(mode=0o700)
    for name, key in KEYS.items():
        (path / name).write_bytes(key)
    store = SqliteStore(path / DATABASE)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(store.run)
        await store.advance(version, *(Change("k", b"%d" % n, b"v" * n) for n in range(records)))
        nursery.cancel_scope.cancel()
    store.close()


def records(state: Path) -> list[tuple[bytes, bytes]]:
    database = sqlite3.connect(state / DATABASE)
    try:
        return database.execute("SELECT key, value FROM records ORDER BY key").fetchall()
    finally:
        database.close()


def tree(folder: Path) -> dict[str, bytes]:
    """Everything in a folder but locks, and SQLite's index of the log, which every reader may make anew."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != "lock" and not path.name.endswith("-shm")
    }


@pytest.fixture
def state(tmp_path: Path) -> Path:
    trio.run(fill, tmp_path / "state")
    return tmp_path / "state"


@pytest.fixture
def backup(state: Path, tmp_path: Path) -> Path:
    make_backup(state, RELAY, NOW, tmp_path / "backup", force=False)
    return tmp_path / "backup"


def test_what_is_restored_is_what_was_there(state: Path, backup: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    header, aside = restore_backup(backup, other, RELAY, NOW, force=False)
    assert (header.role, header.version, header.made, aside) == ("relay", 2, 1_800_000_000, None)
    assert {name: (other / name).read_bytes() for name in KEYS} == KEYS
    made = [path for path in other.iterdir() if path.name != "lock"]
    assert {path.name for path in made} == {DATABASE, *KEYS}
    assert {path.stat().st_mode & 0o777 for path in made} == {0o600}
    assert records(other) == records(state)
    assert kept_version(other) == 2
    assert (backup.stat().st_mode & 0o777, other.stat().st_mode & 0o777) == (0o600, 0o700)


async def test_a_store_that_is_written_to_is_copied_as_it_is_at_one_moment(tmp_path: Path) -> None:
    """Each commit writes the same number twice; a backup never holds two different ones."""
    await fill(tmp_path / "state", 0)
    store = SqliteStore(tmp_path / "state" / DATABASE)
    numbers = []

    async def write() -> None:
        for number in range(10_000):
            value = b"%d" % number * 2000
            await store.write(Change("k", b"first", value), Change("k", b"last", value))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(store.run)
        await store.write(Change("k", b"first", b"0" * 2000), Change("k", b"last", b"0" * 2000))
        nursery.start_soon(write)
        for number in range(8):
            out = tmp_path / f"backup-{number}"
            await trio.to_thread.run_sync(make_backup, tmp_path / "state", RELAY, NOW, out, False)
            restore_backup(out, tmp_path / f"restored-{number}", RELAY, NOW, force=False)
            (_, first), (_, last) = records(tmp_path / f"restored-{number}")
            assert first == last
            numbers.append(first)
        nursery.cancel_scope.cancel()
    store.close()
    assert len(set(numbers)) > 1, "the daemon went on writing"


def test_a_backup_is_never_overwritten_unasked(state: Path, backup: Path) -> None:
    before = backup.read_bytes()
    with pytest.raises(UsageError, match=r"exists.*--force"):
        make_backup(state, RELAY, NOW, backup, force=False)
    assert backup.read_bytes() == before
    make_backup(state, RELAY, NOW + 1, backup, force=True)
    assert backup.read_bytes() != before
    assert [path.name for path in backup.parent.iterdir() if "part" in path.name] == []


def test_what_is_no_file_is_not_overwritten_even_with_force(state: Path, tmp_path: Path) -> None:
    link, folder = tmp_path / "link", tmp_path / "folder"
    link.symlink_to(state / DATABASE)
    folder.mkdir()
    before = tree(state)
    for out in (link, folder, Path("/dev/null")):
        with pytest.raises(UsageError, match="is not a file"):
            make_backup(state, RELAY, NOW, out, force=True)
    assert tree(state) == before


def test_where_no_backup_can_be_made(state: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no state"):
        make_backup(tmp_path / "nowhere", RELAY, NOW, tmp_path / "b", force=False)
    with pytest.raises(UsageError, match="cannot be made"):
        make_backup(state, RELAY, NOW, tmp_path / "no" / "folder" / "b", force=False)
    (state / "parcel.key").write_bytes(bytes(33))
    with pytest.raises(UsageError, match=r"parcel\.key should hold 32 bytes"):
        make_backup(state, RELAY, NOW, tmp_path / "b", force=False)
    (state / "parcel.key").unlink()
    (state / "parcel.key").symlink_to("/etc/passwd")
    with pytest.raises(UsageError, match=r"parcel\.key cannot be read"):
        make_backup(state, RELAY, NOW, tmp_path / "b", force=False)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["state"]


def test_a_damaged_database_makes_no_backup(state: Path, tmp_path: Path) -> None:
    whole = (state / DATABASE).read_bytes()
    (state / DATABASE).write_bytes(whole[:4096] + b"\xa5" * 200 + whole[4296:])
    with pytest.raises(BackupError, match=r"damaged|cannot be read"):
        make_backup(state, RELAY, NOW, tmp_path / "b", force=False)
    assert not (tmp_path / "b").exists()


def test_one_that_was_interrupted_is_told_of(state: Path, tmp_path: Path) -> None:
    (tmp_path / "b.part").mkdir()
    with pytest.raises(UsageError, match=r"b\.part exists.*remove it"):
        make_backup(state, RELAY, NOW, tmp_path / "b", force=False)


def test_a_state_that_is_there_is_moved_aside_only_if_asked(backup: Path, state: Path) -> None:
    before = tree(state)
    with pytest.raises(UsageError, match=r"holds a state already.*--force"):
        restore_backup(backup, state, RELAY, NOW, force=False)
    assert tree(state) == before
    (state / "author.key").write_bytes(b"of a person")
    asides = [restore_backup(backup, state, RELAY, NOW, force=True)[1] for _ in range(2)]
    assert [aside.name for aside in asides if aside] == [
        "replaced-20270115T080000Z",
        "replaced-20270115T080000Z-2",
    ]
    assert tree(asides[0]) == before
    assert (state / "author.key").read_bytes() == b"of a person"


@pytest.mark.parametrize("moves", range(6))
def test_one_that_is_stopped_in_between_leaves_no_keys_without_their_records(
    backup: Path, state: Path, moves: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A directory with its key would sign anew: what it may have signed is noted in the records."""
    replace, moved = Path.replace, 0

    def stopped(path: Path, to: Path) -> None:
        nonlocal moved
        if moved == moves:
            raise KeyboardInterrupt
        moved += 1
        replace(path, to)

    monkeypatch.setattr(Path, "replace", stopped)
    with pytest.raises(KeyboardInterrupt):
        restore_backup(backup, state, RELAY, NOW, force=True)
    monkeypatch.undo()
    held = [name for name in RELAY.keys if (state / name).exists()]
    if kept_version(state) == 0:
        assert held == [], "it would begin anew under them"
    elif len(held) < len(RELAY.keys):
        with pytest.raises(UsageError, match="is gone"):
            check_keys(state, RELAY.keys)
    restore_backup(backup, state, RELAY, NOW, force=True)
    assert {name: (state / name).read_bytes() for name in KEYS} == KEYS


def test_a_daemon_that_runs_keeps_its_state(backup: Path, state: Path) -> None:
    before = tree(state)
    with locked(state), pytest.raises(UsageError, match=r"another daemon is running.*stop it"):
        restore_backup(backup, state, RELAY, NOW, force=True)
    assert tree(state) == before


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        (CLIENT, "of a relay, and the configuration is of a client"),
        (StateKind("relay", Network("other", "hardened", 3600), RELAY.keys, 3), "another network"),
        (StateKind("relay", Network("test", "paper", 3600), RELAY.keys, 3), "another network"),
        (StateKind("relay", NETWORK, RELAY.keys, 1), "version 2, and this program knows versions up to 1"),
    ],
    ids=["role", "network", "profile", "version"],
)
def test_what_does_not_fit_is_refused(backup: Path, tmp_path: Path, kind: StateKind, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        restore_backup(backup, tmp_path / "other", kind, NOW, force=False)
    assert not (tmp_path / "other").exists()


def refused(data: bytes, folder: Path) -> str:
    """Restore from these bytes, see that nothing comes of it, and return what is said."""
    bad, other = folder / "bad", folder / "inside" / "other"
    bad.write_bytes(data)
    with pytest.raises(HushcastError) as caught:
        restore_backup(bad, other, RELAY, NOW, force=False)
    assert isinstance(caught.value, BackupError | UsageError | StoreError)
    written = [path for path in folder.rglob("*") if path.is_file() and path.name != "lock"]
    assert sorted(path.name for path in written if path != bad and "state" not in path.parts) == ["backup"]
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.slow
def test_every_cut_is_found(backup: Path, tmp_path: Path) -> None:
    whole = backup.read_bytes()
    for size in [*range(400), *range(400, len(whole), 997), len(whole) - 1]:
        refused(whole[:size], tmp_path)
    refused(whole + b"\0", tmp_path)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(place=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
def test_every_flipped_bit_is_found(backup: Path, tmp_path: Path, place: float, bit: int) -> None:
    whole = bytearray(backup.read_bytes())
    whole[int(place * len(whole))] ^= 1 << bit
    refused(bytes(whole), tmp_path)


def test_every_byte_of_the_header_counts(backup: Path, tmp_path: Path) -> None:
    whole = backup.read_bytes()
    for place in range(whole.index(b"}]}\n") + 4):
        refused(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :], tmp_path)


def composed(folder: Path, *files: tuple[str, bytes], **changes: object) -> bytes:
    """Return a backup with a right checksum and whatever files."""
    parts = tuple(BackupPart(name, len(data)) for name, data in files)
    header = BackupHeader("relay", NETWORK.name, NETWORK.profile, NETWORK.epoch_seconds, 2, 0, parts)
    paths = []
    for number, (_, data) in enumerate(files):
        paths.append(folder / f"state-{number}")
        paths[-1].write_bytes(data)
    out = io.BytesIO()
    write_backup(out, msgspec.structs.replace(header, **changes), paths)
    for path in paths:
        path.unlink()
    return out.getvalue()


@pytest.mark.parametrize(
    "names",
    [
        ("../outside", "identity.key", "parcel.key"),
        (DATABASE, "/etc/outside.key", "parcel.key"),
        (DATABASE, "parcel.key", "identity.key"),
        (DATABASE, "identity.key"),
        (DATABASE, "identity.key", "parcel.key", "filter.key"),
        (DATABASE, "identity.key", "identity.key"),
        (),
    ],
)
def test_files_that_no_such_daemon_has_are_refused(
    backup: Path, tmp_path: Path, names: tuple[str, ...]
) -> None:
    said = refused(composed(tmp_path, *((name, bytes(32)) for name in names)), tmp_path)
    assert "damaged" in said


def test_sizes_are_checked_before_anything_is_read(backup: Path, tmp_path: Path) -> None:
    files = ((DATABASE, b"x"), ("identity.key", bytes(32)), ("parcel.key", bytes(32)))
    claimed = (BackupPart(DATABASE, 1 << 62), BackupPart("identity.key", 32), BackupPart("parcel.key", 32))
    refused(composed(tmp_path, *files, files=claimed), tmp_path)
    refused(composed(tmp_path, files[0], files[1], ("parcel.key", bytes(33))), tmp_path)
    refused(composed(tmp_path, *files, network="n" * MAX_HEADER), tmp_path)
    refused(b"hushcast backup 1\n" + b"[" * 10_000 + b"\n", tmp_path)


def test_what_is_no_backup_at_all(backup: Path, tmp_path: Path) -> None:
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        tar.addfile(tarfile.TarInfo("../outside"))
    assert "is no backup" in refused(archive.getvalue(), tmp_path)
    assert "is no backup" in refused(b"", tmp_path)
    assert "of form 2, this program knows 1" in refused(b"hushcast backup 2\n{}\n", tmp_path)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path, told in ((pipe, "not a file"), (tmp_path, "not a file"), (tmp_path / "none", "cannot be read")):
        with pytest.raises(UsageError, match=told):
            restore_backup(path, tmp_path / "other", RELAY, NOW, force=False)
    assert not (tmp_path / "other").exists()


def test_links_laid_in_the_state_directory_lead_nowhere(backup: Path, tmp_path: Path) -> None:
    other, outside = tmp_path / "other", tmp_path / "outside"
    other.mkdir(mode=0o700)
    outside.mkdir()
    (outside / "kept").write_bytes(b"kept")
    (other / "restore.part").symlink_to(outside)
    with pytest.raises(BackupError):
        restore_backup(backup, other, RELAY, NOW, force=False)
    assert tree(outside) == {"kept": b"kept"}
    (other / "restore.part").unlink()
    for name in (DATABASE, "identity.key"):
        (other / name).symlink_to(outside / "kept")
    restore_backup(backup, other, RELAY, NOW, force=True)
    assert tree(outside) == {"kept": b"kept"}
    assert not (other / "identity.key").is_symlink()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another user")
def test_root_makes_what_the_daemons_user_can_read(state: Path, tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    for parent in tmp_path.parents[:3]:
        parent.chmod(parent.stat().st_mode | 0o011)
    for path in (state, *state.iterdir()):
        os.chown(path, 4242, 4243)
    make_backup(state, RELAY, NOW, tmp_path / "backup", force=False)
    assert (tmp_path / "backup").stat().st_uid == 0
    restore_backup(tmp_path / "backup", state, RELAY, NOW, force=True)
    owners = {(path.stat().st_uid, path.stat().st_gid) for path in state.rglob("*")}
    assert owners == {(4242, 4243)}
    assert (os.geteuid(), os.getegid()) == (0, 0)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_whoever_may_not_use_the_state_is_told_who_may(state: Path, backup: Path, tmp_path: Path) -> None:
    os.seteuid(4242)
    try:
        with pytest.raises(UsageError, match="as the daemon's user, or as root"):
            make_backup(state, RELAY, NOW, tmp_path / "other", force=False)
        with pytest.raises(UsageError, match="as the daemon's user, or as root"):
            restore_backup(backup, state, RELAY, NOW, force=True)
    finally:
        os.seteuid(0)
