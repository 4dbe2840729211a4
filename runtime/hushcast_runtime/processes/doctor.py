"""The doctors of daemons with a doctor's socket: one inside a daemon, one that looks from outside."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from hushcast_protocol.base.errors import UsageError
from hushcast_protocol.base.findings import Finding, bad, good
from hushcast_runtime.environment import Environment
from hushcast_runtime.files import acting_as_owner
from hushcast_runtime.processes.doctors_socket import ExaminedSettings, ask_findings
from hushcast_runtime.processes.examinations import (
    examine_core_dumps,
    examine_descriptor,
    examine_disk,
    examine_files,
    examine_reach,
    examine_ways,
)
from hushcast_runtime.processes.program import Program
from hushcast_runtime.storage.recovery import examine_records
from hushcast_runtime.storage.state_directory import check_access
from hushcast_runtime.storage.state_layout import DATABASE, WAY_OUT_OF_NEWER, kept_version
from hushcast_runtime.storage.state_lock import holder
from hushcast_runtime.storage.store import StoreError
from hushcast_runtime.tor.transport import TorTransport
from hushcast_runtime.transports.base import Listener, Transport

HOW_TO_START = "start it, as `service` says"
"""What to do about one that does not run: another finding names the unit, or the command with its file."""


@dataclass(frozen=True)
class DaemonKind:
    """What all daemons of one kind have in common."""

    program: Program
    files: int
    """Open files that it may need."""
    counters: Mapping[str, str]
    """What it counts, with the meanings."""
    gauges: Mapping[str, str]
    """What it has gauges for beside every daemon's, with the meanings."""
    keys: tuple[str, ...] = ()
    """Key files that it does not start without, once it has a state."""


class DoctorSettings(Protocol):
    """Settings of whatever has a doctor's socket."""

    def state_path(self) -> Path:
        """Return the state directory."""

    def doctors_socket(self) -> Path:
        """Return where it is asked while it runs."""


class Doctor:
    """Examines the daemon that it lives in, before and after that has come up."""

    def __init__(self, settings: ExaminedSettings, env: Environment, kind: DaemonKind) -> None:
        self._settings = settings
        self._kind = kind
        self.env = env
        self.tor: TorTransport | None = None
        self.transport: Transport | None = None
        self.listener: Listener | None = None

    async def examine(self, own: Sequence[Finding]) -> list[Finding]:
        """Return a finding for each thing looked at, `own` among them; takes a minute at most."""
        settings = self._settings
        found = await examine_ways(settings, self.tor, self.env)
        found += [examine_disk(settings.state_path()), examine_files(self._kind.files)]
        if settings.testnet is None:
            found.append(examine_core_dumps(self._kind.program.run_command))
        found.append(await examine_descriptor(self.listener))
        found.append(await examine_reach(self.listener, self.transport, self.env))
        return [*found, *own]


async def examine_from_outside(
    settings: DoctorSettings, program: Program, away: Callable[[], Awaitable[list[Finding]]] | None = None
) -> list[Finding]:
    """Look at a daemon's state, and ask it what its own doctor finds, if it runs; two minutes at most.

    `away` looks at more while it tells nothing itself.
    """
    state = settings.state_path()

    async def ask(looked: Finding, pid: int | None) -> list[Finding]:
        if looked.verdict == "bad" or pid is None:
            found = [examine_disk(state)] if state.is_dir() else []
            found.append(bad("daemon", "does not run", HOW_TO_START))
        elif (inside := await ask_findings(settings.doctors_socket())) is not None:
            return [good("daemon", f"runs (pid {pid})"), *inside]
        else:
            told = f"runs (pid {pid}) and does not answer"
            found = [bad("daemon", told, "look at its log, or restart it")]
        return found if away is None else [*found, *await away()]

    return await examine_state(state, program.version, ask)


async def examine_state(
    state: Path, known: int, more: Callable[[Finding, int | None], Awaitable[list[Finding]]]
) -> list[Finding]:
    """Look at a state of at most the `known` version, then at `more`, as its owner.

    `more` gets the finding of the state, and the pid of the daemon that runs with it, if one does.
    """
    try:
        check_access(state)
    except UsageError as error:
        return [bad("state", "belongs to another user", str(error))]
    with acting_as_owner(state):  # what root may read, the daemon's user may not
        looked, pid = look_at_state(state, known)
        return [looked, *examine_records(state / DATABASE), *await more(looked, pid)]


def look_at_state(state: Path, known: int) -> tuple[Finding, int | None]:
    """Look whether a program that knows these versions can use a state; return who runs with it, too."""
    if not state.exists():
        return good("state", f"{state} is made at the first start"), None
    if state.stat().st_mode & 0o077:
        return bad("state", f"{state} is open to other users", f"chmod 700 {state}"), None
    pid = holder(state)
    try:
        version = kept_version(state)
    except StoreError as error:
        return bad("state", "the database cannot be read", f"look at the disk: {error}"), pid
    if version > known:
        return bad("state", f"version {version}, this program knows up to {known}", WAY_OUT_OF_NEWER), pid
    return good("state", f"{state}, version {version}"), pid
