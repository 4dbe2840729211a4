"""A broker, or a daemon that subscribes, as a process over loopback tcp, its store on disk.

Its one argument is JSON: kind (`broker`, `brokers` or `central`), network, store (a path), at_once (whether
it has the old fault: it answers at once), for a broker its seed and for a daemon what it wants, as pairs of
link and condition, on what terms. What says where the others are: root, or proxies. A broker prints its
address first.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import trio

from hushcast_brokers.broker.daemon import Broker, BrokerParts
from hushcast_brokers.counters import BROKER_COUNTERS
from hushcast_node.carrier_parts import BrokersParts, CarrierParts, CentralParts
from hushcast_node.daemon import NodeDaemon, NodeParts
from hushcast_protocol.base.addresses import Address
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.brokers.exposure import OPEN
from hushcast_protocol.brokers.network import BrokersNetwork
from hushcast_protocol.central.network import CentralNetwork, Proxy
from hushcast_protocol.central.profile import CENTRAL_PROFILES
from hushcast_protocol.content.predicates import parse_where
from hushcast_protocol.content.topics import Interest, parse_topic
from hushcast_runtime.counters import Counters
from hushcast_runtime.environment import system_environment
from hushcast_runtime.logs import configure_logs
from hushcast_runtime.storage.store import SqliteStore
from hushcast_runtime.tracing import NoTracer
from hushcast_runtime.transports.drawn_answers import DrawnAnswers
from hushcast_runtime.transports.tcp import TcpTransport

AT_ONCE = 0.0004  # seconds


def answer_at_once() -> None:
    """Give this process the old fault."""
    honest = DrawnAnswers.__init__
    DrawnAnswers.__init__ = lambda self, env, within: honest(self, env, AT_ONCE)  # type: ignore[method-assign]


async def live(settings: dict[str, Any]) -> None:
    """Run until SIGTERM."""
    store = SqliteStore(Path(settings["store"]))
    try:
        with trio.open_signal_receiver(signal.SIGTERM) as signals:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_broker if settings["kind"] == "broker" else _daemon, settings, store)
                async for _ in signals:
                    nursery.cancel_scope.cancel()
                    return
    finally:
        store.close()


async def _broker(settings: dict[str, Any], store: SqliteStore) -> None:
    parts = BrokerParts(
        _brokers(settings),
        Seed(bytes.fromhex(settings["seed"])),
        Seed.draw(os.urandom),
        Address(settings["root"]),
        None,
        OPEN,
        None,
        system_environment(),
        TcpTransport(),
        store,
        Counters(BROKER_COUNTERS),
        NoTracer(),
    )
    broker = Broker(parts)
    async with trio.open_nursery() as nursery:
        await nursery.start(broker.run)
        print(broker.address, flush=True)


async def _daemon(settings: dict[str, Any], store: SqliteStore) -> None:
    if settings["kind"] == "brokers":
        carrier: CarrierParts = BrokersParts(_brokers(settings), Address(settings["root"]))
    else:
        name, profile, epoch, server, sealing = settings["network"]
        network = CentralNetwork(name, profile, epoch, bytes.fromhex(server), bytes.fromhex(sealing))
        proxies = [Proxy(bytes.fromhex(key), Address(at), role) for key, at, role in settings["proxies"]]
        carrier = CentralParts(network, CENTRAL_PROFILES[profile], proxies)
    daemon = NodeDaemon(NodeParts(carrier, system_environment(), TcpTransport(), store, probes_an_epoch=0.0))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(daemon.run)
        while not daemon.ready:  # noqa: ASYNC110 - it tells nobody
            await trio.sleep(0.05)
        for link, where in settings["wants"]:
            topic = parse_topic(link)
            interest = Interest(topic, parse_where(where, topic.attributes))
            (await daemon.service.subscribe(interest, terms=settings["terms"])).close()


def _brokers(settings: dict[str, Any]) -> BrokersNetwork:
    name, profile, epoch, root = settings["network"]
    return BrokersNetwork(name, profile, epoch, bytes.fromhex(root))


if __name__ == "__main__":
    configure_logs("error", False)
    given = json.loads(sys.argv[1])
    if given["at_once"]:
        answer_at_once()
    trio.run(live, given)
