"""Chance damages records on the disk of a daemon, which then does not start, whatever record it is.

Of what is damaged a daemon says that it is, and goes on without it. What must not be lost in silence stays an
error that says why.
"""

from __future__ import annotations

from typing import Any

import pytest
import trio
from broker_daemons import TreeOfDaemons, tree_of_daemons
from community_tree import community_tree
from damage import FOREIGN, WAYS, damage, set_aside
from small_central import TOPIC, small_central
from small_network import ONE, DirectoryProcess, Node, SmallNetwork, small_network, until

from hushcast_directory.server.restoration import last_restored
from hushcast_directory.server.resumption import resume
from hushcast_directory.server.roll import Roll
from hushcast_protocol.authorities.authority_set import Authorities, AuthorityContact
from hushcast_protocol.base.addresses import memory_address
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.errors import Refusal
from hushcast_protocol.base.roster import Network
from hushcast_protocol.brokers.broker_tree import BrokerRole
from hushcast_protocol.content.bodies import Content
from hushcast_runtime.storage.changes import Change
from hushcast_runtime.storage.recovery import DAMAGED
from hushcast_runtime.storage.store import MemoryStore, StoreError

LONG = 4 * 3600  # seconds of an epoch, so that none ends meanwhile

CLIENT = {
    "inbox",
    "inbox-progress",
    "inbox-seen",
    "installation",
    "interest",
    "outbox",
    "outbox-state",
    "roster",
    "roster-standing",
}
RELAY = {
    "intake",
    "label",
    "lease",
    "parcel",
    "roster",
    "roster-standing",
    "shard-part",
    "spool",
    "tombstone",
    "work",
}


SIGNED = {"authorities"}  # without it a daemon might follow what it has refused before


async def with_records(net: SmallNetwork) -> tuple[Node, Node]:
    """Have a client and a relay keep something of each kind that they have; both are stopped then."""
    client, relay = net.clients[0], net.relays[0]
    ear = await client.listen()
    for number in range(3):
        await client.daemon.service.publish(ONE, Content(b"%d" % number))
    await ear.hears(3)
    for other in net.relays:
        await other.stop()
    with pytest.raises(Refusal):
        await client.daemon.service.publish(ONE, Content(b"waits"))
    await client.stop()
    return client, relay


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
async def test_a_daemon_and_a_relay_start_without_what_is_damaged(way: str) -> None:
    async with small_network(relays=2, clients=1, epoch=LONG) as net:
        client, relay = await with_records(net)
        await net.relays[1].start()
        for node, kinds in ((relay, RELAY), (client, CLIENT)):
            store = node.store
            assert isinstance(store, MemoryStore)
            damaged = damage(store, way, kinds, SIGNED)
            await node.start()
            if way == "foreign":
                assert set_aside(store) == damaged
            elif way == "truncated":
                assert set_aside(store) >= {"roster-standing", "interest" if node is client else "lease"}


@pytest.mark.parametrize("way", WAYS)
async def test_a_server_and_its_proxies_do(way: str) -> None:
    async with small_central() as net:
        ear = await net.subscriber(TOPIC)
        await net.published(TOPIC)
        await ear.leave()
        waiting = await net.published(TOPIC)
        kinds = {
            net.server: {"publication", "pseudonym", "spool"},
            net.deliveries: {"transformation"},
        }
        for member, held in kinds.items():
            await member.stop()
            damaged = damage(member.store, way, held)
            await member.start()
            if way == "foreign":
                assert set_aside(member.store) == damaged
            elif way == "truncated":
                assert set_aside(member.store) >= held
        await net.linked()
        if way == "foreign":
            again = await net.attached(ear.person)
            await until(lambda: waiting.id in [message.id for message in again.person.heard], 60.0)


