"""The daemon: the one place where its parts are made and wired, as relay or as client."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import trio

from hushcast_directory.client import DirectoryClient
from hushcast_directory.trust import Trust
from hushcast_local.outbox import Outbox
from hushcast_local.probing import PROBES_AN_EPOCH, Prober
from hushcast_local.publisher import Publisher
from hushcast_local.service import Service
from hushcast_local.settings import InboxSection
from hushcast_local.subscriber import Subscriber
from hushcast_local.topic_keys import Derive, TopicKeys
from hushcast_node.counted import COUNTERS
from hushcast_node.relay import Relay, make_relay
from hushcast_node.upgrade import MIGRATIONS
from hushcast_overlay.carrier import OverlayCarrier
from hushcast_overlay.connector import Connector
from hushcast_overlay.dropping import Dropper
from hushcast_overlay.identity import Identity
from hushcast_overlay.incoming import MAX_CONNECTIONS
from hushcast_overlay.installing import Installer
from hushcast_overlay.mailboxes import Mailboxes
from hushcast_overlay.probing import Probes
from hushcast_overlay.registration import Registration, keep_registered
from hushcast_overlay.rosters import RosterKeeper
from hushcast_overlay.route import RouteRecords
from hushcast_overlay.routes import Routes
from hushcast_overlay.trees import Trees
from hushcast_overlay.upkeep import Upkeep
from hushcast_overlay.withdrawals import Withdrawals
from hushcast_protocol.base import observed, told
from hushcast_protocol.base.addresses import Address
from hushcast_protocol.base.handovers import CheckRoster
from hushcast_protocol.base.roster import Network, Roster, check_roster
from hushcast_protocol.base.wire import PublicKey, RelayId
from hushcast_protocol.content.tokens import topic_key
from hushcast_protocol.overlay.profile import Profile, Root
from hushcast_runtime.clock import DaemonClock
from hushcast_runtime.connection_guard import ConnectionGuard
from hushcast_runtime.context import Context
from hushcast_runtime.counters import Counters
from hushcast_runtime.environment import Environment
from hushcast_runtime.layout import migrate
from hushcast_runtime.own_address import open_address
from hushcast_runtime.store import Store
from hushcast_runtime.tracing import NoTracer, Tracer
from hushcast_runtime.transports.base import Listener, Transport


@dataclass(frozen=True)
class Parts:
    """What a daemon is made of; all that differs between a server, a testnet and a simulation."""

    network: Network
    profile: Profile
    directory_address: Address
    directory_key: PublicKey
    identity: Identity | None
    """A relay's keys; a client has none."""
    env: Environment
    transport: Transport
    store: Store
    tracer: Tracer = field(default_factory=NoTracer)
    derive: Derive = topic_key
    check_roster: CheckRoster = check_roster
    inbox: InboxSection = field(default_factory=InboxSection)
    probes_an_epoch: float = PROBES_AN_EPOCH


