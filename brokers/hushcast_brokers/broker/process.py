"""Runs a broker as a process: from its settings to a life that a signal ends."""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Callable, Sequence

import msgspec
import trio

from hushcast_brokers import program
from hushcast_brokers.broker.clients import MAX_CLIENTS
from hushcast_brokers.broker.daemon import Broker, BrokerParts
from hushcast_brokers.broker.doctor import (
    examine_aggregation,
    examine_below,
    examine_communities,
    examine_parent,
    examine_service,
)
from hushcast_brokers.broker.gauges import BROKER_GAUGES
from hushcast_brokers.broker.settings import AnyBrokerSettings, BrokerSettings, RootSettings
from hushcast_brokers.broker.tree_report import TREE_SOCKET, tree_told
from hushcast_brokers.broker_sections import BROKER_FILE, NETWORK_FILE, broker_lines
from hushcast_brokers.counters import BROKER_COUNTERS
from hushcast_brokers.keys import BROKER_KEYS
from hushcast_brokers.network_file import brokers_section
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.epochs import Calendar
from hushcast_protocol.base.errors import UsageError
from hushcast_protocol.base.findings import Finding
from hushcast_protocol.brokers.broker_tree import MAX_CHILDREN, BrokerPosition
from hushcast_protocol.brokers.exposure import OPEN
from hushcast_protocol.brokers.network import BrokersNetwork
from hushcast_runtime.files import load_seed, write_private
from hushcast_runtime.processes.doctor import DaemonKind
from hushcast_runtime.processes.examined_process import Process, ProcessContext
from hushcast_runtime.processes.process import Load
from hushcast_runtime.processes.process_frame import run_process
from hushcast_runtime.transports.connection_guard import MAX_STRANGERS
from hushcast_runtime.wording import counted

BROKER = DaemonKind(
    program.BROKER,
    2 * MAX_CHILDREN + MAX_STRANGERS + 128,  # each below has a link; the database
    BROKER_COUNTERS,
    BROKER_GAUGES,
    BROKER_KEYS,
)
EDGE_BROKER = dataclasses.replace(BROKER, files=BROKER.files + MAX_CLIENTS)

_WAITING = {
    "not listed": "waiting for the root to list this broker",
    "not reached": "the parent is not reached, trying again",
    None: "connecting to the parent",
}


def kind_of(settings: AnyBrokerSettings) -> DaemonKind:
    """Return what kind of broker these settings are of: an edge broker has clients, too."""
    return EDGE_BROKER if settings.role == "edge" else BROKER


def run_broker(load: Load[AnyBrokerSettings]) -> None:
    """Run a broker until SIGTERM or SIGINT; raises the `HushcastError` that ended it.

    SIGHUP makes a root sign the tree that its configuration lists then, and an edge broker serve the clients
    that its own lists.
    """
    run_process(load, lambda own: _Root(own) if isinstance(own, RootSettings) else _Below(own))


class _Broker(Process):
    """What the processes of all brokers have in common."""

    def __init__(self, settings: AnyBrokerSettings) -> None:
        super().__init__(settings, kind_of(settings))
        self._broker: Broker | None = None
        self._calendar: Calendar | None = None
        self._key = b""

    def _sockets(self) -> Sequence[tuple[str, Callable[[], Awaitable[bytes]]]]:
        return [(TREE_SOCKET, self._tell_tree)]

    async def _tell_tree(self) -> bytes:
        broker = self._broker
        if broker is None or broker.tree is None:
            return b""
        name, is_open = self._settings.network.name, broker.parent_state == "open"  # type: ignore[attr-defined]
        return msgspec.json.encode(tree_told(name, broker.tree, self._key, broker.connected(), is_open))

    def _seeds(self, around: ProcessContext) -> list[Seed]:
        """Return the two seeds, drawn the first time; the first is of its key."""
        state = self._settings.state_path()
        seeds = [load_seed(state / name, around.env.randomness) for name in BROKER_KEYS]
        self._key = seeds[0].public()
        return seeds

    def _parts(
        self,
        around: ProcessContext,
        settings: AnyBrokerSettings,
        network: BrokersNetwork,
        seeds: Sequence[Seed],
    ) -> BrokerParts:
        """Return what any broker is made of; what is the root's alone, or the others', is put in then."""
        self._calendar = network.calendar
        self._tracer = settings.tracer(self._key.hex(), network.epoch_seconds, around.env)
        seed, service = seeds
        return BrokerParts(
            network,
            seed,
            service,
            root=None,
            seats=None,
            anonymity=OPEN,
            clients=None,
            env=around.env,
            transport=around.transport,
            store=around.store,
            counters=around.counters,
            tracer=self._tracer,
            tomography=settings.tomography.service() if settings.tomography is not None else None,
        )

    def _around(self) -> list[Finding]:
        broker = self._broker
        if broker is None or broker.listener is None:
            return []
        found = self._examine_wire(broker) + examine_below(broker.tree, self._key, broker.connected())
        found += [*examine_aggregation(broker.privacy), *examine_communities(broker.communities)]
        return [*found, *examine_service(broker.status()["tomography_connected"])]

    def _examine_wire(self, broker: Broker) -> list[Finding]:
        calendar = self._calendar
        if broker.tree is None or calendar is None:
            return []
        return broker.tree.wire.by(calendar.epoch(self._env.now())).examine(calendar)

    def _below_in_words(self) -> str:
        """Say how many brokers below are connected."""
        assert self._broker is not None
        tree, connected = self._broker.tree, self._broker.connected()
        below = tree.children(self._key) if tree is not None else []
        return f"{sum(one.key in connected for one in below)} of {len(below)} brokers below connected"


