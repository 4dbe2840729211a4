"""A network of either system on modelled machines: what the experiments need of it, and what both share."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar

import trio

from hushcast_local.service import Service
from hushcast_protocol.content.tokens import topic_key
from hushcast_runtime.environment import Environment, simulated_environment
from hushcast_runtime.transports.memory import CallAt
from hushcast_testnet.compare.machine_transport import MachineNetwork, MachineTransport
from hushcast_testnet.compare.machines import House, Machine, Processors, SharedFunction
from hushcast_testnet.compare.tor_work import TorWork

EPOCH_SECONDS = 3600
BEGIN = 10_000 * 24 * EPOCH_SECONDS + 2.1 * EPOCH_SECONDS
"""Unix time at which the clock shows 0: trees are mended 36 minutes later, and all is over before."""

T = TypeVar("T")


@dataclass(frozen=True)
class NetworkScene:
    """One network to be: who takes part, and the machines that they have."""

    system: str
    """`central`, `tree` or `brokers`."""
    profile: str
    nodes: int
    """Participants who can publish and subscribe."""
    seed: int
    work: TorWork
    bits_a_second: float
    """Of each machine's line, up and down."""
    cores: int | None = None
    """Of one machine, with one tor, that all daemons share; `None`: each has one of its own."""
    attached: bool = True
    """Whether, of brokers, everybody subscribes to something else, and is attached to its edge broker."""
    linked: bool = True
    """Whether relays have their links to each other."""


class Participant(Protocol):
    """A running daemon."""

    @property
    def service(self) -> Service:
        """What its applications ask."""

    @property
    def ready(self) -> bool:
        """Whether they can."""

    async def run(self, *, task_status: trio.TaskStatus[None]) -> None:
        """Live until cancelled; report started."""


@dataclass(eq=False)
class MachineUser:
    """A participant and its machine."""

    daemon: Participant
    machine: Machine


async def _nothing() -> None:
    pass


@dataclass
class ModelledNetwork:
    """A network that is up."""

    users: list[MachineUser]
    prepare: Callable[[], Awaitable[None]] = _nothing
    """Opens what connects the system's own machines where it is in use."""


class MachineWorld:
    """The machines of one network, and what is drawn for it."""

    def __init__(self, scene: NetworkScene, processors: Processors, call_at: CallAt) -> None:
        self.scene = scene
        self.env = self.environment("all")
        self._processors = processors
        self.wires = MachineNetwork(scene.work, scene.bits_a_second, self.env, call_at)
        self.machines: list[Machine] = []
        self._house = None if scene.cores is None else House(scene.cores)
        self.derive = self.shared(topic_key)

    def shared(self, function: Callable[..., T]) -> Callable[..., T]:
        """Return a function whose work is done once, and laid upon the machine of each who asks for it."""
        return SharedFunction(function, self._processors)

    def environment(self, name: str) -> Environment:
        """Return the world as one daemon sees it."""
        scene = self.scene
        return simulated_environment(f"{scene.seed} {scene.system} {scene.profile} {name}", BEGIN)

    def machine(self, name: str) -> tuple[Machine, MachineTransport]:
        """Return a new machine, and the transport of the daemon on it."""
        machine = Machine(name, self._processors, self._house)
        self.machines.append(machine)
        return machine, self.wires.on(machine)


class DaemonRun(Protocol):
    """Makes a daemon live."""

    async def __call__(self, *, task_status: trio.TaskStatus[None]) -> None:
        """Live until cancelled; report started."""


async def live(run: DaemonRun, machine: Machine, *, task_status: trio.TaskStatus[None]) -> None:
    """Have a daemon live on its machine."""
    machine.run_here()
    await run(task_status=task_status)


async def until_ready(users: list[MachineUser]) -> None:
    """Wait until all can publish and subscribe."""
    for user in users:
        while not user.daemon.ready:  # noqa: ASYNC110 - a mock clock makes waiting free
            await trio.sleep(1)  # virtual seconds
