"""Where a process may stand by: on file systems that keep all others out, by a lock that is in place."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from hushcast_gateway.settings import GatewaySettings
from hushcast_protocol.base.errors import UsageError
from hushcast_runtime.processes.standby import read_again
from hushcast_runtime.storage import file_systems
from hushcast_runtime.storage.file_systems import check_locks, kind_of
from hushcast_runtime.storage.state_lock import holder, take_lock

MOUNTS = r"""22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 22 0:40 / /srv rw shared:2 - nfs4 host:/srv rw,local_lock=flock
31 30 0:41 / /srv/a\040disk rw - xfs /dev/sdb rw
32 22 0:42 / /srvfuse rw - fuse.sshfs host: rw
33 22 0:43 / /over rw - ext4 /dev/sdc rw
34 22 0:44 / /over rw - nfs host:/over rw,nolock
"""


@pytest.mark.parametrize(
    ("place", "kind"),
    [
        ("/", "ext4"),
        ("/var/lib/hushcast-gateway", "ext4"),
        ("/srv", "nfs4"),
        ("/srv/gateway", "nfs4"),
        ("/srv/a disk/gateway", "xfs"),
        ("/srvfuse/x", "fuse.sshfs"),
        ("/srv2", "ext4"),
        ("/over/x", "nfs"),
    ],
)
def test_the_kind_of_a_file_system_is_that_of_the_nearest_mount(
    tmp_path: Path, place: str, kind: str
) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(MOUNTS)
    assert kind_of(Path(place), mounts) == kind
    mounts.write_text("")
    assert kind_of(Path(place), mounts) == "unknown"


@pytest.mark.parametrize("kind", ["nfs", "nfs4", "cifs", "fuse.sshfs", "9p", "ceph", "gfs2", "unknown"])
def test_nobody_stands_by_where_two_could_have_the_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    check_locks(tmp_path)
    monkeypatch.setattr(file_systems, "kind_of", lambda place: kind)
    with pytest.raises(UsageError, match=f"of the kind {kind}, on which two could"):
        check_locks(tmp_path)


def test_a_lock_is_one_processs_until_it_is_closed(tmp_path: Path) -> None:
    lock = take_lock(tmp_path)
    assert lock is not None
    assert holder(tmp_path) is not None
    assert take_lock(tmp_path) is None
    lock.close()
    again = take_lock(tmp_path)
    assert again is not None
    again.close()


def test_a_lock_on_a_directory_of_before_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file is another one between its opening and the lock: that of a directory made anew."""
    import fcntl

    state, taken = tmp_path / "state", fcntl.flock
    state.mkdir()

    def replaced(*given: object) -> None:
        shutil.rmtree(state)
        state.mkdir()
        (state / "lock").touch()
        taken(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(fcntl, "flock", replaced)
    assert take_lock(state) is None
    monkeypatch.undo()
    lock = take_lock(state)
    assert lock is not None
    lock.close()


def test_a_configuration_that_cannot_be_used_is_left_for_the_one_before(
    capsys: pytest.CaptureFixture[str],
) -> None:
    before, same, other = (GatewaySettings(state=f"/{name}") for name in ("a", "a", "b"))
    assert read_again(lambda: same, before) is same
    assert read_again(lambda: other, before) is before
    assert "start this again" in capsys.readouterr().err

    def broken() -> GatewaySettings:
        raise UsageError("gateway.toml: no")

    assert read_again(broken, before) is before
    assert "going on with the one before" in capsys.readouterr().err
