"""The readiness socket tells its owner whether a process is ready, at each moment anew."""

from __future__ import annotations

import stat
from pathlib import Path

import trio

from hushcast_runtime.processes.readiness import Readiness
from hushcast_runtime.processes.readiness_socket import ask_readiness, tell_readiness


async def test_each_who_asks_hears_how_it_is_now(tmp_path: Path) -> None:
    path = tmp_path / "ready.sock"
    assert await ask_readiness(path) is None
    told = [Readiness(False, "waiting"), Readiness(True, "working")]
    async with trio.open_nursery() as nursery:
        await nursery.start(tell_readiness, path, lambda: told[0])
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert await ask_readiness(path) == told[0]
        del told[0]
        assert await ask_readiness(path) == told[0]
        nursery.cancel_scope.cancel()
    assert not path.exists()
