"""The server of the central system: stores what pseudonyms subscribe to, matches, and keeps deliveries."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import trio

from hushcast_central.held_wire import HeldWire
from hushcast_central.program import SERVER
from hushcast_central.server.deliveries import Deliveries, ProxyLink
from hushcast_central.server.kept_publications import KeptPublications
from hushcast_central.server.outer_layer import OuterLayer
from hushcast_central.server.publications import ServerPublications
from hushcast_central.server.server_requests import MAX_UNDER_WAY, ServerRequests
from hushcast_central.server.subscriptions import ServerSubscriptions
from hushcast_protocol.base import ground_truth
from hushcast_protocol.base.crypto.group import Scalar
from hushcast_protocol.base.crypto.proof_of_work import difficulty_of
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.findings import Finding
from hushcast_protocol.base.link.hop_link import IDLE
from hushcast_protocol.base.link.links import Link
from hushcast_protocol.central.frames import (
    MAX_CENTRAL_FRAME,
    Attach,
    DeliveriesAcknowledged,
    Detach,
    FromProxy,
    Ping,
    Pong,
    decode_from_proxy,
)
from hushcast_protocol.central.introduction import SealingKey
from hushcast_protocol.central.network import MAX_PROXIES, CentralNetwork, Proxy
from hushcast_protocol.central.profile import CentralProfile
from hushcast_protocol.central.pseudonym_register import PseudonymRegister
from hushcast_runtime.context import Context
from hushcast_runtime.counters import Counters
from hushcast_runtime.environment import Environment
from hushcast_runtime.logs import log
from hushcast_runtime.processes.keeping_section import NOTHING, KeepingSection
from hushcast_runtime.processes.listening_daemon import ListeningDaemon
from hushcast_runtime.processes.own_address import open_address
from hushcast_runtime.storage.kept_store import KeptStore
from hushcast_runtime.storage.spool import Spool
from hushcast_runtime.storage.state_layout import migrate
from hushcast_runtime.storage.store import Store
from hushcast_runtime.time_slices import in_steps
from hushcast_runtime.tracing import Tracer
from hushcast_runtime.transports.base import Transport, TransportError
from hushcast_runtime.transports.channel import Channel, accept_channel
from hushcast_runtime.transports.channel_writer import Writer
from hushcast_runtime.transports.connection_guard import ConnectionGuard


@dataclass(frozen=True)
class ServerKeys:
    """What the server alone has."""

    seed: Seed
    """Proves it on links."""
    sealing: SealingKey
    """Opens introductions."""
    group: Scalar
    """Everything that reaches it is under this."""


@dataclass(frozen=True)
class ServerParts:
    """What a server is made of."""

    network: CentralNetwork
    keys: ServerKeys
    service: Seed
    """The key of its address."""
    proxies: tuple[Proxy, ...]
    profile: CentralProfile
    env: Environment
    """With the machine's clock as it is."""
    transport: Transport
    store: Store
    counters: Counters
    tracer: Tracer
    wire: int | None = None
    """What the network should speak; `None`: what it does."""
    keeping: KeepingSection = NOTHING
    """What is kept of publications."""


class _Proxy(ProxyLink):
    """A proxy's open link."""

    def __init__(self, proxy: Proxy, writer: Writer) -> None:
        super().__init__(writer)
        self.proxy = proxy
        self.slots = trio.Semaphore(MAX_UNDER_WAY)