class _Root(_Broker):
    def __init__(self, settings: RootSettings) -> None:
        super().__init__(settings)
        self._own = settings
        self._signing = trio.Lock()

    def apply(self, fresh: AnyBrokerSettings) -> None:
        """Sign the tree of a configuration if it is another one; raises `UsageError`, then nothing of it."""
        if not isinstance(fresh, RootSettings):
            raise UsageError("role: a root that runs stays one: stop it first")
        broker = self._broker
        if broker is not None:
            seats, listens = _seats(fresh, self._key), broker.listener is not None
            if listens and any(seat.address == broker.address for seat in seats):
                raise UsageError("brokers: one has the address of this root; each has one of its own")
            self._living.start_soon(self._sign, broker, seats, fresh.wire)
            broker.replace_keepers(fresh.keepers())
        self._own = msgspec.structs.replace(
            self._own, listed=fresh.listed, communities=fresh.communities, wire=fresh.wire
        )

    def _make(self, around: ProcessContext) -> Broker:
        settings = self._own
        seeds = self._seeds(around)
        parts = self._parts(around, settings, settings.network.network_of(self._key), seeds)
        broker = self._broker = Broker(
            dataclasses.replace(
                parts,
                seats=_seats(settings, self._key),
                keepers=settings.keepers(),
                wire=settings.wire,
                keeping=settings.kept(),
            )
        )
        return broker

    async def _sign(self, broker: Broker, seats: tuple[BrokerPosition, ...], wire: int | None) -> None:
        async with self._signing:  # one after the other: each tree has a version of its own
            await broker.replace_seats(seats, wire)

    def _give_out(self) -> None:
        assert self._broker is not None
        network: BrokersNetwork = self._own.network.network_of(self._key)
        text = brokers_section(network, self._broker.address)
        write_private(self._own.state_path() / NETWORK_FILE, text.encode())

    def _own_findings(self) -> list[Finding]:
        return self._around()

    def _doing(self) -> str:
        if not self._own.listed:
            return "root: working, but no broker is listed yet: `hushcast admin broker admit` lists one"
        return f"root: working, {self._below_in_words()}"


class _Below(_Broker):
    """A broker that is not the root."""

    def __init__(self, settings: BrokerSettings) -> None:
        super().__init__(settings)
        self._own = settings

    def apply(self, fresh: AnyBrokerSettings) -> None:
        """Serve the clients that a configuration lists; raises `UsageError` where it is the root's."""
        if not isinstance(fresh, BrokerSettings):
            raise UsageError("role: a broker that runs does not become the root: stop it first")
        if self._broker is not None:
            self._broker.serve_only(fresh.clients())
        self._own = msgspec.structs.replace(self._own, edge=fresh.edge)

    def _make(self, around: ProcessContext) -> Broker:
        settings, network = self._own, self._own.network.network()
        seeds = self._seeds(around)
        if self._key == network.root:
            raise UsageError("network.root_key is this broker's own: empty its state, which is the root's")
        broker = self._broker = Broker(
            dataclasses.replace(
                self._parts(around, settings, network, seeds),
                root=settings.network.address(),
                anonymity=settings.minimum(),
                clients=settings.clients(),
            )
        )
        return broker

    def _give_out(self) -> None:
        assert self._broker is not None
        settings = self._own
        lines = broker_lines(self._key, self._broker.address, settings.role, settings.wish())
        write_private(settings.state_path() / BROKER_FILE, lines.encode())

    def _own_findings(self) -> list[Finding]:
        state = self._broker.parent_state if self._broker is not None else None
        return [examine_parent(state), *self._around()]

    def _doing(self) -> str:
        assert self._broker is not None
        state, role = self._broker.parent_state, self._own.role
        if state != "open":
            return f"{role}: {_WAITING[state]}"
        if role == "inner":
            return f"inner: working, {self._below_in_words()}"
        clients = int(self._broker.status().get("clients_connected", 0))
        return f"edge: working, {counted(clients, 'client')} connected"


def _seats(settings: RootSettings, root: bytes) -> tuple[BrokerPosition, ...]:
    """Return all other seats; raise `UsageError` where one has the root's own key."""
    seats: Sequence[BrokerPosition] = settings.seats(root)
    if any(seat.key == root for seat in seats):
        raise UsageError("brokers: one has the key of this root, which has its seat already")
    return tuple(seats)
