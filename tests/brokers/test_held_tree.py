"""The tree that a daemon holds: only newer ones of its network's root, also after a restart."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from hushcast_brokers.counters import BROKER_COUNTERS
from hushcast_brokers.held_tree import NO_TREE, HeldTree
from hushcast_protocol.base.addresses import onion_address
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.crypto.signatures import Signed
from hushcast_protocol.base.errors import PeerError
from hushcast_protocol.base.roster import RosterView
from hushcast_protocol.brokers.broker_tree import BrokerPosition, check_tree, sign_tree
from hushcast_protocol.brokers.network import BrokersNetwork
from hushcast_runtime.counters import Counters
from hushcast_runtime.storage.store import MemoryStore

ROOT = Seed(bytes(31) + b"\1")
NETWORK = BrokersNetwork("n", "clear", 3600, ROOT.public())


def tree(version: int, edges: int = 0, network: BrokersNetwork = NETWORK, by: Seed = ROOT) -> Signed:
    seats = [BrokerPosition(by.public(), onion_address(by.public()), "root", None)]
    for number in range(edges):
        key = Seed(bytes(31) + bytes([number + 2])).public()
        seats.append(BrokerPosition(key, onion_address(key), "edge", by.public()))
    return sign_tree(by, network, version, seats)


async def test_only_newer_ones_are_taken_and_kept() -> None:
    store, counters = MemoryStore(), Counters(BROKER_COUNTERS)
    held = HeldTree(NETWORK, store, counters)
    await held.load()
    assert (held.newest, held.view) == (None, NO_TREE)
    heard: list[int] = []

    async def watch() -> None:
        await held.changed()
        heard.append(held.view.epoch)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(watch)
        await trio.testing.wait_all_tasks_blocked()
        await held.take(tree(2, edges=1))
    assert heard == [2]
    await held.take(tree(2, edges=1))
    await held.take(tree(1))
    assert counters["trees_taken"] == 1
    again = HeldTree(NETWORK, store, counters)
    await again.load()
    assert again.newest is not None
    assert again.view == RosterView(2, check_tree(tree(2, edges=1), NETWORK).digest) == held.view


async def test_two_of_one_version_are_refused() -> None:
    held = HeldTree(NETWORK, MemoryStore(), Counters(BROKER_COUNTERS))
    await held.take(tree(2, edges=1))
    with pytest.raises(PeerError, match="two trees of one version"):
        await held.take(tree(2, edges=2))
    assert held.newest is not None
    assert len(held.newest.edges) == 1


async def test_another_networks_is_not_taken_and_not_held_after_a_change_of_network() -> None:
    store, counters = MemoryStore(), Counters(BROKER_COUNTERS)
    other_root = Seed(bytes(31) + b"\x99")
    other = BrokersNetwork("other", "clear", 3600, other_root.public())
    there = HeldTree(other, store, counters)
    await there.take(tree(1, network=other, by=other_root))
    held = HeldTree(NETWORK, store, counters)
    await held.load()
    assert held.newest is None
    with pytest.raises(PeerError):
        await held.take(tree(1, network=other, by=other_root))
    await held.take(tree(1))
    assert held.view.epoch == 1
