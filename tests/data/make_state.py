"""Makes a state of today's code that later code must be able to take up: `tests/node/test_upgrade.py` does.

Run it from the root of a checkout of the version whose state is to be kept, with that version's packages
first in the path, and name the folder to make: `python tests/data/make_state.py tests/data/state-NAME`.
The network is a simulated one: names, keys and addresses in it belong to nobody.
"""

from __future__ import annotations

import copy
import json
import sqlite3
import sys
from contextlib import suppress
from pathlib import Path

sys.path.insert(0, "tests/node")

import trio
import trio.testing
from small_network import EPOCH_SECONDS, ONE, TWO, Ear, Node, SmallNetwork, small_network, until

from hushcast_local.outbox import NoReceiptYet
from hushcast_protocol.base.crypto.secrets import Seed, TopicSecret
from hushcast_protocol.content.bodies import Content
from hushcast_protocol.content.predicates import parse_where
from hushcast_protocol.content.topics import Interest, make_topic, parse_topic
from hushcast_runtime.logs import LEVELS, log

PLACES = make_topic("places", ["kind", "a:0..65535"], TopicSecret(bytes(range(32))))
WHERE = 'a in [10, 20], kind = "depot"'
ENDED = parse_topic("topic that ended")
AUTHOR = Seed(bytes(range(32)))


async def main(out: Path) -> None:
    async with small_network(relays=3, clients=2, seed=7) as net:
        reader, writer = net.clients
        (await reader.daemon.service.subscribe(Interest(ONE))).close()
        (
            await reader.daemon.service.subscribe(Interest(PLACES, parse_where(WHERE, PLACES.attributes)))
        ).close()
        for topic in (TWO, ENDED):
            (await reader.daemon.service.subscribe(Interest(topic))).close()
        await reader.daemon.service.unsubscribe(TWO)  # leaves tombstones
        await trio.sleep(2 * EPOCH_SECONDS)
        await some_are_read(net, reader, writer)
        away = net.relays[2]
        await away.stop()
        await reader.daemon.service.unsubscribe(ENDED)  # one relay has not heard of it
        await reader.stop()
        await away.start()
        for number in range(4):
            await writer.daemon.service.publish(ONE, Content(b"in a spool %d" % number))
        await trio.sleep(10)
        snapshot = await taken_and_not_routed(net)
        for payload in (b"in the outbox 0", b"in the outbox 1"):
            with suppress(NoReceiptYet):
                await writer.daemon.service.publish(ONE, Content(payload))
        await trio.sleep(20)
        await writer.stop()
        await net.directory.stop()
        keep(out, net, snapshot)
        net.nursery.cancel_scope.cancel()


async def some_are_read(net: SmallNetwork, reader: Node, writer: Node) -> None:
    for number in range(4):
        await writer.daemon.service.publish(ONE, Content(b"in the inbox %d" % number))
        await until(lambda count=number + 1: reader.count("messages_delivered") == count)
    for number, kind in enumerate(("depot", "other", "depot")):
        values = {"a": 15, "kind": kind}
        publication = await writer.daemon.service.publish(PLACES, Content(b"at %d" % number, values), AUTHOR)
        await publication.taken()
    await until(lambda: reader.count("messages_delivered") == 6)
    ear = Ear(net, await reader.daemon.service.subscribe(Interest(ONE)), shows=False)
    await ear.hears(4)
    ear.feed.shown(ear.numbers[1])  # two were read
    ear.close()
    await trio.sleep(5)


async def taken_and_not_routed(net: SmallNetwork) -> dict[str, dict[bytes, bytes]]:
    """Return what is on a relay's disk between its receipt for a message and what it does with it."""
    origin, *others = net.relays
    for relay in others:
        await relay.stop()
    snapshots = []
    write_soon = origin.store.write_soon

    def noted(*changes: object) -> None:
        write_soon(*changes)
        if any(change.kind == "intake" and change.value is not None for change in changes):
            snapshots.append(copy.deepcopy(origin.store._records))

    origin.store.write_soon = noted
    await net.drop_at(origin, ONE, Content(b"taken in"))
    await origin.stop()
    (snapshot,) = snapshots
    return snapshot


def keep(out: Path, net: SmallNetwork, snapshot: dict[str, dict[bytes, bytes]]) -> None:
    """Write a state directory for each daemon, and what must come of them."""
    out.mkdir(parents=True)
    held = {node.name: node.store._records for node in net.nodes} | {
        "directory": net.directory.store._records
    }
    held[net.relays[0].name] = snapshot
    for name, records in held.items():
        (out / name).mkdir()
        write_database(out / name / "state.db", records)
    (out / "directory" / "directory.key").write_bytes(net.directory.seed.reveal())
    for relay in net.relays:
        identity = relay.identity
        for key, file in (
            (identity.seed, "identity.key"),
            (identity.service, "service.key"),
            (identity.parcel_key, "parcel.key"),
            (identity.filter_key, "filter.key"),
        ):
            (out / relay.name / file).write_bytes(key.reveal())
    (out / "now").write_text(f"{net.now}\n")
    counts = {
        name: {kind: len(of) for kind, of in sorted(records.items()) if of} for name, records in held.items()
    }
    print(json.dumps(counts, indent=1))


def write_database(path: Path, records: dict[str, dict[bytes, bytes]]) -> None:
    database = sqlite3.connect(path, isolation_level=None)
    database.execute("PRAGMA page_size=1024")
    database.execute(
        "CREATE TABLE IF NOT EXISTS records"
        " (kind TEXT NOT NULL, key BLOB NOT NULL, value BLOB NOT NULL, PRIMARY KEY (kind, key))"
    )
    for kind, of in sorted(records.items()):
        rows = [(kind, key, value) for key, value in sorted(of.items())]
        database.executemany("INSERT INTO records VALUES (?, ?, ?)", rows)
    database.execute("VACUUM")
    database.close()


if __name__ == "__main__":
    log._silent = LEVELS
    trio.run(main, Path(sys.argv[1]), clock=trio.testing.MockClock(autojump_threshold=0))
