"""Faults upon daemons in containers, brought about by the engine and, for packets, by the kernel."""

from __future__ import annotations

from collections.abc import Sequence

from hushcast_runtime.transports.base import TransportError
from hushcast_testnet.chaos.breaker import set_clock
from hushcast_testnet.chaos.plan import KINDS, Fault, Kind
from hushcast_testnet.containers.compose import Containers
from hushcast_testnet.inventory import Testnet

_PACKETS: tuple[Kind, ...] = ("delay", "lose")
_DEVICE = "eth0"  # of a tor, the one way in and out of its daemon


async def container_breaker(testnet: Testnet) -> ContainerBreaker:
    """Return the breaker of a container testnet; it knows what this machine's kernel can do to packets."""
    assert testnet.containers is not None
    breaker = ContainerBreaker(testnet, testnet.containers)
    lacking: tuple[Kind, ...] = () if testnet.breakable else ("skew",)
    if not await breaker.has_netem():
        lacking += _PACKETS
    breaker.kinds = [kind for kind in KINDS if kind not in lacking]
    return breaker


class ContainerBreaker:
    """Implements `Breaker`. A daemon is cut off, delayed and made lossy at the network of its own tor."""

    def __init__(self, testnet: Testnet, containers: Containers) -> None:
        self.kinds: Sequence[Kind] = ()
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
                await self._shape(tor, "add", "delay", f"{fault.amount * 1000:.0f}ms")
            case "lose":
                await self._shape(tor, "add", "loss", f"{fault.amount * 100:.1f}%")

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
                await self._shape(tor, "del")

    async def _shape(self, tor: str, verb: str, *how: str) -> None:
        netem = ["netem", *how] if how else []
        command = ["tc", "qdisc", verb, "dev", _DEVICE, "root", *netem]
        await self._engine.run("exec", "--privileged", "--user", "0", tor, *command)
