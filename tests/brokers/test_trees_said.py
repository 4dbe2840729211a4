"""Who says an older tree than one that has just been taken from somebody else is told that one."""

from __future__ import annotations

from hanging_disk import Disk
from small_network import until
from small_tree import SmallTree, small_tree

from hushcast_protocol.base.crypto.signatures import Signed
from hushcast_protocol.brokers.broker_tree import BrokerPosition, check_tree, sign_tree
from hushcast_protocol.brokers.frames import NewTree

CHAIN = (("inner", "inner", "root"), ("edge", "edge", "inner"))


def newer(network: SmallTree, by: int) -> Signed:
    """Sign the tree as a version that is so much newer."""
    root = network.root
    seats = (BrokerPosition(root.key, root.daemon.address, "root", None), *network.seats)
    return sign_tree(root.seed, network.net, network.view.epoch + by, seats)


async def test_a_child_that_says_an_older_one_is_told_the_newer_one() -> None:
    async with small_tree(CHAIN) as network:
        edge, client = network["edge"].daemon, await network.client("edge")
        child = edge._children._links[client.key]
        older, newest = newer(network, 1), newer(network, 2)
        edge._held._set(check_tree(newest, network.net))  # nobody had a turn since to tell it
        await edge._children._take(child, None, NewTree(older), None)
        await until(lambda: NewTree(newest) in client.trees, 10.0, "the client is told")


async def test_a_parent_that_says_an_older_one_is_told_the_newer_one() -> None:
    async with small_tree(CHAIN) as network:
        edge, inner = network["edge"].daemon, network["inner"].daemon
        older, newest = newer(network, 1), newer(network, 2)
        version = check_tree(newest, network.net).version
        edge._held._set(check_tree(newest, network.net))
        await edge._upstream._take(edge._upstream._open, NewTree(older))
        await until(lambda: inner.tree.version == version, 10.0, "the parent is told")


async def test_one_that_is_signed_while_a_newer_one_is_said_is_not_held_in_place_of_it() -> None:
    """As after an old backup of the root was restored, which has forgotten what it signed since."""
    async with small_tree(CHAIN) as network:
        root, inner = network.root, network["inner"].daemon
        await root.stop()
        disk = root.store = Disk(root.store)
        await root.start()
        await network.linked()
        forgotten = newer(network, 8)
        network.members.remove(network["edge"])
        disk.hang()
        network.nursery.start_soon(network.list_all)
        await inner._held.take(forgotten)
        await until(lambda: root.daemon.tree.version > 2, 10.0, "the root is told")
        disk.turn()
        await until(lambda: root.status("brokers_listed") == 2, 10.0, "the root has signed")
        await network.linked()
