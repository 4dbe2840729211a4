"""A provider's disk: nothing tells two subscriptions of one daemon apart from two of two daemons."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from random import Random

import pytest
import trio
import trio.testing
from fake_daemon import FakeDaemon
from feeding import House, Owner, Subscriber
from msgspec.structs import asdict
from spatial_world import place

import hushcast
from hushcast_located.service.provider_store import BATCH, PROGRESS, SUBSCRIPTION, TABLE, ProviderStore
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.wire import encode
from hushcast_protocol.content.topics import parse_topic
from hushcast_protocol.spatial.located_requests import RequestConfirmation
from hushcast_protocol.spatial.located_subscription import LocatedSubscription
from hushcast_protocol.spatial.places import chord
from hushcast_protocol.spatial.subscription_register import (
    RegisteredSubscription,
    SubscriptionRegister,
    decode_record,
)
from hushcast_protocol.spatial.weight_table import sign_table
from hushcast_runtime.environment import simulated_environment
from hushcast_runtime.storage import recovery
from hushcast_runtime.storage.changes import Change
from hushcast_runtime.storage.state_layout import DATABASE
from hushcast_runtime.storage.store import MemoryStore, SqliteStore, StoreError

WANTED = LocatedSubscription(place(Random(1)), ("ba", "da"), 500, 700)


def rows(house: House) -> list[tuple[bytes, RegisteredSubscription]]:
    """Return the subscriptions in the order in which they lie in the database."""
    path = house.settings.state_path() / DATABASE
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as database:
        found = database.execute("SELECT key, value FROM records WHERE kind = 'subscription' ORDER BY rowid")
        records = [(name, decode_record(value)) for name, value in found]
    assert all(isinstance(record, RegisteredSubscription) for _, record in records)
    return [(name, record) for name, record in records if isinstance(record, RegisteredSubscription)]


def about(record: RegisteredSubscription) -> dict[str, object]:
    """Return all that a record says, but for what is drawn for it alone and what was asked for."""
    topic = parse_topic(record.answers)
    assert topic.secret is not None
    return {**asdict(record), "answers": (topic.name, topic.attributes)}


async def test_two_subscriptions_of_one_daemon_are_as_two_of_two(tmp_path: Path) -> None:
    async with trio.open_nursery() as nursery:
        daemon = FakeDaemon(tmp_path / "provider.sock")
        others = [FakeDaemon(tmp_path / f"{at}.sock", network=daemon.network) for at in range(3)]
        for one in (daemon, *others):
            await one.start(nursery)
        feed = hushcast.new_link("feed", private=True)
        house = House(tmp_path / "house", daemon, feed)
        house.store = SqliteStore(house.settings.state_path() / DATABASE)
        owner = Owner(others[0], feed)
        nursery.start_soon(house.store.run)
        async with house.running():
            with trio.fail_after(20):
                while len(found := daemon.service.subscriber.subscriptions) < 2:  # noqa: ASYNC110
                    await trio.sleep(0.005)
                for held in found:
                    await held.route.ready.wait()
            subscribers = [
                Subscriber(one, house.offer, WANTED) for one in (others[1], others[1], others[2]) * 3
            ]
            for subscriber in subscribers:
                await nursery.start(subscriber.listen)
                await subscriber.ask(subscriber.subscribe())
                await subscriber.until(RequestConfirmation)
            await owner.publish_table()
            await owner.publish(owner.make(3))
            await house.until("batches_answered")
        found = rows(house)
        assert [name for name, _ in found] == sorted(one.name for one in subscribers)  # not as they came
        first = about(found[0][1])
        assert all(about(record) == first for _, record in found)
        drawn = [value for name, record in found for value in (name, parse_topic(record.answers).secret)]
        assert len(set(drawn)) == 2 * len(found)
        # No moment finer than a day: of what a record says, one number is a time, and it counts days.
        assert {name for name, value in first.items() if isinstance(value, int)} == {"number", "until", "had"}
        assert first["until"] == subscribers[0].today + 7
        kinds = {
            kind for kind in ("subscription", "batch", "table", "progress") if await house.store.scan(kind)
        }
        assert kinds == {"subscription", "table", "progress"}
        nursery.cancel_scope.cancel()
    house.store.close()


async def test_tables_that_come_at_once_are_dropped_once(autojump_clock: trio.testing.MockClock) -> None:
    """Two tasks may come to drop the same one, each while the other waits for the disk."""
    store, owner = MemoryStore(), Seed(bytes(32))
    tables = [sign_table(owner, version, {"ba": 7}, 9, chord(100)) for version in range(1, 9)]
    old, new = tables[:6], tables[6:]  # a provider that was killed in the middle of it may have too many
    await store.write(*(Change(TABLE, table.digest, encode(table.whole)) for table in old))
    shelf = ProviderStore(
        store, simulated_environment("tables"), owner.public(), SubscriptionRegister(1), 1.0
    )
    await shelf.load()
    async with trio.open_nursery() as nursery:
        for table in new:
            nursery.start_soon(shelf.put_table, table, encode(table.whole))
    assert shelf.tables.keys() == {digest for digest, _ in await store.scan(TABLE)}
    assert sorted(shelf.tables.values()) == [5, 6, 7, 8]


async def test_what_was_withdrawn_or_has_ended_is_not_on_disk(tmp_path: Path) -> None:
    async with trio.open_nursery() as nursery:
        daemon = FakeDaemon(tmp_path / "provider.sock")
        await daemon.start(nursery)
        house = House(tmp_path / "house", daemon, hushcast.new_link("feed", private=True))
        path = house.settings.state_path() / DATABASE
        house.store = SqliteStore(path)
        nursery.start_soon(house.store.run)
        words = tuple(f"distinctive{number}" for number in range(3))
        wanted = LocatedSubscription(WANTED.place, words, 500, 700)
        async with house.running() as provider:
            with trio.fail_after(20):
                while len(held := daemon.service.subscriber.subscriptions) < 2:  # noqa: ASYNC110
                    await trio.sleep(0.005)
                for each in held:
                    await each.route.ready.wait()
            one, other = (Subscriber(daemon, house.offer, wanted) for _ in range(2))
            await one.ask(one.subscribe())
            await other.ask(other.subscribe(until=other.today))
            await one.ask(one.withdraw(2))
            await house.until("requests_taken", 3)
            today = other.today
            assert provider.shelf.register.expire(provider.shelf.register.names(), today) == []
            await provider.shelf.keep(other.name)
            provider.shelf.register.expire(provider.shelf.register.names(), today + 1)
            await provider.shelf.keep(other.name)
            assert len(await house.store.scan("subscription")) == 1  # of one the name, a number and a day
        nursery.cancel_scope.cancel()
    house.store.close()
    assert words[0].encode() not in path.read_bytes()


FOREIGN = ((b"", b""), (b"x", b"junk"), (b"\xff" * 40, b"\xc1" * 64), (b"a" * 32, bytes(8)))
"""Records that no provider wrote."""


async def test_what_is_damaged_is_set_aside(autojump_clock: trio.testing.MockClock) -> None:
    store, owner = MemoryStore(), Seed(bytes(32))
    good, bad = (sign_table(owner, version, {"ba": 7}, 9, chord(100)) for version in (1, 2))
    await store.write(
        Change(TABLE, good.digest, encode(good.whole)),
        Change(TABLE, bad.digest, encode(bad.whole)[:-1]),
        *(Change(kind, *record) for kind in (SUBSCRIPTION, BATCH, TABLE) for record in FOREIGN),
    )
    shelf = ProviderStore(
        store, simulated_environment("damaged"), owner.public(), SubscriptionRegister(1), 1.0
    )
    await shelf.load()
    assert shelf.tables == {good.digest: 1}
    assert [(kind, recovery._read(held).count) for kind, held in await store.scan(recovery.DAMAGED)] == [
        (b"batch", 4),
        (b"subscription", 4),
        (b"table", 5),
    ]


async def test_a_provider_does_not_start_without_what_it_answered_last(
    autojump_clock: trio.testing.MockClock,
) -> None:
    store = MemoryStore()
    await store.write(Change(PROGRESS, b"", b"junk"))
    shelf = ProviderStore(
        store, simulated_environment("damaged"), Seed(bytes(32)).public(), SubscriptionRegister(1), 1.0
    )
    with pytest.raises(StoreError, match="without it a batch might be answered twice"):
        await shelf.load()