ROWS: tuple[tuple[str, BrokerRole, str], ...] = (
    ("top", "inner", "root"),
    ("inner", "inner", "top"),
    ("edge", "edge", "inner"),
)
BROKER = {"client", "publication", "route", "spool", "subscription"}
LAYERED = {"factor", "former-label", "handed-up", "shown"}
AT_ROOT = {"handed-up", "publication"}
AT_EDGE = {"asked", "attachment", "inbox", "interest", "outbox", "outbox-state"}
IN_COMMUNITY = {"charter", "epoch", "tree"}


async def damaged_all(network: TreeOfDaemons, way: str, kinds: dict[Any, set[str]]) -> None:
    """Stop members and daemons, damage their records, and start them again, from the root down."""
    for one in kinds:
        await one.stop()
    for one, held in kinds.items():
        damaged = damage(one.store, way, held)
        await one.start()
        if way == "foreign":
            at_root = AT_ROOT if one in network.members and one is not network.root else set()
            await until(lambda one=one, wanted=damaged - at_root: set_aside(one.store) == wanted)


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("profile", ["clear", "full/2"])
async def test_a_broker_and_its_clients_do(profile: str, way: str) -> None:
    async with tree_of_daemons(0, ROWS, profile=profile) as network:
        node = network.node("reader")
        node.edge = network["edge"].key
        await node.start()
        ear = await node.listen()
        await node.daemon.service.publish(ONE, Content(b"before"))
        await ear.hears(1)
        layered = LAYERED if profile != "clear" else set()
        opening = {"opening"} if profile != "clear" else set()
        kinds: dict[Any, set[str]] = dict.fromkeys(network.members, BROKER | layered)
        await damaged_all(network, way, kinds | {node: AT_EDGE | opening})
        await network.linked()
        await until(lambda: node.daemon.ready)
        if way == "foreign":
            await node.daemon.service.publish(ONE, Content(b"after"))


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
async def test_a_community_does(way: str) -> None:
    async with community_tree(ROWS) as network:
        keeper = network.keeping[0]
        node = await network.daemon("reader", keeper, "edge")
        await keeper.admit(network["edge"], node)
        await network.heard(keeper)
        await damaged_all(network, way, dict.fromkeys((network.root, network["edge"], node), IN_COMMUNITY))
        await network.linked()
        if way != "flipped":  # what is flipped may be read, as the key of an epoch
            await keeper.admit()  # what the root has lost its keeper hands in again
            await network.heard(keeper)


DIRECTORY = {
    "agreed",
    "beacon",
    "cut",
    "cut-descriptors",
    "descriptor",
    "leaves",
    "listing",
    "proven",
    "work-rule",
}
VOTES = {"authority", "former-key", "restored", "roster"}
"""Without these a directory might sign for an epoch twice, or daemons with its former key would be lost."""


@pytest.mark.parametrize("way", WAYS)
async def test_a_directory_does(way: str) -> None:
    async with small_network(relays=3, clients=0) as net:
        directory = net.directory
        assert isinstance(directory, DirectoryProcess)
        await trio.sleep(4 * net.epoch)
        await directory.stop()
        damaged = damage(directory.store, way, DIRECTORY, VOTES)
        await directory.start()
        before = net.calendar.epoch(net.now)
        await until(lambda: directory.agreeing.epoch is not None and directory.epoch > before, 600.0)
        if way == "foreign":
            assert set_aside(directory.store) == damaged


async def what_was_signed(store: MemoryStore) -> None:
    """Read what a directory does not begin without."""
    seed = Seed(b"s" * 32)
    roll = Roll(Network("small", "hardened", 60), seed, store)
    await roll.load()
    await last_restored(store)
    await resume(roll, Authorities.of([AuthorityContact(seed.public(), memory_address(seed.public()))], 1))


@pytest.mark.parametrize("kind", sorted(VOTES))
async def test_a_directory_does_not_without_what_it_signed(kind: str) -> None:
    store = MemoryStore()
    store.write_soon(*(Change(kind, key, value) for key, value in FOREIGN[:1]))
    with pytest.raises(StoreError, match=r"damaged \(.*\): without it .* `hushcast admin restore`"):
        await what_was_signed(store)
    assert await store.scan(DAMAGED) == []
