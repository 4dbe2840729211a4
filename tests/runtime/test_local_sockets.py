"""A daemon's sockets are their owner's alone unless a group is named, and a failure leaves nothing open."""

from __future__ import annotations

import grp
import os
import socket
import stat
from pathlib import Path

import pytest

from hushcast_protocol.base.errors import UsageError
from hushcast_runtime.transports.local_sockets import listen_at

pytestmark = pytest.mark.usefixtures("open_umask")

OWN_GROUP = grp.getgrgid(os.getegid()).gr_name


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


async def test_the_owner_alone_by_default(tmp_path: Path) -> None:
    path = tmp_path / "made" / "control.sock"
    async with listen_at(path, None, "the socket"):
        assert (mode(path), mode(path.parent)) == (0o600, 0o700)


async def test_a_group_may_be_let_in(tmp_path: Path) -> None:
    path = tmp_path / "control.sock"
    async with listen_at(path, OWN_GROUP, "the socket"):
        assert (mode(path), path.stat().st_gid) == (0o660, os.getegid())


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give a file to any group")
async def test_the_group_is_the_one_named(tmp_path: Path) -> None:
    group = next(entry for entry in grp.getgrall() if entry.gr_gid != os.getegid())
    path = tmp_path / "control.sock"
    async with listen_at(path, group.gr_name, "the socket"):
        assert (mode(path), path.stat().st_gid) == (0o660, group.gr_gid)


async def test_a_group_that_is_not_there_opens_nothing(tmp_path: Path) -> None:
    path = tmp_path / "control.sock"
    with pytest.raises(UsageError, match="socket_group: there is no group no-such-group"):
        listen_at(path, "no-such-group", "the socket")
    assert not path.exists()


async def test_what_a_killed_daemon_left_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "control.sock"
    left = socket.socket(socket.AF_UNIX)
    left.bind(str(path))
    left.close()
    async with listen_at(path, None, "the socket"):
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(path))


async def test_a_socket_in_use_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "control.sock"
    async with listen_at(path, None, "the socket"):
        with pytest.raises(UsageError, match=f"another daemon listens at {path}"):
            listen_at(path, None, "the socket")
        assert path.exists()


async def test_a_place_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match=r"the socket .*control\.sock cannot be opened"):
        listen_at(tmp_path / "file" / "control.sock", None, "the socket")
