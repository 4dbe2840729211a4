"""The store, clock and network of one daemon under cover, without its rounds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from small_network import EPOCH_SECONDS

from hushcast_overlay.counters import OVERLAY_COUNTERS
from hushcast_overlay.routes.cover.kept_chain import KeptChain
from hushcast_overlay.routes.cover.kept_lanes import KeptLanes
from hushcast_protocol.base.addresses import parse_address
from hushcast_protocol.base.cover_terms import CoverDraw, CoverTerms
from hushcast_protocol.base.crypto.secrets import ParcelKey
from hushcast_protocol.base.roster import Network, Relay, Roster
from hushcast_protocol.cover.cover_chain import CoverLoss
from hushcast_protocol.cover.network_cover import network_cover
from hushcast_runtime.context import Context
from hushcast_runtime.counters import Counters
from hushcast_runtime.environment import Environment, simulated_environment
from hushcast_runtime.storage.store import MemoryStore, SqliteStore
from hushcast_runtime.tracing import NoTracer

NET = Network("small", "hardened", EPOCH_SECONDS)


class CoverWorld:
    """A daemon's store, clock and network."""

    def __init__(self) -> None:
        self.now = 1e9
        self.quarter, self.epoch = 3, 100
        self.keys: dict[bytes, ParcelKey] = {}
        drawn = simulated_environment("chains")
        self.env = replace(drawn, now=lambda: self.now)
        self.store: MemoryStore | SqliteStore = MemoryStore()
        self.counters = Counters(OVERLAY_COUNTERS)
        relays = [self._relay(bytes([n + 1]) * 32, drawn) for n in range(30)]
        self.roster: Any = self._roster({one.id: one for one in relays})

    def _relay(self, name: bytes, env: Environment) -> Relay:
        key = self.keys[name] = ParcelKey.draw(env.randomness)
        return Relay(name, parse_address("127.0.0.1:9"), key.public(), 0)

    def _roster(self, relays: dict[bytes, Relay]) -> Roster:
        terms, draw = CoverTerms(20, 4, 0), CoverDraw(self.quarter, 0, bytes([self.quarter]) * 32)
        return Roster(NET, self.epoch, b"p" * 32, b"d" * 32, relays, cover=terms, cover_draw=draw)

    def is_later(self, days: int, quarter: int) -> None:
        """So many days pass, and the roster is of them and of a quarter."""
        self.now += days * 24 * EPOCH_SECONDS
        self.epoch, self.quarter = self.epoch + 24 * days, quarter
        self.roster = self._roster(self.roster.relays)

    def without(self, relay: bytes) -> None:
        """A relay leaves."""
        self.roster = self._roster({name: one for name, one in self.roster.relays.items() if name != relay})

    async def chain(self) -> KeptChain:
        """The chain, read back after a restart."""
        kept = KeptChain(Context(self.env, self.store, self.counters, NoTracer(), lambda *_: None))
        await kept.load()
        return kept

    async def lanes(self) -> KeptLanes:
        """The lanes, read back after a restart."""
        context = Context(self.env, self.store, self.counters, NoTracer(), lambda *_: None)
        kept = KeptLanes(network_cover(self.roster).rules, context)
        await kept.load()
        return kept

    async def follow(self, kept: KeptChain, loss: CoverLoss = CoverLoss.NOTHING) -> bool:
        return await kept.follow(network_cover(self.roster), self.roster, loss)
