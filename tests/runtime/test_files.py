"""Files for their owner only, written whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hushcast_protocol.base.errors import UsageError
from hushcast_runtime.environment import simulated_environment
from hushcast_runtime.files import (
    acting_as_owner,
    load_or_create,
    load_seed,
    private_directory,
    write_private,
)

pytestmark = pytest.mark.usefixtures("open_umask")

draw = simulated_environment("files").randomness


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_a_private_directory_is_made_for_its_owner(tmp_path: Path) -> None:
    path = private_directory(tmp_path / "some" / "state")
    assert mode(path) == 0o700
    assert private_directory(path) == path


@pytest.mark.parametrize("open_to", [0o750, 0o705, 0o777, 0o710, 0o702])
def test_a_directory_that_others_may_enter_is_refused(tmp_path: Path, open_to: int) -> None:
    path = tmp_path / "state"
    path.mkdir()
    path.chmod(open_to)
    with pytest.raises(UsageError, match=f"{path}.*chmod 700"):
        private_directory(path)


def test_a_private_file_is_its_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "key"
    write_private(path, b"one")
    assert (path.read_bytes(), mode(path)) == (b"one", 0o600)
    write_private(path, b"two")
    assert (path.read_bytes(), mode(path)) == (b"two", 0o600)
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_that_was_open_to_others_is_not_any_more(tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.write_bytes(b"old")
    path.chmod(0o644)
    write_private(path, b"new")
    assert mode(path) == 0o600


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_crash_leaves_the_old_file(tmp_path: Path, step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "key"
    write_private(path, b"old")

    def crash(*args: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os if step == "fsync" else Path, step, crash)
    with pytest.raises(KeyboardInterrupt):
        write_private(path, b"new")
    assert path.read_bytes() == b"old"
    monkeypatch.undo()
    write_private(path, b"newer")  # what the crash left behind is in nobody's way
    assert path.read_bytes() == b"newer"
    assert list(tmp_path.iterdir()) == [path]


def test_what_is_written_is_on_disk_before_it_takes_the_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []
    sync, replace = os.fsync, Path.replace
    monkeypatch.setattr(os, "fsync", lambda number: (steps.append("fsync"), sync(number)))
    monkeypatch.setattr(Path, "replace", lambda path, to: (steps.append("replace"), replace(path, to)))
    write_private(tmp_path / "key", b"x")
    assert steps[:2] == ["fsync", "replace"]


def test_a_secret_is_drawn_once(tmp_path: Path) -> None:
    path = tmp_path / "key"
    first = load_or_create(path, 32, draw)
    assert len(first) == 32
    assert load_or_create(path, 32, draw) == first
    assert mode(path) == 0o600
    assert load_seed(path, draw).reveal() == first


@pytest.mark.parametrize("size", [0, 31, 33, 64])
def test_a_secret_of_another_length_is_refused_and_kept(tmp_path: Path, size: int) -> None:
    """An empty file after a crash of the disk, say: a new key in its place would lose a relay its name."""
    path = tmp_path / "key"
    path.write_bytes(b"k" * size)
    with pytest.raises(UsageError, match=f"{path} should hold 32 bytes and holds {size}"):
        load_seed(path, draw)
    assert path.read_bytes() == b"k" * size


def test_errors_show_no_secret(tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.write_bytes(b"supersecret")
    with pytest.raises(UsageError) as refused:
        load_seed(path, draw)
    assert "supersecret" not in str(refused.value)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root acts as others")
def test_root_acts_as_the_owner_with_the_owners_groups(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A service's user reaches some sockets by a group that is not its own."""
    monkeypatch.setattr("os.getgrouplist", lambda name, group: [group, 4242])
    os.chown(tmp_path, 65_534, 65_533)
    before = os.geteuid(), os.getegid(), os.getgroups()
    with acting_as_owner(tmp_path):
        assert (os.geteuid(), os.getegid(), os.getgroups()) == (65_534, 65_533, [4242, 65_533])
    assert (os.geteuid(), os.getegid(), os.getgroups()) == before
    os.chown(tmp_path, 4_000_000, 4_000_000)  # nobody that this machine knows
    with acting_as_owner(tmp_path):
        assert os.getgroups() == [4_000_000]
