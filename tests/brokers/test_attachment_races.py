"""Attachments of a daemon while its disk, its edge broker or the root take their time."""

from __future__ import annotations

from typing import Any

import trio
from small_network import BEGIN, until
from small_tree import KEY, filter_of

from hushcast_brokers.client.attachment import ClientParts
from hushcast_brokers.client.attachment_records import (
    AttachedSubscription,
    AttachmentRecord,
    AttachmentRecords,
)
from hushcast_brokers.client.attachments import Attachments
from hushcast_brokers.client.clear_client_model import ClearClientModel
from hushcast_brokers.held_tree import HeldTree
from hushcast_brokers.tree_request import BrokerContact
from hushcast_node.counters import BROKERS_NODE
from hushcast_protocol.base.addresses import memory_address
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.crypto.signatures import Signed
from hushcast_protocol.brokers.broker_tree import BrokerPosition, sign_tree
from hushcast_protocol.brokers.clear_words import shown
from hushcast_protocol.brokers.exposure import OPEN
from hushcast_protocol.brokers.network import BrokersNetwork
from hushcast_runtime.carriers.contact import Contact
from hushcast_runtime.context import Context
from hushcast_runtime.counters import Counters
from hushcast_runtime.environment import simulated_environment
from hushcast_runtime.storage.changes import Change
from hushcast_runtime.storage.store import MemoryStore
from hushcast_runtime.tracing import NoTracer
from hushcast_runtime.transports.memory import MemoryNetwork

ROOT, *EDGES = [Seed(bytes(31) + bytes([number])) for number in range(1, 5)]
NETWORK = BrokersNetwork("n", "clear", 3600, ROOT.public())


class SlowStore(MemoryStore):
    """A store whose disk takes a second."""

    async def write(self, *changes: Change) -> None:
        await super().write(*changes)
        await trio.sleep(1.0)


def tree(version: int, edges: list[Seed]) -> Signed:
    root, *others = [(seed.public(), memory_address(seed.public())) for seed in (ROOT, *edges)]
    below = [BrokerPosition(key, address, "edge", root[0]) for key, address in others]
    return sign_tree(ROOT, NETWORK, version, [BrokerPosition(*root, "root", None), *below])


def client_parts(nursery: trio.Nursery, held: HeldTree, store: MemoryStore) -> ClientParts:
    """A daemon's parts, where nobody is reached."""
    env = simulated_environment("races", BEGIN)
    context = Context(env, store, Counters(BROKERS_NODE), NoTracer(), nursery.start_soon)
    root = BrokerContact(ROOT.public(), memory_address(ROOT.public()))
    transport = MemoryNetwork().transport()
    records, reading = AttachmentRecords(store), ClearClientModel(lambda: 0)
    return ClientParts(
        NETWORK, root, held, transport, records, context, reading, Contact(context.env.elapsed)
    )


async def test_all_that_were_left_are_told_of_an_end_though_one_of_them_goes_meanwhile() -> None:
    store = SlowStore()
    held = HeldTree(NETWORK, store, Counters(BROKERS_NODE))
    await held.take(tree(1, EDGES))
    kept = [AttachmentRecord(edge.public(), Seed(bytes([n]) * 32), BEGIN) for n, edge in enumerate(EDGES)]
    kept[-1].left_at = None
    for one in kept:
        one.asked[bytes(16)] = AttachedSubscription(bytes(16), bytes(16), shown(KEY, filter_of("")), OPEN)
    async with trio.open_nursery() as nursery:
        parts = client_parts(nursery, held, store)
        await parts.records.keep(*kept)

        async def ignored(*_: Any) -> None: ...

        attachments = Attachments(parts, ignored, lambda: None, lambda *_: True, lambda _: None)
        await attachments.load()
        await trio.sleep(1.0)
        nursery.start_soon(attachments.settle, {})
        await trio.sleep(0.5)
        await held.take(tree(2, EDGES[1:]))
        await until(lambda: len(attachments._left) == 1, 1.0, "the first is not in the tree any more")
        await trio.sleep(5.0)
        assert [one.is_ending for one in attachments.asked(bytes(16))] == [True, True]
        nursery.cancel_scope.cancel()
