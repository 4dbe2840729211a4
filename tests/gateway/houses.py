"""Houses: each a gateway, its daemon, and MQTT clients; one network between them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trio
from fake_daemon import FakeDaemon
from memory_gateway import Gateway
from purposes_house import VOCABULARY

from hushcast_gateway.broker_state import open_broker
from hushcast_gateway.counted import GatewayCounters
from hushcast_gateway.network import Network
from hushcast_gateway.purposes.rules import Purposes
from hushcast_gateway.purposes.settings import PurposesOfUser
from hushcast_gateway.server import Server
from hushcast_gateway.settings import (
    AliasSection,
    DaemonSection,
    GatewaySettings,
    MapSection,
    NetworkTopicsSection,
)
from hushcast_runtime.environment import system_environment
from hushcast_runtime.store import MemoryStore


class House:
    """A gateway over a daemon; both may end and start again, each with what it had on disk."""

    def __init__(
        self, folder: Path, links: dict[str, str], maps: dict[str, str], other: House | None, **settings: Any
    ):
        folder.mkdir()
        label, purpose = settings.pop("label", None), settings.pop("purpose", None)
        self.daemon = FakeDaemon(folder / "s", network=other.daemon.network if other is not None else None)
        self.settings = GatewaySettings(
            daemon=DaemonSection(socket=str(folder / "s")),
            gateway=NetworkTopicsSection(
                alias=tuple(
                    AliasSection(name=name, link_file="/unused", label=label, purpose=purpose)
                    for name in links
                ),
                map=tuple(MapSection(from_=wanted, to=alias) for wanted, alias in maps.items()),
            ),
            **settings,
        )
        self.links = links
        self.store = MemoryStore()
        self.counters = GatewayCounters()
        self.network: Network

    @asynccontextmanager
    async def gateway(self) -> AsyncIterator[Gateway]:
        """Run the gateway for the block; the end is as sudden as a kill."""
        env = system_environment()
        section, anybody = self.settings.purposes, {"": PurposesOfUser(reserve=("#",))}
        rules = None if section is None else Purposes(section, anybody, VOCABULARY, env.now)
        self.network = network = Network(self.settings, self.links, env, self.counters, rules)
        state = await open_broker(self.store, env, network, purposes=rules)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(state.run)
            nursery.start_soon(network.run, state, self.store)
            yield Gateway(state, Server(state), nursery)
            nursery.cancel_scope.cancel()
