"""Networks in which whoever is above a process notes when it acknowledges; all others are in the harness."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import trio

from benchmarks.peers.installed import ROOT
from benchmarks.processes import ended
from hushcast_brokers.broker.daemon import Broker, BrokerParts
from hushcast_brokers.broker.downstream import hop_of as child_hop
from hushcast_brokers.counters import BROKER_COUNTERS
from hushcast_central.counters import PROXY_COUNTERS, SERVER_COUNTERS
from hushcast_central.proxy.daemon import CentralProxy, ProxyParts
from hushcast_central.server.daemon import CentralServer, ServerKeys, ServerParts
from hushcast_node.carrier_parts import BrokersParts, CarrierParts, CentralParts
from hushcast_node.daemon import NodeDaemon, NodeParts
from hushcast_protocol.base.addresses import Address
from hushcast_protocol.base.crypto.group import Scalar
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.link.hop_values import SendItems
from hushcast_protocol.brokers.broker_tree import BrokerPosition, BrokerRole
from hushcast_protocol.brokers.exposure import OPEN
from hushcast_protocol.brokers.network import BrokersNetwork
from hushcast_protocol.central.inner_message import inside_of, message_inside
from hushcast_protocol.central.introduction import SealingKey
from hushcast_protocol.central.network import CentralNetwork, Proxy, ProxyRole
from hushcast_protocol.central.profile import CENTRAL_HARDENED
from hushcast_protocol.central.pseudonym_register import hop_of
from hushcast_protocol.content.bodies import Content
from hushcast_protocol.content.hops import HopMessage
from hushcast_protocol.content.messages import Message
from hushcast_protocol.content.topics import Topic, write_link
from hushcast_runtime.counters import Counters
from hushcast_runtime.environment import system_environment
from hushcast_runtime.storage.store import MemoryStore
from hushcast_runtime.tracing import NoTracer
from hushcast_runtime.transports.tcp import TcpTransport

EPOCH = 36_000
READY_WITHIN = 60.0  # seconds
ANSWERED_WITHIN = 30.0  # seconds


class Watch:
    """Notes when what is sent down was all acknowledged: by each who takes it."""

    def __init__(self, sender: Broker | CentralServer) -> None:
        """Watch what a broker, or a server, sends."""
        self._took: dict[bytes, float] = {}
        self._sent: dict[bytes, float] = {}
        self._stirred = trio.Event()
        down: Any = sender._downstream if isinstance(sender, Broker) else sender._deliveries
        do, acknowledged = down._do, down.acknowledged

        def note_sent(machine: Any, to: bytes, actions: Any) -> None:
            if any(isinstance(action, SendItems) for action in actions):
                self._sent.setdefault(to, trio.current_time())
            do(machine, to, actions)

        def note_taken(link: Any, said: Any) -> None:
            one = link if isinstance(sender, Broker) else link.attachments[said.attachment]
            to = one.child if isinstance(sender, Broker) else one.pseudonym
            now = trio.current_time()
            acknowledged(link, said)
            if to in self._sent and not one.unacknowledged:
                self._took.setdefault(to, now - self._sent[to])
            self._stirred.set()

        down._do, down.acknowledged = note_sent, note_taken

    def begin(self) -> None:
        """Note anew."""
        self._took.clear()
        self._sent.clear()

    async def answer(self, taker: bytes) -> float:
        """Return how long it took until all that was sent since was acknowledged."""
        with trio.fail_after(ANSWERED_WITHIN):
            while taker not in self._took:
                self._stirred = trio.Event()
                await self._stirred.wait()
        return self._took[taker]


class Harness:
    """Runs daemons in this process, and starts others."""

    def __init__(self, nursery: trio.Nursery, stack: ExitStack, place: Path, at_once: bool) -> None:
        self.nursery, self._stack, self._place, self._at_once = nursery, stack, place, at_once
        self._count = 0

    async def broker(self, network: BrokersNetwork, seed: Seed, root: Address | None) -> Broker:
        """Run a broker here; the root is told no address."""
        parts = BrokerParts(
            network,
            seed,
            Seed.draw(os.urandom),
            root,
            () if root is None else None,
            OPEN,
            None,
            system_environment(),
            TcpTransport(),
            MemoryStore(),
            Counters(BROKER_COUNTERS),
            NoTracer(),
        )
        broker = Broker(parts)
        await self.nursery.start(broker.run)
        return broker

    async def daemon(self, carrier: CarrierParts) -> NodeDaemon:
        """Run a daemon here, until it is ready."""
        parts = NodeParts(carrier, system_environment(), TcpTransport(), MemoryStore(), probes_an_epoch=0.0)
        daemon = NodeDaemon(parts)
        self.nursery.start_soon(daemon.run)
        with trio.fail_after(READY_WITHIN):
            while not daemon.ready:  # noqa: ASYNC110 - it tells nobody
                await trio.sleep(0.05)
        return daemon

    def process(self, **settings: Any) -> Path:
        """Start what is in `answering.py`; return where its output goes."""
        self._count += 1
        kept = {"store": str(self._place / f"{self._count}.db"), "at_once": self._at_once}
        settings = {"terms": None} | settings | kept
        log = self._place / f"{self._count}.log"
        command = [sys.executable, "-m", "benchmarks.answers.answering", json.dumps(settings)]
        sink = self._stack.enter_context(log.open("wb"))
        process = subprocess.Popen(command, cwd=ROOT, stdout=sink, stderr=subprocess.STDOUT)  # noqa: S603
        self._stack.enter_context(ended(self._stack.enter_context(process)))
        return log


@asynccontextmanager
async def harness(place: Path, at_once: bool) -> AsyncIterator[Harness]:
    """Run what is started, until the end."""
    with ExitStack() as stack:
        async with trio.open_nursery() as nursery:
            yield Harness(nursery, stack, place, at_once)
            nursery.cancel_scope.cancel()


async def until(condition: Any) -> None:
    """Wait until something is so."""
    with trio.fail_after(READY_WITHIN):
        while not condition():  # noqa: ASYNC110 - it tells nobody
            await trio.sleep(0.05)


async def watched_edge(made: Harness, topic: Topic, wheres: Sequence[str]) -> tuple[NodeDaemon, Broker]:
    """Make an edge broker that shows one filter for some that hide; return a publisher, its parent."""
    root_seed, inner_seed, edge_seed = (Seed.draw(os.urandom) for _ in range(3))
    network = BrokersNetwork("answers", "clear", EPOCH, root_seed.public())
    root = await made.broker(network, root_seed, None)
    inner = await made.broker(network, inner_seed, root.address)
    log = made.process(
        kind="broker", network=_said(network), root=root.address, seed=edge_seed.reveal().hex()
    )
    await until(lambda: log.read_text().endswith("\n"))
    await root.replace_seats(
        (
            BrokerPosition(inner_seed.public(), inner.address, "inner", root_seed.public()),
            BrokerPosition(edge_seed.public(), Address(log.read_text().strip()), "edge", inner_seed.public()),
        )
    )
    await until(lambda: edge_seed.public() in inner.connected())
    terms = {"k": len(wheres), "condition": "source", "otherwise": "generalise"}
    for where in wheres:
        wants = [(write_link(topic), where)]
        made.process(kind="brokers", network=_said(network), root=root.address, wants=wants, terms=terms)
    await until(lambda: root.status()["filters"])
    return await made.daemon(BrokersParts(network, root.address)), inner


async def watched_client(made: Harness, wants: Sequence[tuple[str, str]]) -> tuple[NodeDaemon, Broker]:
    """Make a client; return a publisher, and the edge broker."""
    root_seed, edge_seed = Seed.draw(os.urandom), Seed.draw(os.urandom)
    network = BrokersNetwork("answers", "clear", EPOCH, root_seed.public())
    root = await made.broker(network, root_seed, None)
    edge = await made.broker(network, edge_seed, root.address)
    role: BrokerRole = "edge"
    await root.replace_seats((BrokerPosition(edge_seed.public(), edge.address, role, root_seed.public()),))
    await until(lambda: edge_seed.public() in root.connected())
    made.process(kind="brokers", network=_said(network), root=root.address, wants=wants)
    await until(lambda: root.status()["filters"])
    return await made.daemon(BrokersParts(network, root.address)), edge


async def watched_users(
    made: Harness, *users: Sequence[tuple[str, str]]
) -> tuple[NodeDaemon, CentralServer, list[list[bytes]]]:
    """Make users of a central system; return a publisher, the server, and the pseudonyms of each."""
    seed, sealing = Seed.draw(os.urandom), SealingKey.draw(os.urandom)
    network = CentralNetwork("answers", CENTRAL_HARDENED.name, EPOCH, seed.public(), sealing.public())
    roles: tuple[ProxyRole, ...] = ("publications", "deliveries")
    seeds = [Seed.draw(os.urandom) for _ in roles]
    unknown = tuple(
        Proxy(one.public(), Address("127.0.0.1:1"), role) for one, role in zip(seeds, roles, strict=True)
    )
    keys = ServerKeys(seed, sealing, Scalar.draw(os.urandom))
    parts = ServerParts(
        network,
        keys,
        Seed.draw(os.urandom),
        unknown,
        CENTRAL_HARDENED,
        system_environment(),
        TcpTransport(),
        MemoryStore(),
        Counters(SERVER_COUNTERS),
        NoTracer(),
    )
    server = CentralServer(parts)
    await made.nursery.start(server.run)
    proxies = []
    for one, role in zip(seeds, roles, strict=True):
        proxy = CentralProxy(
            ProxyParts(
                network,
                one,
                Seed.draw(os.urandom),
                role,
                server.address,
                system_environment(),
                TcpTransport(),
                MemoryStore(),
                Counters(PROXY_COUNTERS),
                NoTracer(),
            )
        )
        await made.nursery.start(proxy.run)
        proxies.append(Proxy(one.public(), proxy.address, role))
    listed = [[one.key.hex(), one.address, one.role] for one in proxies]
    about = [
        network.name,
        network.profile,
        network.epoch_seconds,
        seed.public().hex(),
        sealing.public().hex(),
    ]
    pseudonyms: list[list[bytes]] = []
    for wants in users:
        known = takers(server)
        made.process(kind="central", network=about, proxies=listed, wants=wants)
        await until(lambda known=known, wants=wants: len(takers(server) - known) == len(wants))
        pseudonyms.append([*(takers(server) - known)])
    return await made.daemon(CentralParts(network, CENTRAL_HARDENED, proxies)), server, pseudonyms


def takers(sender: Broker | CentralServer) -> set[bytes]:
    """Return the children whose link is open, or the pseudonyms that are attached."""
    down: Any = sender._downstream if isinstance(sender, Broker) else sender._deliveries
    return set(down._machines)


async def published(publisher: NodeDaemon, topic: Topic, day: int, **values: int) -> Message:
    """Return a message as its publisher hands it over."""
    publishing = publisher.service._publisher
    return await publishing._sealed(topic, Content(b"hello", values), day, None)


async def sealed(publisher: NodeDaemon, topic: Topic, day: int, **values: int) -> Message:
    """Return a message as a server keeps it."""
    return message_inside(inside_of(await published(publisher, topic, day, **values)))


def bring(sender: Broker | CentralServer, *messages: tuple[bytes, Message]) -> None:
    """Have a broker send messages to children, or a server to pseudonyms, at once."""
    if isinstance(sender, Broker):
        sends = [HopMessage(child_hop(child), message) for child, message in messages]
        sender._downstream.enqueue(sender._spool.put(sends))
    else:
        sends = [HopMessage(hop_of(pseudonym), message) for pseudonym, message in messages]
        sender._deliveries.enqueue(sender._spool.put(sends))


def _said(network: BrokersNetwork) -> list[Any]:
    return [network.name, network.profile, network.epoch_seconds, network.root.hex()]
