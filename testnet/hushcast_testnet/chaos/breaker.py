"""The breaker: injects faults into daemons that run as processes, and ends them again."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import trio

from hushcast_runtime.storage.state_lock import holder
from hushcast_runtime.transports.base import TransportError
from hushcast_testnet import processes
from hushcast_testnet.chaos.fault_plan import KINDS, Fault, Kind
from hushcast_testnet.inventory import Member, Testnet, deadline, start
from hushcast_testnet.path_proxy import PathConditions, set_conditions
from hushcast_testnet.processes import ProcessRecord

START_WITHIN = 60.0  # seconds until a process holds its state; measured 0.7
_LOOK_EVERY = 0.05  # seconds
_NETWORK: tuple[Kind, ...] = ("cut", "delay", "lose")


class Breaker(Protocol):
    """Injects faults into the daemons of one backend."""

    kinds: Sequence[Kind]
    """The faults that this testnet can suffer."""

    async def begin(self, fault: Fault) -> None:
        """Bring a fault about; raise `TransportError` if that cannot be done."""

    async def end(self, fault: Fault) -> None:
        """Take it away again; a daemon that was stopped or killed is started."""


class ProcessBreaker:
    """Implements `Breaker` with signals, clock files and the proxy on the path."""

    def __init__(self, testnet: Testnet) -> None:
        self._testnet = testnet
        self._members = {member.name: member for member in testnet.members}
        lacking: tuple[Kind, ...] = ()
        if testnet.path is None:
            lacking += _NETWORK
        if not testnet.breakable:
            lacking += ("skew",)
        self.kinds: Sequence[Kind] = [kind for kind in KINDS if kind not in lacking]

    async def begin(self, fault: Fault) -> None:
        """Signal the process, set the faults on its path, or set its clock."""
        member = self._members[fault.target]
        match fault.kind:
            case "stop":
                await processes.stop([_running(member)])
            case "kill":
                await processes.kill([_running(member)])
            case "restart":
                await processes.stop([_running(member)])
                await _start(member)
            case "pause":
                processes.send([_running(member)], signal.SIGSTOP)
            case "skew":
                set_clock(member, fault.amount)
            case "cut":
                await self._set(PathConditions(_host(member), cut=True))
            case "delay":
                await self._set(PathConditions(_host(member), delay=fault.amount))
            case "lose":
                await self._set(PathConditions(_host(member), loss=fault.amount))

    async def end(self, fault: Fault) -> None:
        """Undo what `begin` did."""
        member = self._members[fault.target]
        match fault.kind:
            case "stop" | "kill":
                await _start(member)
            case "pause":
                processes.send([_running(member)], signal.SIGCONT)
            case "skew":
                set_clock(member, 0.0)
            case "cut" | "delay" | "lose":
                await self._set(PathConditions(_host(member)))

    async def _set(self, conditions: PathConditions) -> None:
        assert self._testnet.path is not None
        await set_conditions(Path(self._testnet.path.control), conditions)


async def _start(member: Member) -> None:
    """Start a daemon, and return once it can be found by its lock: nobody else knows of it until then."""
    process = await start(member)
    with deadline(START_WITHIN, f"{member.name} does not start"):
        while holder(Path(member.state)) != process.pid:
            if not processes.is_running(process):
                raise TransportError(f"{member.name} ended: see {Path(member.config).parent / 'log'}")
            await trio.sleep(_LOOK_EVERY)


def _running(member: Member) -> ProcessRecord:
    pid = holder(Path(member.state))
    process = processes.find(member.name, pid) if pid is not None else None
    if process is None:
        raise TransportError(f"{member.name} is not running: see {Path(member.config).parent / 'log'}")
    return process


def set_clock(member: Member, seconds: float) -> None:
    """Make a daemon's clock wrong by so many seconds."""
    assert member.clock is not None
    Path(member.clock).write_text(f"{seconds}")


def _host(member: Member) -> str:
    assert member.host is not None
    return member.host
