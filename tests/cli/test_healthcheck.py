"""`hushcast healthcheck` tells by its exit code whether a program is ready, of every program alike."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio
from running import hushcast

from hushcast_protocol.base.errors import UsageError
from hushcast_runtime.processes.program import Program, programs
from hushcast_runtime.processes.readiness import Readiness
from hushcast_runtime.processes.readiness_socket import tell_readiness
from hushcast_runtime.transports.local_sockets import MAX_PATH

GATEWAY = 'program = "gateway"\nstate = "{state}"\n[anonymous]\n'


async def test_the_exit_code_says_it(tmp_path: Path, nursery: trio.Nursery) -> None:
    file = tmp_path / "gateway.toml"
    file.write_text(GATEWAY.format(state=tmp_path))
    asked = ("healthcheck", "--config", file)
    nothing = await hushcast(*asked)
    assert (nothing.code, nothing.error[:13]) == (3, "no gateway of")
    told = [Readiness(True, "working")]
    await nursery.start(tell_readiness, tmp_path / "ready.sock", lambda: told[0])
    well = await hushcast(*asked)
    assert (well.code, well.stdout, well.stderr) == (0, b"ready: working\n", "")
    told[0] = Readiness(False, "starting")
    ill = await hushcast(*asked, "--json")
    assert ill.objects == [{"ready": False, "doing": "starting"}]
    assert (ill.code, ill.error) == (1, "the gateway is not ready: starting")


def test_a_state_without_room_for_the_socket_is_refused() -> None:
    (gateway,) = [program for program in programs() if program.name == "gateway"]
    longest = "/" + "s" * (MAX_PATH - len("//operators.sock"))  # the longest of its sockets' names
    assert parsed(gateway, longest).ready_socket().name == "ready.sock"
    with pytest.raises(UsageError, match=r"state: operators\.sock would have a path of"):
        parsed(gateway, longest + "s")


def parsed(program: Program, state: str):  # type: ignore[no-untyped-def]
    return program.parse(GATEWAY.format(state=state).encode(), "it")
