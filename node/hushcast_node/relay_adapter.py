"""A relay's adapter: that of the overlay, and all that serves others, which a client does not even load."""

from __future__ import annotations

from hushcast_node.carrier_adapter import AdapterContext
from hushcast_node.carrier_parts import OverlayParts
from hushcast_node.overlay_adapter import OverlayAdapter
from hushcast_node.relay_role import OwnDaemon, RelayRole, make_relay
from hushcast_overlay.keepers.candidate_lists import CandidateLists
from hushcast_overlay.relay.cover.cover_means import DropMessage
from hushcast_overlay.relay.identity import Identity
from hushcast_overlay.relay.incoming_connections import MAX_CONNECTIONS
from hushcast_overlay.relay.name_work import RelayNameWork
from hushcast_overlay.relay.registration import register
from hushcast_overlay.routes.dropper import Dropper
from hushcast_overlay.routes.ready_connections import ReadyConnections
from hushcast_protocol.overlay.ready_slots import NONE_READY
from hushcast_runtime.context import Context
from hushcast_runtime.processes.own_address import open_address
from hushcast_runtime.transports.base import Listener
from hushcast_runtime.transports.connection_guard import ConnectionGuard


class RelayAdapter(OverlayAdapter):
    """One relay's place in the overlay."""

    def __init__(self, identity: Identity, parts: OverlayParts, around: AdapterContext) -> None:
        super().__init__(parts, around)
        self._identity = identity

    async def _serve_others(self, candidates: CandidateLists, context: Context) -> None:
        """Make the relay, open its address, and keep it listed."""
        parts, around, identity = self._parts, self._around, self._identity
        relay = self.relay = make_relay(
            identity,
            parts.profile,
            self.shards,
            candidates,
            self._connector,
            OwnDaemon(self.rosters, self.routes.take_listed, self._errands(context)),
            context,
        )
        await relay.load()
        listener = self.listener = await open_address(identity.service, around.transport, around.store)
        relay.host_word.is_at(listener.address)
        terms, changed = self.source.terms, self.rosters.changed
        working = RelayNameWork(parts.network.id, relay.id, self._env, around.store, terms, changed)
        await working.load()
        self._registration.working = working
        self.rosters.once(working.is_needed, context.spawn, working.run)
        guard = ConnectionGuard(
            relay.incoming.accept, relay.incoming.serve, MAX_CONNECTIONS, self._env, around.counters
        )
        context.spawn(listener.serve, guard.admit)
        self._await_epoch(relay, context)
        relay.kept_links.keep()
        self.rosters.once(relay.cover.has_part, context.spawn, relay.cover.run)
        context.spawn(self._stay_registered, relay, listener, context)

    def _errands(self, context: Context) -> DropMessage:
        """Return what drops messages that are not this daemon's: beside its own connections."""
        ready = ReadyConnections(NONE_READY, self._connector, self.shards, context)
        return Dropper(self._parts.profile, self.shards, self._connector, self._env, ready).drop

    async def _stay_registered(self, relay: RelayRole, listener: Listener, context: Context) -> None:
        """Hand in a fresh descriptor, now and every epoch."""
        network, difficulty = self._parts.network, relay.admission.difficulty
        await register(
            self._identity, listener, network, self.source, self._env, self._registration, difficulty
        )
        pause = network.epoch_seconds * self._env.uniform(0.6, 1.0)
        context.timetable.after(pause, context.spawn, self._stay_registered, relay, listener, context)

    def _await_epoch(self, relay: RelayRole, context: Context) -> None:
        calendar = self.rosters.calendar
        begins = calendar.epoch_start(calendar.epoch(self._env.now()) + 1)
        context.timetable.at(begins, context.spawn, self._begin_epoch, relay, context)

    async def _begin_epoch(self, relay: RelayRole, context: Context) -> None:
        await relay.begin_epoch(self._env.is_certain())
        self._await_epoch(relay, context)