class CentralServer(ListeningDaemon):
    """One server. `run` makes it live; once that has started it has an address."""

    def __init__(self, parts: ServerParts) -> None:
        super().__init__(parts.env, parts.network.calendar, parts.counters)
        self._parts = parts
        self._proxies = {proxy.key: proxy for proxy in parts.proxies}
        self._links: dict[bytes, _Proxy] = {}  # the newest of each proxy
        self._outer_layer = OuterLayer(parts.keys.group, parts.profile, self._env.randomness)
        self._wire = HeldWire(parts.network, parts.store, self._env)
        self._register = PseudonymRegister(parts.network.calendar, parts.env.randomness(16))
        self._share()
        self._spool = Spool(parts.store)
        self._requests: ServerRequests
        self._deliveries: Deliveries
        self._kept: KeptPublications
        self._subscriptions: ServerSubscriptions
        self._publications: ServerPublications

    def connected(self) -> set[bytes]:
        """Return the keys of proxies whose link is open."""
        return set(self._links)

    def replace_proxies(self, proxies: tuple[Proxy, ...]) -> None:
        """Serve these proxies from now on; links of others, and of those with another role now, end."""
        self._proxies = {proxy.key: proxy for proxy in proxies}
        self._share()
        for link in self._links.values():
            listed = self._proxies.get(link.proxy.key)
            if listed is None or listed.role != link.proxy.role:
                link.writer.scope.cancel()

    async def announce(self, wanted: int | None) -> None:
        """Have the network go on to a wire, if any is wanted, a day ahead; and know what is kept."""
        await self._wire.announce(self._parts.keys.seed, wanted, self._parts.keeping.days)

    def examine_wire(self) -> list[Finding]:
        """Tell whether this program is left behind, or will be: after an earlier release was installed."""
        return self._wire.examine()

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Live until cancelled. Reports started when it listens."""
        parts = self._parts
        async with trio.open_nursery() as nursery:
            context = Context(self._env, parts.store, parts.counters, parts.tracer, nursery.start_soon)
            nursery.start_soon(parts.store.run)
            await migrate(parts.store, SERVER.migrations.load())
            await self._wire.load()
            await self.announce(parts.wire)
            self._make(context)
            await self._kept.load()
            await self._subscriptions.load()
            await self._publications.load()
            self._subscriptions.clear(await self._spool.load(self._outer_layer.check))
            listener = self.listener = await open_address(parts.service, parts.transport, parts.store)
            serve = partial(self._serve, nursery)
            guard = ConnectionGuard(self._accept, serve, 2 * MAX_PROXIES, self._env, parts.counters)
            nursery.start_soon(listener.serve, guard.admit)
            nursery.start_soon(self._deliveries.run)
            nursery.start_soon(self._keep_time)
            parts.tracer.tell(ground_truth.Started("server", parts.profile.name))
            task_status.started()

    def status(self) -> dict[str, Any]:
        """Describe it, by no pseudonym and no proxy."""
        return {
            "proxies_listed": len(self._proxies),
            "proxies_connected": len(self._links),
            "pseudonyms": len(self._register),
            "tokens": self._register.tokens,
            "attached": len(self._deliveries),
            "deliveries_waiting": len(self._spool),
            "deliveries_waiting_bytes": self._spool.size,
            "kept_bytes": self._kept.size,
            "wire": self._wire.describe(),
            "clock": self.clock.describe(),
            "counters": self.counters.as_dict(),
        }

    def _share(self) -> None:
        """Give each proxy that brings subscribers its part of the register."""
        self._register.proxies = max(1, sum(one.role == "deliveries" for one in self._proxies.values()))

    def _make(self, context: Context) -> None:
        parts, sealing = self._parts, self._outer_layer
        deliveries = self._deliveries = Deliveries(self._spool, sealing, context)
        keeping, calendar = parts.keeping, parts.network.calendar
        kept = self._kept = KeptPublications(
            keeping.days,
            KeptStore(keeping.max_bytes if keeping.days else 0, context),
            parts.keys.group,
            self._spool,
            deliveries,
            calendar,
            context,
        )
        subscriptions = self._subscriptions = ServerSubscriptions(self._register, deliveries, kept, context)
        publications = self._publications = ServerPublications(
            sealing, self._register, self._spool, deliveries, kept, calendar, context
        )
        keys = parts.keys
        self._requests = ServerRequests(keys.sealing, keys.group, subscriptions, publications, context)

    async def _accept(self, stream: trio.abc.Stream) -> Channel[FromProxy]:
        link = Link.respond(
            self._parts.network.id, self._parts.keys.seed, self._env.randomness, MAX_CENTRAL_FRAME
        )
        channel, _ = await accept_channel(stream, link, decode_from_proxy)
        return channel

    async def _serve(self, nursery: trio.Nursery, channel: Channel[FromProxy]) -> None:
        """Serve one connection; raises a `PeerError` or `TransportError`."""
        proxy = self._proxies.get(channel.peer or b"")
        if proxy is None:
            self.counters.add("refused_unlisted")
            return
        self.counters.add("links_opened")
        link = _Proxy(proxy, Writer(channel, nursery.start_soon))
        if (former := self._links.get(proxy.key)) is not None:
            former.writer.scope.cancel()  # the proxy is back before its old link is known to be dead
        self._links[proxy.key] = link
        log.info("a proxy connected", role=proxy.role)
        try:
            with link.writer.scope as scope:
                scope.deadline = trio.current_time() + IDLE
                while batch := await channel.receive():
                    for frame in batch:
                        await self._take(nursery, link, frame)
                    scope.deadline = trio.current_time() + IDLE
        except TransportError:
            self.counters.add("links_failed")
            raise
        finally:
            link.writer.scope.cancel()
            self._deliveries.left(link)
            if self._links.get(proxy.key) is link:
                del self._links[proxy.key]
                log.info("the link of a proxy ended", role=proxy.role)

    async def _take(self, nursery: trio.Nursery, link: _Proxy, frame: FromProxy) -> None:
        if isinstance(frame, DeliveriesAcknowledged):
            self._deliveries.acknowledged(link, frame)
        elif isinstance(frame, Detach):
            self._deliveries.detach(link, frame.attachment)
        elif isinstance(frame, Ping):
            difficulty = difficulty_of(self._register.fullness(link.proxy.key))
            link.writer.post(Pong(difficulty, True, self._wire.signed))
        else:
            await link.slots.acquire()
            if isinstance(frame.what, Attach):  # in its turn, and without a wait: the next may take it back
                await self._requests.answer(link, link.proxy, frame, link.slots)
            else:
                nursery.start_soon(self._requests.answer, link, link.proxy, frame, link.slots)

    async def _keep_time(self) -> None:
        calendar = self._parts.network.calendar
        while True:
            now = self._env.now()
            if self._env.is_certain():
                # Messages before those they are for: then little is left to look for.
                lapsing = self._spool.expire(
                    lambda hop, day: calendar.lapse(day) > now or self._kept.is_bringing(hop)  # noqa: B023 - over before the next
                )
                expired = await in_steps(lapsing)
                self.counters.add("deliveries_expired", expired)
                await self._subscriptions.expire(now)
                await self._publications.expire(now)
                await self._kept.expire(now)
            await self._env.sleep_until(calendar.next_middle(now))
