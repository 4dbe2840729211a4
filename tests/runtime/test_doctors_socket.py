"""The doctor's socket: it is its user's alone, and answers although others ask and stay silent."""

from __future__ import annotations

import stat
from pathlib import Path

import trio

from hushcast_protocol.base.findings import Finding, good
from hushcast_runtime.processes.doctors_socket import MAX_ASKING, ask_findings, tell_findings


async def test_silent_askers_keep_nobody_out(tmp_path: Path, nursery: trio.Nursery) -> None:
    path = tmp_path / "doctor.sock"
    asked = 0

    async def examine() -> list[Finding]:
        nonlocal asked
        asked += 1
        if asked <= 2 * MAX_ASKING:
            await trio.sleep_forever()
        return [good("disk", "there")]

    await nursery.start(tell_findings, path, examine)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    silent = [await trio.open_unix_socket(path) for _ in range(2 * MAX_ASKING)]
    await trio.testing.wait_all_tasks_blocked(0.01)
    assert await ask_findings(path) == [good("disk", "there")]
    for stream in silent:
        await stream.aclose()
    nursery.cancel_scope.cancel()


async def test_what_is_no_doctor_is_no_answer(tmp_path: Path) -> None:
    assert await ask_findings(tmp_path / "none") is None
