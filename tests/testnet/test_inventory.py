"""An inventory names what commands end: that of another user is not read."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from hushcast_cli.main import cli
from hushcast_protocol.base.errors import UsageError
from hushcast_testnet import inventory
from hushcast_testnet.inventory import FILE, Member, load, running


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    state = tmp_path / "state"
    state.mkdir()
    member = Member("relay-0", "relay", str(tmp_path / "node.toml"), str(state), None)
    (tmp_path / FILE).write_bytes(msgspec.json.encode(inventory.Testnet("tcp", 30, 0.0, [member], None)))
    return tmp_path


@pytest.mark.parametrize("command", ["down", "status", "watch"])
def test_what_another_user_wrote_ends_nothing(
    command: str, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # It names the state of something that runs: of this very test.
    with (directory / "state" / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.write(f"{os.getpid()}\n")
        lock.flush()
        assert [process.pid for process in running(load(directory))] == [os.getpid()]
        monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
        with pytest.raises(UsageError, match="is another user's"):
            load(directory)
        told = CliRunner().invoke(cli, ["testnet", command, "--dir", str(directory)])
        assert isinstance(told.exception, UsageError)
