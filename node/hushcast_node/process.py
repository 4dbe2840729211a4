"""Runs a node as a process: from its settings to a life that a signal ends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import trio

from hushcast_brokers.keys import COMMUNITY_KEY
from hushcast_brokers.network_file import BrokersNetworkSection
from hushcast_central.network_file import CentralNetworkSection
from hushcast_local.control_server import ControlServer
from hushcast_node.carrier_parts import BrokersParts, CarrierParts, CentralParts, OverlayParts
from hushcast_node.counters import COUNTED
from hushcast_node.daemon import NodeDaemon, NodeParts
from hushcast_node.doctor import NodeDoctor
from hushcast_node.program import NODE
from hushcast_node.settings import NodeSettings
from hushcast_overlay.relay.identity import Identity, load_identity
from hushcast_runtime.counters import Counters
from hushcast_runtime.environment import Environment
from hushcast_runtime.files import load_seed
from hushcast_runtime.logs import log
from hushcast_runtime.processes.metrics import GAUGES, readings
from hushcast_runtime.processes.process import Load, open_transport
from hushcast_runtime.processes.process_frame import ProcessFrame, run_process
from hushcast_runtime.processes.readiness import Health
from hushcast_runtime.storage.store import SqliteStore
from hushcast_runtime.tor.consensus import compare_clock
from hushcast_runtime.tor.socks_transport import SocksTransport
from hushcast_runtime.tor.transport import TorTransport


def run_node(load: Load[NodeSettings]) -> None:
    """Run a node until SIGTERM or SIGINT; raises the `HushcastError` that ended it."""
    run_process(load, _Node)


class _Node(ProcessFrame[NodeSettings]):
    """One node process."""

    def __init__(self, settings: NodeSettings) -> None:
        super().__init__(settings, NODE, settings.environment(), Counters(COUNTED[settings.carrier]))
        self._doctor = NodeDoctor(settings, self._env)
        self._tor: TorTransport | SocksTransport | None = None
        self._daemon: NodeDaemon | None = None
        self._control = ControlServer(
            settings.socket_path(), self._status, self._doctor.examine, self._counters, settings.socket_group
        )

    async def _open_sockets(self, nursery: trio.Nursery) -> None:
        """Open the control socket first, so that `status` can show the rest."""
        await nursery.start(self._control.run)
        await self._serve_metrics(nursery, GAUGES)

    async def _work(self, store: SqliteStore, nursery: trio.Nursery) -> None:
        settings, env = self._settings, self._env
        identity = load_identity(settings.state_path(), env.randomness) if settings.role == "relay" else None
        name = identity.seed.public().hex() if identity else None
        self._tracer = settings.tracer(name, settings.network.epoch_seconds, env)
        transport = await open_transport(settings, nursery, self._announce)
        self._daemon = self._doctor.daemon = NodeDaemon(
            NodeParts(
                _carrier(settings, identity, env),
                env,
                transport,
                store,
                self._tracer,
                inbox=settings.inbox,
                probes_an_epoch=settings.coverage.probes_an_epoch,
            ),
            self._counters,
        )
        async with trio.open_nursery() as living:
            if isinstance(self._tor, TorTransport):  # a SOCKS port alone says nothing of the time
                living.start_soon(compare_clock, self._daemon.clock, self._tor)
            await living.start(self._daemon.run)
            self._control.open(self._daemon.service)
            log.info("running", role=settings.role)

    def health(self) -> Health:
        """Tell how far the node is: Tor, then its network."""
        settings, tor, daemon = self._settings, self._tor, self._daemon
        if daemon is None or not daemon.serves:
            if tor is not None and not tor.state.has_begun:
                return Health(False, f"waiting for tor: {tor.state.doing}")
            return Health(False, "starting")
        if not daemon.ready:
            return Health(False, (tor.state.problem if tor is not None else "") or daemon.side.waits_for())
        if tor is not None and not tor.state.connected:
            return Health(True, f"{settings.role}: {tor.state.away}, trying again")
        if (cut_off := daemon.side.cut_off) is not None:
            return Health(True, f"{settings.role}: {cut_off}")
        if (problem := daemon.clock.problem()) is not None:
            return Health(True, f"{settings.role}: {problem}")
        return Health(True, f"{settings.role}: working, {daemon.side.describe()}")

    def _announce(self, tor: TorTransport | SocksTransport) -> None:
        self._tor = self._doctor.tor = tor

    def _readings(self) -> Mapping[str, float]:
        return readings(self._status())

    def _status(self) -> dict[str, Any]:
        status: dict[str, Any] = {"ready": False, "role": self._settings.role}
        if self._daemon is not None:
            status = self._daemon.status()
        status["transport"] = self._settings.transport
        status["tor"] = asdict(self._tor.state) if self._tor is not None else None
        if self._tor is not None and not self._tor.state.connected:  # nobody is reached
            status["ready"] = False
        return status


def _carrier(settings: NodeSettings, identity: Identity | None, env: Environment) -> CarrierParts:
    """Return what the network of these settings wants of a daemon."""
    network = settings.network
    if isinstance(network, CentralNetworkSection):
        return CentralParts(network.network(), network.central_profile(), network.proxies())
    if isinstance(network, BrokersNetworkSection):
        member = None
        if settings.has_communities:
            member = load_seed(Path(settings.state) / COMMUNITY_KEY, env.randomness)
        own = settings.brokers
        return BrokersParts(network.network(), network.address(), own.edge_key(), member, own.community_key())
    return OverlayParts(
        network.network(),
        settings.profile(),
        settings.directories(),
        identity,
        ready=settings.ready.rule(),
        cover=settings.cover.rule(),
        reads_under_cover=settings.cover.read,
        trees=settings.presence.rule(),
    )
