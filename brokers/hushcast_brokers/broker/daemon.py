"""A broker: root of the tree, between others, or an edge broker with clients; which, the tree says."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import trio

from hushcast_brokers.broker.advertising import Advertising
from hushcast_brokers.broker.as_child import AsChild
from hushcast_brokers.broker.children import Children
from hushcast_brokers.broker.clear_matching import ClearMatching
from hushcast_brokers.broker.clients import MAX_CLIENTS, Clients
from hushcast_brokers.broker.community.charter_listeners import CharterListeners
from hushcast_brokers.broker.community.matching import CommunityMatching
from hushcast_brokers.broker.downstream import Downstream
from hushcast_brokers.broker.former_children import FormerChildren
from hushcast_brokers.broker.forwarding import BrokerForwarding, FormerBrokers
from hushcast_brokers.broker.full.hand_up import HandingUp
from hushcast_brokers.broker.full.handed_up_store import HandedUpStore
from hushcast_brokers.broker.full.matching import FullMatching
from hushcast_brokers.broker.incoming_links import IncomingLinks, LinkServices
from hushcast_brokers.broker.kept_publications import RootKeeping
from hushcast_brokers.broker.matching import Matching, Rematching
from hushcast_brokers.broker.publications import RootPublications
from hushcast_brokers.broker.strangers import BrokerStrangers
from hushcast_brokers.broker.tables import Tables
from hushcast_brokers.broker.tree_keeper import TreeKeeper
from hushcast_brokers.community.held_charters import HeldCharters
from hushcast_brokers.held_tree import HeldTree
from hushcast_brokers.program import BROKER
from hushcast_brokers.tomography.broker_statements import (
    BrokerHoldings,
    StatingBroker,
    TomographyAddress,
    TomographyStatements,
)
from hushcast_brokers.tomography.network_levels import NetworkLevels
from hushcast_brokers.upstream import ParentState, Upstream
from hushcast_protocol.base import ground_truth
from hushcast_protocol.base.addresses import Address
from hushcast_protocol.base.crypto.key_agreement import agreement_key
from hushcast_protocol.base.crypto.proof_of_work import difficulty_of
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.wire import PublicKey
from hushcast_protocol.brokers import frames
from hushcast_protocol.brokers.broker_tree import MAX_CHILDREN, BrokerPosition, BrokerTree
from hushcast_protocol.brokers.network import BrokersNetwork
from hushcast_protocol.brokers.privacy import Privacy, read_privacy
from hushcast_runtime.admission import Admission
from hushcast_runtime.context import Context
from hushcast_runtime.counters import Counters
from hushcast_runtime.environment import Environment
from hushcast_runtime.processes.keeping_section import NOTHING, KeepingSection
from hushcast_runtime.processes.listening_daemon import ListeningDaemon
from hushcast_runtime.processes.own_address import open_address
from hushcast_runtime.storage.spool import MAX_SPOOL, Spool
from hushcast_runtime.storage.state_layout import migrate
from hushcast_runtime.storage.store import Store
from hushcast_runtime.time_slices import in_steps
from hushcast_runtime.tracing import Tracer
from hushcast_runtime.transports.base import Transport
from hushcast_runtime.transports.connection_guard import ConnectionGuard


@dataclass(frozen=True)
class BrokerParts:
    """What a broker is made of."""

    network: BrokersNetwork
    seed: Seed
    """Proves it on links; the root's signs the tree."""
    service: Seed
    """The key of its address."""
    root: Address | None
    """The root's address, by the network's file; `None` at the root."""
    seats: tuple[BrokerPosition, ...] | None
    """At the root: all other brokers' places."""
    anonymity: frames.AnonymityTerms
    """What an edge broker asks of each filter that it shows; k = 1 asks for nothing."""
    clients: frozenset[PublicKey] | None
    """The clients that an edge broker serves; `None`: all who come."""
    env: Environment
    """With the machine's clock as it is."""
    transport: Transport
    store: Store
    counters: Counters
    tracer: Tracer
    tomography: TomographyAddress | None = None
    """The service to state to, if there is one."""
    keepers: frozenset[PublicKey] = frozenset()
    """At the root: the communities that there are, by their keepers' keys."""
    wire: int | None = None
    """At the root: what the network should speak; `None`: what it does."""
    keeping: KeepingSection = NOTHING
    """At the root: what is kept of publications."""


