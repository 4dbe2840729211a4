"""Fault injection into daemons in containers: by the engine, and for packets by the kernel or a proxy."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hushcast_runtime.transports.base import TransportError
from hushcast_testnet.chaos.breaker import set_clock
from hushcast_testnet.chaos.fault_plan import KINDS, Fault, Kind
from hushcast_testnet.containers.compose import Containers
from hushcast_testnet.inventory import Testnet
from hushcast_testnet.path_proxy import PathConditions, set_conditions

_PACKETS: tuple[Kind, ...] = ("delay", "lose")
_DEVICE = "eth0"  # of a tor, the one way in and out of its daemon


async def container_breaker(testnet: Testnet) -> ContainerBreaker:
    """Return the breaker of a container testnet; it knows what this machine's kernel can do to packets."""
    assert testnet.containers is not None
    breaker = ContainerBreaker(testnet, testnet.containers)
    lacking: tuple[Kind, ...] = () if testnet.breakable else ("skew",)
    breaker.netem = await breaker.has_netem()
    if not breaker.netem and testnet.path is None:
        lacking += _PACKETS
    breaker.kinds = [kind for kind in KINDS if kind not in lacking]
    return breaker


class ContainerBreaker:
    """Implements `Breaker`. A daemon is cut off, delayed and made lossy at the network of its own tor.

    Without netem, the proxy between it and its tor delays and loses packets.
    """

    def __init__(self, testnet: Testnet, containers: Containers) -> None:
        self.kinds: Sequence[Kind] = ()
        self.netem = False
        self._path = testnet.path
        self._containers = containers
        self._engine = containers.engine
        self._members = {member.name: member for member in testnet.members}

    async def has_netem(self) -> bool:
        """Tell whether the kernel can delay and lose packets."""
        tor = self._containers.name("directory-tor")
        try:
            await self._shape(tor, "add", "delay", "1ms")
            await self._shape(tor, "del")
        except TransportError:
            return False
        return True

    async def begin(self, fault: Fault) -> None:
        """Stop, kill, pause the container, or do something to its tor's network."""
        daemon, tor = self._containers.name(fault.target), self._containers.name(f"{fault.target}-tor")
        match fault.kind:
            case "stop" | "restart" | "kill" | "pause":
                await self._engine.run(fault.kind, daemon)
            case "skew":
                set_clock(self._members[fault.target], fault.amount)
            case "cut":
                await self._engine.run("network", "disconnect", self._containers.network, tor)
            case "delay":
                if self.netem:
                    await self._shape(tor, "add", "delay", f"{fault.amount * 1000:.0f}ms")
                else:
                    await self._relay(PathConditions(fault.target, delay=fault.amount))
            case "lose":
                if self.netem:
                    await self._shape(tor, "add", "loss", f"{fault.amount * 100:.1f}%")
                else:
                    await self._relay(PathConditions(fault.target, loss=fault.amount))

    async def end(self, fault: Fault) -> None:
        """Undo what `begin` did."""
        daemon, tor = self._containers.name(fault.target), self._containers.name(f"{fault.target}-tor")
        match fault.kind:
            case "stop" | "kill":
                await self._engine.run("start", daemon)
            case "pause":
                await self._engine.run("unpause", daemon)
            case "skew":
                set_clock(self._members[fault.target], 0.0)
            case "cut":
                # With another address its connections would be dead, and tor slow to notice.
                address = ["--ip", self._containers.addresses[f"{fault.target}-tor"]]
                await self._engine.run("network", "connect", *address, self._containers.network, tor)
            case "delay" | "lose":
                if self.netem:
                    await self._shape(tor, "del")
                else:
                    await self._relay(PathConditions(fault.target))

    async def _relay(self, conditions: PathConditions) -> None:
        assert self._path is not None
        await set_conditions(Path(self._path.control), conditions)

    async def _shape(self, tor: str, verb: str, *how: str) -> None:
        netem = ["netem", *how] if how else []
        command = ["tc", "qdisc", verb, "dev", _DEVICE, "root", *netem]
        await self._engine.run("exec", "--privileged", "--user", "0", tor, *command)
