"""The doctor: looks at what a daemon needs to work, and says of each thing what it found and what to do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hushcast.control_messages import Finding
from hushcast_node.carrier_parts import BrokersParts, CentralParts
from hushcast_node.daemon import NodeDaemon
from hushcast_node.program import NODE
from hushcast_node.settings import NodeSettings
from hushcast_protocol.base.findings import good, warning
from hushcast_protocol.overlay.profile import Root
from hushcast_runtime.environment import Environment
from hushcast_runtime.processes.examinations import examine_core_dumps, examine_disk, examine_ways
from hushcast_runtime.storage.recovery import examine_records
from hushcast_runtime.storage.state_layout import DATABASE
from hushcast_runtime.tor.socks_transport import SocksTransport
from hushcast_runtime.tor.transport import TorTransport
from hushcast_runtime.wording import counted


class NodeDoctor:
    """Examines the daemon that it lives in, before and after that has come up."""

    def __init__(self, settings: NodeSettings, env: Environment) -> None:
        self._settings = settings
        self._env = env
        self.tor: TorTransport | SocksTransport | None = None
        self.daemon: NodeDaemon | None = None

    async def examine(self) -> list[Finding]:
        """Return a finding for each thing looked at; takes a minute at most, a few seconds mostly."""
        settings = self._settings
        found = [*await examine_ways(settings, self.tor, self._env), *await self._network()]
        found.append(examine_disk(Path(settings.state)))
        found += examine_records(Path(settings.state) / DATABASE)
        if settings.testnet is None:
            found.append(examine_core_dumps(NODE.run_command))
        return [*found, *(self._presence() if settings.role == "relay" else [self._subscriptions()])]

    async def _network(self) -> list[Finding]:
        daemon, is_relay = self.daemon, self._settings.role == "relay"
        # Each loads its carrier, and a daemon has one.
        if self._settings.carrier == CentralParts.NAME:
            from hushcast_node.central_doctor import examine_central

            return await examine_central(daemon.central if daemon is not None else None)
        if self._settings.carrier == BrokersParts.NAME:
            from hushcast_node.brokers_doctor import examine_brokers

            return await examine_brokers(daemon.brokers if daemon is not None else None)
        from hushcast_node.overlay_doctor import examine_overlay

        side, transport = (daemon.overlay, daemon.transport) if daemon is not None else (None, None)
        is_testnet = self._settings.testnet is not None
        return await examine_overlay(side, transport, is_relay, self._env, is_testnet)

    def _held(self) -> list[dict[str, Any]]:
        return self.daemon.service.subscriptions() if self.daemon is not None and self.daemon.serves else []

    def _presence(self) -> list[Finding]:
        """Warn who has trees as a relay: rosters list when it is up, and they show when their owner is."""
        settings = self._settings
        held = [one for one in self._held() if one.get("by") != "host"]  # no tree tells of the others
        if not held or settings.testnet is not None or settings.profile().root is Root.LISTED:
            return []
        subscribed = counted(len(held), "subscription")
        return [
            warning(
                "presence",
                f"this relay's daemon has {subscribed}: who watches for weeks can tell whose they are",
                "move them to a client beside it, on another machine if you can"
                + ("; or take presence.trees out" if settings.presence.trees == "always" else ""),
            )
        ]

    def _subscriptions(self) -> Finding:
        held = self._held()
        # One that was told to relays stays ready when they all are gone: nothing reaches it then.
        ready = sum(one["ready"] and one.get("nodes", 1) > 0 for one in held)
        if ready < len(held):
            is_cut_off = self.daemon is not None and self.daemon.side.cut_off is not None
            told = "it is told again once it answers" if is_cut_off else "it is still being told"
            return warning("subscriptions", f"{ready} of {len(held)} ready", f"wait for the network: {told}")
        return good("subscriptions", f"{ready} of {len(held)} ready")
