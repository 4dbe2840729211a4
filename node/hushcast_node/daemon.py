"""The daemon: where its parts are made and wired, its carrier adapter and what applications get."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import trio

from hushcast_local.devices.devices import Devices
from hushcast_local.devices.hidden_topics import HiddenTopics
from hushcast_local.outbox import Outbox
from hushcast_local.prober import Prober
from hushcast_local.publisher import Publisher
from hushcast_local.second_looks import SecondLooks
from hushcast_local.service import Service
from hushcast_local.settings import InboxSection
from hushcast_local.subscriber import Subscriber
from hushcast_local.topic_keys import Derive
from hushcast_node.carrier_adapter import AdapterContext, CarrierAdapter
from hushcast_node.carrier_parts import BrokersParts, CarrierParts, CentralParts
from hushcast_node.counters import COUNTED
from hushcast_node.upgrade import MIGRATIONS
from hushcast_protocol.base import ground_truth
from hushcast_protocol.content.tokens import topic_key
from hushcast_runtime.carriers.carrier import Carrier
from hushcast_runtime.clock import DaemonClock
from hushcast_runtime.context import Context
from hushcast_runtime.counters import Counters
from hushcast_runtime.environment import Environment
from hushcast_runtime.storage.state_layout import migrate
from hushcast_runtime.storage.store import Store
from hushcast_runtime.tracing import NoTracer, Tracer
from hushcast_runtime.transports.base import Transport

if TYPE_CHECKING:
    from hushcast_node.brokers_adapter import BrokersAdapter
    from hushcast_node.central_adapter import CentralAdapter
    from hushcast_node.overlay_adapter import OverlayAdapter


@dataclass(frozen=True)
class NodeParts:
    """What a daemon is made of; all that differs between a server, a testnet and a simulation."""

    carrier: CarrierParts
    """Which network it is in, and what it needs there."""
    env: Environment
    transport: Transport
    store: Store
    tracer: Tracer = field(default_factory=NoTracer)
    derive: Derive = topic_key
    inbox: InboxSection = field(default_factory=InboxSection)
    probes_an_epoch: float | None = None
    """Of each subscription; `None`: as its carrier has it."""


class NodeDaemon:
    """One daemon. `run` makes it live; what applications ask is `service`."""

    def __init__(self, parts: NodeParts, counters: Counters | None = None) -> None:
        """Wire the parts; `counters` may be shared with what is around the daemon."""
        self._parts = parts
        self.clock = DaemonClock(parts.env, parts.carrier.network.calendar)
        self._env = self.clock.environment()
        self.counters = counters if counters is not None else Counters(COUNTED[parts.carrier.NAME])
        around = AdapterContext(self._env, self.clock, parts.transport, parts.store, self.counters)
        self.side: CarrierAdapter = _side(parts.carrier, around)
        self._service: Service | None = None

    @property
    def overlay(self) -> OverlayAdapter:
        """Its adapter, for those who know that this daemon is in an overlay."""
        from hushcast_node.overlay_adapter import OverlayAdapter

        assert isinstance(self.side, OverlayAdapter)
        return self.side

    @property
    def central(self) -> CentralAdapter:
        """Its adapter, for those who know that this daemon is in a central system."""
        from hushcast_node.central_adapter import CentralAdapter

        assert isinstance(self.side, CentralAdapter)
        return self.side

    @property
    def brokers(self) -> BrokersAdapter:
        """Its adapter, for those who know that this daemon is in a network of brokers."""
        from hushcast_node.brokers_adapter import BrokersAdapter

        assert isinstance(self.side, BrokersAdapter)
        return self.side

    @property
    def serves(self) -> bool:
        """Tell whether `run` has started, so that applications can be served."""
        return self._service is not None

    @property
    def service(self) -> Service:
        """What applications ask; there is one once `run` has started."""
        assert self._service is not None
        return self._service

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Live until cancelled. Reports started when applications can be served."""
        parts = self._parts
        async with trio.open_nursery() as nursery:
            context = Context(self._env, parts.store, self.counters, parts.tracer, nursery.start_soon)
            nursery.start_soon(parts.store.run)
            nursery.start_soon(self._start, context, task_status)
            await context.timetable.run()  # a task less, of which only starting has need

    async def _start(self, context: Context, task_status: trio.TaskStatus[None]) -> None:
        await migrate(context.store, MIGRATIONS)
        service = self._local(await self.side.start(context), context)
        await service.load()
        self._service = service
        context.tracer.tell(ground_truth.Started(self.side.role, self.side.profile_name))
        task_status.started()

    def _local(self, carrier: Carrier, context: Context) -> Service:
        parts = self._parts
        keys = self.side.topic_keys(context.env, parts.derive)
        outbox = Outbox(context.env, context.store)
        prober = Prober(carrier, keys, parts.probes_an_epoch, context)
        looks = SecondLooks(carrier, outbox, context)
        publisher = Publisher(carrier, keys, outbox, looks, context)
        subscriber = Subscriber(carrier, keys, prober, parts.inbox, context)
        topics = HiddenTopics(publisher, subscriber, outbox)
        return Service(
            publisher,
            subscriber,
            outbox,
            Devices(topics, subscriber, keys.network, carrier.calendar, context),
        )

    @property
    def transport(self) -> Transport:
        """What carries everything."""
        return self._parts.transport

    @property
    def ready(self) -> bool:
        """Tell whether it serves applications, and its adapter is ready."""
        return self.serves and self.side.ready

    @property
    def is_connected(self) -> bool:
        """Tell whether it is ready, and the network still answers."""
        return self.ready and self.side.cut_off is None

    def status(self) -> dict[str, Any]:
        """Describe the daemon."""
        service, network = self._service, self._parts.carrier.network
        return {
            "ready": self.is_connected,
            "cut_off": self.side.cut_off,
            "role": self.side.role,
            "network": network.name,
            "profile": self.side.profile_name,
            "epoch": network.calendar.epoch(self._env.now()),
            "clock": self.clock.describe(),
            **self.side.status(),
            **(service.status() if service is not None else {"subscriptions": 0, "planned": 0, "outbox": 0}),
            "counters": self.counters.as_dict(),
        }


def _side(parts: CarrierParts, around: AdapterContext) -> CarrierAdapter:
    """Make the adapter; of the others, and in a client of what serves others, nothing is loaded."""
    if isinstance(parts, CentralParts):
        from hushcast_node.central_adapter import CentralAdapter

        return CentralAdapter(parts, around)
    if isinstance(parts, BrokersParts):
        from hushcast_node.brokers_adapter import BrokersAdapter

        return BrokersAdapter(parts, around)
    if parts.identity is not None:
        from hushcast_node.relay_adapter import RelayAdapter

        return RelayAdapter(parts.identity, parts, around)
    from hushcast_node.overlay_adapter import OverlayAdapter

    return OverlayAdapter(parts, around)
