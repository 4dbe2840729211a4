"""An upgrade: daemons of today take up the state directories that older code left, and little is lost."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest
import trio
from small_network import EPOCH_SECONDS, ONE, Node, SmallNetwork, until

from hushcast_directory.server.configured_set import SetOfOne
from hushcast_directory.server.resumption import resume
from hushcast_directory.server.roll import Roll
from hushcast_node.program import NODE
from hushcast_node.upgrade import MIGRATIONS
from hushcast_overlay.relay.identity import load_identity
from hushcast_protocol.base.addresses import memory_address
from hushcast_protocol.base.crypto.secrets import Seed, TopicSecret
from hushcast_protocol.base.crypto.signatures import Signed
from hushcast_protocol.base.epochs import EPOCHS_A_DAY
from hushcast_protocol.base.roster import RosterBody, roster_digest
from hushcast_protocol.content.bodies import Content
from hushcast_protocol.content.topics import make_topic
from hushcast_protocol.overlay.installations import HostRoot
from hushcast_runtime.environment import Environment, simulated_environment
from hushcast_runtime.storage.state_layout import DATABASE, FIRST, kept_version, migrate, step_back
from hushcast_runtime.storage.store import MemoryStore, SqliteStore

KEPT = sorted((Path(__file__).parents[1] / "data").glob("state-*"))
RELAYS, CLIENTS = 3, 2
PLACES = make_topic("places", ["kind", "a:0..65535"], TopicSecret(bytes(range(32))))
WHERE = 'a in [10, 20], kind = "depot"'
UNREAD = [b"in the inbox 2", b"in the inbox 3"]
WAITED = [b"in a spool %d" % number for number in range(4)]
WAITED += [b"taken in", b"in the outbox 0", b"in the outbox 1"]
AUTHOR = Seed(bytes(range(32))).public()


def no_randomness(count: int) -> bytes:
    raise AssertionError("a key is missing")


def store_of(home: Path) -> MemoryStore:
    """Read a database into memory: threads do not go with virtual time."""
    store = MemoryStore()
    database = sqlite3.connect(f"file:{home / 'state.db'}?mode=ro&immutable=1", uri=True)
    for kind, key, value in database.execute("SELECT kind, key, value FROM records"):
        store._records.setdefault(kind, {})[key] = value
    database.close()
    return store


class _Upgraded(SmallNetwork):
    """A small network whose daemons have kept keys and disks; its clock goes on where theirs stopped."""

    def __init__(self, nursery: trio.Nursery, kept: Path) -> None:
        self._began = float((kept / "now").read_text())
        super().__init__(nursery, RELAYS, CLIENTS, seed=2)
        self.directory.store = store_of(kept / "directory")
        self.directory.seed = Seed((kept / "directory" / "directory.key").read_bytes())
        for node in self.nodes:
            node.store = store_of(kept / node.name)
            if node.identity is not None:
                node.identity = load_identity(kept / node.name, no_randomness)

    def environment(self, name: str) -> Environment:
        return simulated_environment(f"{self.seed} {name}", self._began)


@asynccontextmanager
async def upgraded(kept: Path) -> AsyncIterator[SmallNetwork]:
    async with trio.open_nursery() as nursery:
        network = _Upgraded(nursery, kept)
        await network.up()
        yield network
        assert network.count("internal_errors") == 0
        assert network.count("roster_mismatches") == 0
        nursery.cancel_scope.cancel()


@pytest.fixture(params=KEPT, ids=lambda kept: kept.name)
def kept(request: pytest.FixtureRequest) -> Path:
    path: Path = request.param
    return path


async def test_there_is_a_state_to_take_up() -> None:
    assert [kept.name for kept in KEPT] == ["state-1", "state-2", "state-3"]


async def test_subscriptions_are_still_there_and_what_was_not_read(kept: Path) -> None:
    async with upgraded(kept) as net:
        reader = net.clients[0]
        held = [
            (each["topic"], each["where"], each["shown"]) for each in reader.daemon.service.subscriptions()
        ]
        assert sorted(held) == [("places", WHERE, 0), (ONE.name, "", 2)]
        old = store_of(kept / reader.name)
        before = {key for kind in ("subscription", "interest") for key, _ in await old.scan(kind)}
        assert before == {key for key, _ in await reader.store.scan("interest")}
        assert await kept_of(reader, "subscription", "mailbox", "daily-mailbox") == []
        places = await reader.listen(PLACES, WHERE)
        assert await places.hears(2) == [b"at 0", b"at 2"]
        assert [received.values for received in places.heard] == [{"a": 15, "kind": "depot"}] * 2
        assert {received.author for received in places.heard} == {AUTHOR}
        one = await reader.listen(ONE)
        assert (await one.hears(2))[:2] == UNREAD
        assert len(reader.daemon.service.subscriptions()) == 2


async def test_the_state_has_a_version_from_then_on(kept: Path) -> None:
    async with upgraded(kept) as net:
        assert {node.store.version for node in net.nodes} == {NODE.version}


async def test_a_migration_of_a_database_ends_with_its_version(kept: Path, tmp_path: Path) -> None:
    shutil.copy(kept / "client-0" / "state.db", tmp_path)
    assert kept_version(tmp_path) == 0
    store = SqliteStore(tmp_path / DATABASE)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(store.run)
        await migrate(store, MIGRATIONS)
        nursery.cancel_scope.cancel()
    store.close()
    assert kept_version(tmp_path) == NODE.version
    upgraded_in_memory = store_of(kept / "client-0")
    await migrate(upgraded_in_memory, MIGRATIONS)
    assert store_of(tmp_path)._records == {kind: of for kind, of in upgraded_in_memory._records.items() if of}


async def test_a_step_back_loses_nothing(kept: Path) -> None:
    store = store_of(kept / "client-0")
    await migrate(store, MIGRATIONS)
    upgraded = {kind: dict(records) for kind, records in store._records.items()}
    await step_back(store, MIGRATIONS)
    assert store.version == NODE.version - 1
    await migrate(store, MIGRATIONS)
    assert store._records == upgraded


async def test_a_directory_takes_up_its_chain(kept: Path) -> None:
    store = store_of(kept / "directory")
    await migrate(store, FIRST)
    assert store.version == len(FIRST)
    seed = Seed((kept / "directory" / "directory.key").read_bytes())
    signed = msgspec.msgpack.decode((await store.scan("roster"))[-1][1], type=Signed)
    newest = msgspec.msgpack.decode(signed.body, type=RosterBody)
    roll = Roll(newest.network, seed, store)
    await roll.load()
    kept_now, listing = await resume(roll, SetOfOne(RELAYS).at(seed.public(), memory_address(seed.public())))
    assert kept_now.chain.beginning == roster_digest(signed.body)
    assert listing is not None
    assert listing.epoch == newest.epoch
    assert len(listing.seats) == RELAYS


async def test_what_relays_held_for_a_mailbox_is_all_that_is_lost(kept: Path) -> None:
    """What was in an inbox, an outbox or an intake comes once; what relays had sent on is gone."""
    async with upgraded(kept) as net:
        one = await net.clients[0].listen(ONE)
        await trio.sleep(6 * EPOCH_SECONDS)
        assert sorted(one.payloads) == sorted(UNREAD + WAITED[4:])
        for node, kind in [(relay, kind) for relay in net.relays for kind in ("spool", "intake")]:
            assert await node.store.scan(kind) == []
        assert await net.clients[1].store.scan("outbox") == []


@pytest.mark.slow
async def test_trees_go_on_and_withdrawals_are_finished(kept: Path) -> None:
    async with upgraded(kept) as net:
        listed = {node.id for node in net.relays}
        assert all(set(roster_of(node)) == listed for node in net.nodes)
        one, places = await net.clients[0].listen(ONE), await net.clients[0].listen(PLACES, WHERE)
        for days in (0, 1):
            await trio.sleep(days * EPOCHS_A_DAY * EPOCH_SECONDS)
            for origin in net.relays:
                await net.drop_at(origin, ONE, Content(b"%s %d" % (origin.name.encode(), days)))
            await net.drop_at(net.relays[0], PLACES, Content(b"%d" % days, {"a": 15, "kind": "depot"}))
            expected = {b"%s %d" % (relay.name.encode(), days) for relay in net.relays}
            await until(lambda expected=expected: expected <= set(one.payloads))
            await places.hears(3 + days)
        await until(lambda: sum(net.leases().values()) == 2 * net.seats, EPOCHS_A_DAY * EPOCH_SECONDS)


@pytest.mark.slow
async def test_subscriptions_have_boxes_at_hosts_at_once(kept: Path) -> None:
    """The trees and leases of the day that lead to mailboxes are gone, and others are there."""
    async with upgraded(kept) as net:
        reader, publisher = net.clients
        ear = await reader.listen(ONE)
        routes = reader.daemon.overlay.routes.held
        day = net.calendar.day(net.now)
        assert {type(held.installation.root) for route in routes for held in route.on(day)} == {HostRoot}
        assert len(await reader.store.scan("owned-box")) == 2
        for relay in net.relays:
            assert not any(value[2:4] == b"!m" for _, value in await relay.store.scan("lease"))
        expected = {*UNREAD, *WAITED[5:]}
        while net.now < net.calendar.day_start(day + 1) + 3 * EPOCH_SECONDS:
            expected.add(b"at %d" % net.now)
            await publisher.daemon.service.publish(ONE, Content(b"at %d" % net.now))
            await trio.sleep(40)
        await ear.hears(len(expected))
        await trio.sleep(EPOCH_SECONDS)
        assert expected <= set(ear.payloads)
        assert len(set(ear.payloads)) == len(ear.payloads), "each once"


async def kept_of(node: Node, *kinds: str) -> list[tuple[bytes, bytes]]:
    return [record for kind in kinds for record in await node.store.scan(kind)]


def roster_of(node: Node) -> dict:
    newest = node.daemon.overlay.rosters.newest
    assert newest is not None
    return dict(newest.relays)
