"""Members of an in-process overlay: relays and clients, hostile ones among them, and the directory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import trio

from hushcast_directory.client.pinned_directories import PinnedDirectories
from hushcast_node.carrier_parts import OverlayParts
from hushcast_overlay.relay.identity import draw_identity
from hushcast_protocol.base.roster import Network
from hushcast_protocol.base.shard_count import SHARD_SIZE
from hushcast_protocol.content.hops import Hop
from hushcast_protocol.content.messages import Message
from hushcast_protocol.overlay.forwarding import ForwardingDecision, ForwardingOutcome, Router
from hushcast_protocol.overlay.profile import Profile
from hushcast_protocol.overlay.tree_rule import TreeRule
from hushcast_runtime.environment import Environment
from hushcast_runtime.transports.memory import CallAt
from hushcast_testnet.simulations.colluders import Colluders, SelectiveColluder
from hushcast_testnet.simulations.corrupt_router import CorruptRouter
from hushcast_testnet.simulations.lives import NodeLife, SimulatedWorld
from hushcast_testnet.simulations.record_pool import shared_checks, shared_reading
from hushcast_testnet.simulations.simulated_directories import SimulatedDirectories


class _LosingRouter(CorruptRouter):
    """A hostile relay's decisions: it takes every message, confirms it, and sends some of them nowhere."""

    def __init__(self, honest: Router, share: float, env: Environment) -> None:
        """Take the place of a router, and lose a share of what it would pass on."""
        super().__init__(honest)
        self._share = share
        self._env = env

    def route(
        self, message: Message, previous: bytes, now: float, only: Callable[[Hop], bool] | None = None
    ) -> ForwardingDecision:
        if self._share >= 1.0 or self._env.uniform(0.0, 1.0) < self._share:
            return ForwardingDecision(ForwardingOutcome.DUPLICATE)
        return super().route(message, previous, now, only)


class OverlayMember(NodeLife):
    """One daemon of the overlay; its identity, store and counters outlive its lives."""

    def __init__(self, simulated: OverlayWorld, name: str, is_relay: bool) -> None:
        super().__init__(simulated, name, "overlay")
        self.drops = False
        """Whether it silently loses what it should forward."""
        self._together: Colluders | None = None
        self._share = 1.0
        self._simulated = simulated
        self._identity = draw_identity(self._env.randomness) if is_relay else None
        node = self._identity.seed.public().hex() if self._identity else name
        self._tracer = simulated.tracer(name, node, self._env)

    @property
    def key(self) -> bytes | None:
        """A relay's identity key."""
        return self._identity.seed.public() if self._identity else None

    async def start(self, nursery: trio.Nursery) -> None:
        """Start the daemon on what is on its disk."""
        await super().start(nursery)
        if self.drops:
            self.lose_messages(self._together, self._share)

    def lose_messages(self, together: Colluders | None, share: float = 1.0) -> None:
        """Confirm and lose a share of all messages from now on, or those chosen `together` with others."""
        self.drops, self._together, self._share = True, together, share
        relay = self.daemon.overlay.relay
        assert relay is not None
        forwarding = relay.forwarding
        if together is not None:
            forwarding._router = SelectiveColluder(relay, together)
        else:
            forwarding._router = _LosingRouter(forwarding._router, share, self._env)

    def _carrier(self) -> OverlayParts:
        simulated = self._simulated
        return OverlayParts(
            simulated.network,
            simulated.profile,
            simulated.directories(),
            self._identity,
            simulated.checks,
            simulated.reading,
            trees=TreeRule.ALWAYS,  # as relays subscribe, too, and trees are what is looked at
        )


class OverlayWorld(SimulatedWorld):
    """The shared state of the members of one network, including the directory."""

    def __init__(
        self,
        network: Network,
        profile: Profile,
        seed: int,
        begin: float,
        traces: Path | None,
        probes_an_epoch: float,
        call_at: CallAt,
    ) -> None:
        """`begin` is the Unix time at which trio's clock shows 0."""
        super().__init__(seed, begin, network.epoch_seconds, traces, call_at)
        self.network = network
        self.probes_an_epoch = probes_an_epoch
        self.profile = profile
        self.directory: SimulatedDirectories
        self.checks = shared_checks()
        self.reading = shared_reading()

    def directories(self) -> PinnedDirectories:
        """Return what the members know of the directories."""
        return self.directory.pinned

    async def open_directory(
        self,
        relays: int,
        nursery: trio.Nursery,
        authorities: int = 0,
        shard_size: int = SHARD_SIZE,
    ) -> None:
        """Start so many directories that agree, or one (0) alone; they wait for so many relays."""
        size = shard_size if authorities else 0
        self.directory = SimulatedDirectories(self, self.network, relays, authorities or 1, size)
        await self.directory.open(nursery)