class Broker(ListeningDaemon):
    """One broker. `run` makes it live; once that has started it has an address."""

    def __init__(self, parts: BrokerParts) -> None:
        super().__init__(parts.env, parts.network.calendar, parts.counters)
        self._parts = parts
        self._seats, self._wanted, self._served = parts.seats, parts.wire, parts.clients
        self._held = HeldTree(parts.network, parts.store, parts.counters)
        self._keeper = TreeKeeper(parts.network, parts.seed, parts.root, self._held)
        self._charters = self._made_charters()
        self._tell_charters = CharterListeners(self._charters) if self._charters is not None else None
        self._spool = Spool(parts.store)
        self._advertising = Advertising(self._keeper.is_root, parts.counters, parts.tracer)
        self._admission = Admission(parts.seed.public(), parts.network.calendar, self._env, self._by_room)
        self._downstream: Downstream
        self._tables: Tables
        self._former: FormerBrokers
        self._matching: Matching
        self._clients: Clients
        self._children: Children
        self._kept: RootKeeping | None = None
        self._publications: RootPublications | None = None
        self._upstream: Upstream | None = None
        self._telling: TomographyStatements | None = None
        self._levels: NetworkLevels | None = None

    @property
    def tree(self) -> BrokerTree | None:
        """The newest tree that it holds."""
        return self._held.newest

    @property
    def parent_state(self) -> ParentState | None:
        """How it stands with its parent; `None` at the root."""
        return self._upstream.state if self._upstream is not None else None

    @property
    def privacy(self) -> Privacy:
        """What brokers may learn in its network."""
        return read_privacy(self._parts.network.profile)

    @property
    def communities(self) -> tuple[int, int] | None:
        """How many communities it knows of, and in how many it is; `None` in networks without."""
        if self._charters is None:
            return None
        return len(self._charters.known), len({one.community for one in self._charters.epochs.open})

    def connected(self) -> set[PublicKey]:
        """Return the keys of children, brokers and clients, whose link is open."""
        return self._children.keys

    async def replace_seats(self, seats: tuple[BrokerPosition, ...], wire: int | None = None) -> None:
        """Have the tree list these brokers from now on, besides the root; `DecodeError` if it is none.

        Before it listens that is so once it does, and of what `serve_only` says, too.
        """
        self._seats, self._wanted = seats, wire
        await self._sign()

    def replace_keepers(self, keepers: Collection[PublicKey]) -> None:
        """Have these communities, by their keepers' keys, and no others from now on; it is the root's."""
        if self._charters is not None:
            self._charters.replace_keepers(keepers)

    def serve_only(self, clients: frozenset[PublicKey] | None) -> None:
        """Serve, at an edge broker that runs, these clients alone from now on; all if it is `None`."""
        self._served = clients
        if self.listener is not None:
            for client in self._clients.serve_only(clients):
                self._downstream.disconnect(client)

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Live until cancelled. Reports started when it listens."""
        parts = self._parts
        async with trio.open_nursery() as nursery:
            context = Context(self._env, parts.store, parts.counters, parts.tracer, nursery.start_soon)
            nursery.start_soon(parts.store.run)
            await migrate(parts.store, BROKER.migrations.load())
            incoming = self._make(context)
            await self._load()
            listener = self.listener = await open_address(parts.service, parts.transport, parts.store)
            self.serve_only(self._served)  # others than it was made with, if it was told so while it loaded
            await self._sign()
            guard = ConnectionGuard(
                incoming.accept, incoming.serve, MAX_CLIENTS + 2 * MAX_CHILDREN, self._env, parts.counters
            )
            nursery.start_soon(self._follow_tree)
            nursery.start_soon(listener.serve, guard.admit)
            nursery.start_soon(self._downstream.run)
            nursery.start_soon(self._matching.run)
            nursery.start_soon(self._advertising.run)
            nursery.start_soon(self._admission.run)
            nursery.start_soon(self._keep_time)
            asked = self._publications, self._upstream, self._telling, self._tell_charters, self._levels
            for part in asked:
                if part is not None:
                    nursery.start_soon(part.run)
            parts.tracer.tell(ground_truth.Started(self._keeper.role or "broker", parts.network.profile))
            task_status.started()

    def status(self) -> dict[str, Any]:
        """Describe it, by no key and no filter."""
        tree = self.tree
        return {
            "role": self._keeper.role,
            "tree_version": tree.version if tree is not None else None,
            "parent": self.parent_state,
            "parent_connected": None if self._keeper.is_root else int(self.parent_state == "open"),
            "brokers_listed": len(tree.brokers) if tree is not None else 0,
            "brokers_below": len(self._keeper.children()),
            "brokers_connected": self._children.count(is_client=False),
            "clients": len(self._clients),
            "clients_connected": self._children.count(is_client=True),
            "filters": len(self._tables.routes) + len(self._matching.interests),
            "filters_shown": 0 if self._keeper.is_root else len(self._advertising),
            "messages_waiting": len(self._spool),
            "messages_waiting_bytes": self._spool.size,
            "kept_bytes": self._kept.size if self._kept is not None else None,
            "tomography_connected": int(self._telling.is_open) if self._telling is not None else None,
            "levels_watched": len(self._levels) if self._levels is not None else None,
            "difficulty": self._admission.difficulty,
            "clock": self.clock.describe(),
            "counters": self.counters.as_dict(),
        }

    def _make(self, context: Context) -> IncomingLinks:
        parts = self._parts
        calendar = parts.network.calendar
        downstream = self._downstream = Downstream(self._spool, context)
        matching = self._matching = self._make_matching(downstream, context)
        self._tables = Tables(matching, context)
        self._clients = Clients(
            self._served, matching.interests, downstream, self._admission, calendar, context
        )
        former = self._former = self._make_former(matching, context)
        forwarding = BrokerForwarding(matching, former, self._spool, downstream, calendar, context)
        if isinstance(former, HandingUp) and self._keeper.is_root:
            secret = agreement_key(parts.seed)
            former.returned = HandedUpStore(self.privacy.action, secret, forwarding, context)
        self._children = Children(downstream, self._advertising, self._held, self._tell_charters, context)
        if self._keeper.is_root:
            self._kept = RootKeeping(parts.keeping, calendar, context)
            self._publications = RootPublications(
                matching, forwarding, downstream, self._spool, self._admission, self._kept, context
            )
        else:
            below = AsChild(self._keeper, self._advertising, matching, forwarding, self._charters)
            self._upstream = Upstream(parts.network, self._held, below, parts.transport, context)
            below.upstream = self._upstream
        if parts.tomography is not None:
            me = StatingBroker(parts.network, parts.seed)
            self._telling = TomographyStatements(
                me, parts.tomography, self._holding(), self._held, parts.transport, context, self._levels
            )
        doors = LinkServices(
            self._tables, self._clients, BrokerStrangers(self._publications, self._charters, context)
        )
        return IncomingLinks(parts.network, parts.seed, self._keeper, self._children, doors, context)

    def _made_charters(self) -> HeldCharters | None:
        """Make what holds the charters of communities, where there are any."""
        parts = self._parts
        if not self.privacy.is_sealed:
            return None
        keepers = parts.keepers if self._keeper.is_root else None
        return HeldCharters(parts.network, agreement_key(parts.seed), keepers, parts.store, parts.counters)

    def _make_former(self, matching: Rematching | FullMatching, context: Context) -> FormerBrokers:
        """Return what becomes of what waits for brokers that leave, under the network's privacy model."""
        if isinstance(matching, FullMatching):
            calendar = self._parts.network.calendar
            matching.handing = HandingUp(matching, self._tables, self._spool, calendar, context)
            return matching.handing
        return FormerChildren(matching, self._tables, self._spool, self._downstream, context)

    def _make_matching(self, downstream: Downstream, context: Context) -> Rematching | FullMatching:
        """Return what the network's privacy model has brokers know."""
        parts = self._parts
        if read_privacy(parts.network.profile).model == "full":
            return FullMatching(parts.network, parts.seed, self._held, self._advertising, context)
        if self._charters is not None:
            key, minimum = self._keeper.key, parts.anonymity
            return CommunityMatching(key, minimum, self._charters, self._advertising, downstream, context)
        levels = self._known_levels(context)
        return ClearMatching(parts.anonymity, levels, self._advertising, downstream, context)

    def _known_levels(self, context: Context) -> NetworkLevels | None:
        """Return what an edge broker may know of other edge brokers' clients."""
        service = self._parts.tomography
        if service is not None and not self._keeper.is_root:
            ends = self._parts.seed.public(), self._parts.network.root
            self._levels = NetworkLevels(ends, service.key, service.spread, self._held, context)
        return self._levels

    def _holding(self) -> BrokerHoldings:
        """Return what is stated to the tomography service."""
        matching = self._matching
        return BrokerHoldings(lambda: matching.changes, lambda: matching.stated(self._keeper.role == "edge"))

    async def _load(self) -> None:
        await self._held.load()
        if self._charters is not None:
            await self._charters.load()
        await self._tables.load()
        await self._clients.load()
        await self._spool.load()
        if self._publications is not None:
            await self._publications.load()
        await self._matching.begin()

    async def _follow_tree(self) -> None:
        """Do what each newer tree asks for, until cancelled."""
        while True:
            tree = self._held.newest
            if tree is not None:
                await self._sign()  # it may be one of this root's own, from before a backup was restored
                self._matching.tree_changed()
                self._children.tell_tree()
                await self._leave_those_gone()
            if tree is self._held.newest:
                await self._held.changed()

    async def _sign(self) -> None:
        if self._seats is not None and self.listener is not None:
            days_kept = self._parts.keeping.days
            await self._keeper.sign(self._seats, self.address, self._wanted, days_kept, self._env.now())

    async def _leave_those_gone(self) -> None:
        """Serve nobody any more who is no child now."""
        below, is_edge = self._keeper.children(), self._keeper.role == "edge"
        for key in self.connected():
            if key not in below and not (is_edge and not self._keeper.is_listed(key)):
                self._children.let_go(key)
        if self._keeper.place is None:
            return
        if is_edge:
            for child in list(self._tables.routes.children):  # it was another kind of broker before
                await self._tables.drop(child, lambda: self._keeper.role == "edge")
                self._downstream.clear(child)
        else:
            self._clients.forget_all()
            self._former.follow(below)

    def _by_room(self) -> int:
        is_root = self._keeper.is_root
        return difficulty_of(self._spool.size / MAX_SPOOL if is_root else self._clients.fullness())

    async def _keep_time(self) -> None:
        calendar = self._parts.network.calendar
        while True:
            now = self._env.now()
            if self._env.is_certain():
                await self._clients.expire()
                for lapsed in self._matching.expire(now):
                    self._tables.forget(lapsed.below)
                    self._clients.forget_items(lapsed.clients)
                    await trio.lowlevel.checkpoint()
                if self._publications is not None:
                    await self._publications.expire(now)
                lapsing = self._spool.expire(lambda _, day: calendar.lapse(day) > now)  # noqa: B023 - over before the next
                expired = await in_steps(lapsing)
                self.counters.add("messages_expired", expired)
            await self._env.sleep_until(calendar.next_middle(now))