class Daemon:
    """One daemon. `run` makes it live; what applications ask is `service`."""

    def __init__(self, parts: Parts, counters: Counters | None = None) -> None:
        """Wire the parts; `counters` may be shared with what is around the daemon."""
        self._parts = parts
        self.clock = DaemonClock(parts.env, parts.network.calendar)
        self._env = self.clock.environment()
        self.counters = counters if counters is not None else Counters(COUNTERS)
        self._trust = Trust(parts.network, parts.directory_key)
        self.rosters = RosterKeeper(
            parts.network,
            self._trust,
            self._env,
            parts.store,
            self.counters,
            parts.check_roster,
            self.clock,
        )
        self._registration = Registration()
        self._service: Service | None = None
        self._routes: Routes | None = None
        self.relay: Relay | None = None
        self.listener: Listener | None = None
        """A relay's address."""

    @property
    def serves(self) -> bool:
        """Tell whether `run` has started, so that applications can be served."""
        return self._service is not None

    @property
    def service(self) -> Service:
        """What applications ask; there is one once `run` has started."""
        assert self._service is not None
        return self._service

    @property
    def routes(self) -> Routes:
        """What the overlay keeps routed for it; there are some once `run` has started."""
        assert self._routes is not None
        return self._routes

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Live until cancelled. Reports started when applications can be served."""
        parts, tracer = self._parts, self._parts.tracer
        directory = DirectoryClient(
            self._env, parts.transport, parts.network.id, parts.directory_address, self._trust
        )
        async with trio.open_nursery() as nursery:
            context = Context(self._env, parts.store, self.counters, tracer, nursery.start_soon)
            nursery.start_soon(parts.store.run)
            await migrate(parts.store, MIGRATIONS)
            await self.rosters.load()
            connector = Connector(parts.transport, self._env, self.rosters, self.counters)
            carrier = self._overlay(connector, context)
            service = self._local(carrier, context)
            if parts.identity is not None:
                await self._start_relay(parts.identity, connector, directory, context)
            nursery.start_soon(self.rosters.run, directory)
            if not isinstance(tracer, NoTracer):  # it looks through each roster
                nursery.start_soon(self._trace_rosters)
            await service.load()
            self._service = service
            role = "relay" if parts.identity else "client"
            tracer.tell(told.Started(role, parts.profile.name))
            task_status.started()

    def _overlay(self, connector: Connector, context: Context) -> OverlayCarrier:
        profile, rosters, env = self._parts.profile, self.rosters, context.env
        records = RouteRecords(context.store)
        installer = Installer(rosters, connector, env)
        dropper = Dropper(profile, rosters, connector, env)
        trees = Trees(self.relay_id, profile, rosters, env)
        self._routes = Routes(
            self.relay_id,
            profile,
            Mailboxes(self._parts.transport, connector, rosters.calendar, records, context),
            Upkeep(profile, rosters, trees, installer, records, context),
            Withdrawals(installer, records, rosters.calendar, context),
            records,
            context,
        )
        can_subscribe = profile.root is Root.MAILBOX or self.relay_id is not None
        probes = Probes(rosters, dropper, env)
        return OverlayCarrier(rosters, dropper, self._routes, probes, env, can_subscribe)

    def _local(self, carrier: OverlayCarrier, context: Context) -> Service:
        parts = self._parts
        keys = TopicKeys(parts.network.id, context.env, parts.derive)
        outbox = Outbox(context.env, context.store)
        prober = Prober(carrier.calendar, keys, parts.probes_an_epoch, context)
        return Service(
            Publisher(carrier, keys, outbox, context),
            Subscriber(carrier, keys, prober, parts.inbox, context),
            outbox,
        )

    async def _start_relay(
        self, identity: Identity, connector: Connector, directory: DirectoryClient, context: Context
    ) -> None:
        parts = self._parts
        relay = self.relay = make_relay(
            identity, parts.profile, self.rosters, connector, self.routes.take_listed, context
        )
        await relay.load()
        listener = self.listener = await open_address(identity.service, parts.transport, parts.store)
        guard = ConnectionGuard(
            relay.incoming.accept, relay.incoming.serve, MAX_CONNECTIONS, parts.env, self.counters
        )
        context.spawn(listener.serve, guard.admit)
        context.spawn(self._keep_time, relay)
        context.spawn(relay.kept_links.run)
        context.spawn(
            keep_registered,
            identity,
            listener,
            parts.network,
            directory,
            self._env,
            self._registration,
            relay.admission.difficulty,
        )

    async def _keep_time(self, relay: Relay) -> None:
        calendar = self.rosters.calendar
        while True:
            await self._env.sleep_until(calendar.epoch_start(calendar.epoch(self._env.now()) + 1))
            relay.begin_epoch(self._env.is_certain())

    async def _trace_rosters(self) -> None:
        while True:
            await self.rosters.changed()
            if self.rosters.newest is not None:
                self._trace_roster(self.rosters.newest)

    def _trace_roster(self, roster: Roster) -> None:
        """Note how many a roster lists; the first of them notes whom, too."""
        first = self.relay is not None and self.relay.id == min(roster.relays, default=None)
        listed = sorted(roster.relays) if first else None
        self._parts.tracer.observe(observed.Roster(len(roster.relays), listed))

    @property
    def relay_id(self) -> RelayId | None:
        """The name that the roster lists a relay by; a client has none."""
        return self._parts.identity.seed.public() if self._parts.identity else None

    @property
    def transport(self) -> Transport:
        """What carries everything."""
        return self._parts.transport

    @property
    def ready(self) -> bool:
        """Tell whether it serves applications, holds a roster and, as a relay, is registered."""
        registered = self.relay is None or self._registration.done
        return self.serves and self.rosters.newest is not None and registered

    def status(self) -> dict[str, Any]:
        """Describe the daemon."""
        relay, service = self.relay, self._service
        return {
            "ready": self.ready,
            "role": "relay" if self._parts.identity else "client",
            "address": self.listener.address if self.listener else None,
            "network": self._parts.network.name,
            "profile": self._parts.profile.name,
            "epoch": self.rosters.calendar.epoch(self._env.now()),
            "clock": self.clock.describe(),
            "roster": self._describe_roster(),
            "registration": self._registration.problem,
            "links": relay.peers.open_links() if relay else 0,
            "difficulty": self.rosters.least_difficulty(relay.id) if relay else 0,
            "leases": len(relay.leases.book) if relay else 0,
            **(service.status() if service is not None else {"subscriptions": 0, "outbox": 0}),
            "counters": self.counters.as_dict(),
        }

    def _describe_roster(self) -> dict[str, int] | None:
        newest = self.rosters.newest
        if newest is None:
            return None
        return {"epoch": newest.epoch, "relays": len(newest.relays), "held": self.rosters.held}
