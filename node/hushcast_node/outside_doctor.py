"""The doctor that looks at a node from outside, whether it runs or not, by its configuration."""

from __future__ import annotations

from pathlib import Path

import trio

import hushcast
from hushcast.control_messages import Finding
from hushcast_node.settings import NodeSettings
from hushcast_protocol.base.errors import HushcastError, UsageError
from hushcast_protocol.base.findings import bad, good, warning
from hushcast_runtime.processes.doctor import HOW_TO_START, examine_state
from hushcast_runtime.processes.doctors_socket import ANSWER_WITHIN
from hushcast_runtime.processes.examinations import examine_disk
from hushcast_runtime.processes.program import Program
from hushcast_runtime.storage.state_directory import check_access


async def examine(settings: NodeSettings, program: Program) -> list[Finding]:
    """Look at a node's state, and ask it what its own doctor finds, if it runs; two minutes at most.

    Who may use its socket and not its state, as members of `socket_group`, hears what the node says.
    """
    state, socket = settings.state_path(), settings.socket_path()

    async def ask(looked: Finding, pid: int | None) -> list[Finding]:
        if pid is None or looked.verdict == "bad":
            rest = [examine_disk(state)] if state.is_dir() else []
            return [*rest, bad("daemon", "does not run", HOW_TO_START)]
        if (inside := await _ask(socket)) is None:
            told = f"runs (pid {pid}) and does not answer at {socket}"
            return [bad("daemon", told, "look at its log, or restart it")]
        return [good("daemon", f"runs (pid {pid})"), *inside]

    try:
        check_access(state)
    except UsageError as error:
        if (inside := await _ask(socket)) is not None:
            return [warning("state", "belongs to another user, and was not looked at", str(error)), *inside]
    return await examine_state(state, program.version, ask)


async def _ask(socket: Path) -> list[Finding] | None:
    """Return what a node finds itself; `None` where none answers, or not in time."""
    try:
        with trio.fail_after(ANSWER_WITHIN):
            async with hushcast.connect(socket, timeout=None, reconnect=False) as daemon:
                return await daemon.examine()
    except (HushcastError, OSError, trio.TooSlowError):
        return None
