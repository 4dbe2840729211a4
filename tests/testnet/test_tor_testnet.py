"""Ten relays and two clients over a private Tor network: what a network of real daemons must show."""

from __future__ import annotations

import itertools
import re
import sqlite3
import sys
from contextlib import suppress
from pathlib import Path

import pytest
import trio

import hushcast
from hushcast_directory.server.process import NETWORK_FILE
from hushcast_node.settings import NodeSettings
from hushcast_runtime.processes.config import load_settings
from hushcast_testnet import processes, testnet

pytestmark = [pytest.mark.tor, pytest.mark.processes]

_fresh = itertools.count()


def fresh_topic(name: str) -> str:
    """Tests share one testnet: each has topics of its own."""
    return f"{name} {next(_fresh)}"


async def test_nothing_comes_after_unsubscribing_and_no_relay_forwards_within_an_epoch(tor_testnet) -> None:
    topic = fresh_topic("farewell")
    net = tor_testnet
    async with net.listening("client-1", topic) as listening:
        before = await net.publish("relay-2", topic, "before")
        await listening.until({before})
        await net.unsubscribe("client-1", topic)
        seen = dict(listening.shown)
        after = await net.publish("relay-2", topic, "after")
        await trio.sleep(testnet.load(net.directory).epoch)
        late = await net.publish("relay-2", topic, "an epoch later")
        await trio.sleep(5)
        assert listening.shown == seen == {before: 1}
    sent = [line for relay in net.relays for line in net.observations(relay) if line["kind"] == "sent"]
    by_leases = {line["message"] for line in sent if len(line["tokens"]) == 1}  # others are handed on
    dropped = {
        line["message"] for relay in net.relays for line in net.observations(relay) if line["kind"] == "drop"
    }
    assert {before, after, late} <= dropped
    assert before in by_leases
    assert late not in by_leases
    box = next(line["mailbox"] for line in net.truths("client-1") if line.get("topic") == topic)
    trees = [
        line["tree"]
        for line in net.truths("client-1")
        if line["kind"] == "installed" and line["mailbox"] == box
    ]
    withdrew = {
        next(line["node"] for line in net.truths(relay) if line["kind"] == "started")
        for relay in net.relays
        if any(line["kind"] == "withdrawn" for line in net.observations(relay))
    }
    seated = {relay for tree in trees for relay, above in tree.items() if above is not None}
    assert seated
    assert seated <= withdrew


async def test_nothing_but_the_owner_ties_a_box_to_its_owner(tor_testnet) -> None:
    net = tor_testnet
    topics = {owner: fresh_topic("secret") for owner in ("client-1", "relay-5")}
    async with (
        net.listening("client-1", topics["client-1"]) as one,
        net.listening("relay-5", topics["relay-5"]) as two,
    ):
        ids = {owner: await net.publish("relay-1", topic, "x") for owner, topic in topics.items()}
        await one.until({ids["client-1"]})
        await two.until({ids["relay-5"]})
        keys = {
            name: next(line["node"] for line in net.truths(name) if line["kind"] == "started")
            for name in net.relays
        }
        for owner, topic in topics.items():
            box = next(line["mailbox"] for line in net.truths(owner) if line.get("topic") == topic)
            # What names the owner: a relay its key and address, a client nothing that it ever shows.
            names = [owner]
            if owner in keys:
                names += [keys[owner], (net.member(owner).address or "").partition(".")[0]]
            holders = 0
            for name in [*net.daemons, "directory"]:
                for record in records_of(net, name):
                    is_holder = holds(record, box)
                    holders += is_holder and name in keys
                    if name == owner:
                        continue
                    if is_holder:
                        tied = [known for known in names if holds(record, known)]
                        listed = [relay for relay, key in keys.items() if holds(record, key)]
                        # The owner's relay has a seat in its tree like others, and may be one of the top's.
                        is_one_of_several = tied == [keys.get(owner)] and len(listed) > 1
                        assert not tied or is_one_of_several, f"{name} ties {owner}"
                    assert topic.encode() not in record or name == "relay-1", f"{name} knows the topic"
            assert holders > 0  # its host does hold the box: the search finds what is there


async def test_a_daemon_with_a_tor_process_of_its_own_takes_part(tor_testnet, tmp_path: Path) -> None:
    net = tor_testnet
    topic = fresh_topic("own tor")
    described = testnet.load(net.directory)
    member = testnet.Member(
        "own", "client", str(tmp_path / "config.toml"), str(tmp_path / "state"), str(tmp_path / "socket")
    )
    Path(member.config).write_text(
        f'program = "node"\nrole = "client"\nstate = "{member.state}"\nsocket = "{member.socket}"\n'
        f'[tor]\nmode = "own"\ntorrc = "{described.tor.snippet}"\n'
        + (net.directory / "directory" / "state" / NETWORK_FILE).read_text()
    )
    command = [sys.executable, "-m", "hushcast_node", member.config]
    process = await processes.launch(member.name, command, tmp_path / "log")
    try:
        with trio.fail_after(120):
            while not (await testnet.describe(member)).get("ready"):  # noqa: ASYNC110
                await trio.sleep(0.1)
        own_tor = children(process.pid)
        assert len(own_tor) == 1
        async with net.listening("client-1", topic) as listening:
            async with hushcast.connect(member.socket) as daemon:
                published = await daemon.publish(topic, "by my own tor")
            await listening.until({published.id})
            assert listening.payloads == ["by my own tor"]
    finally:
        await processes.stop([process])
    with trio.fail_after(30):
        while any(Path(f"/proc/{pid}").exists() for pid in own_tor):  # noqa: ASYNC110
            await trio.sleep(0.05)


async def test_restarting_the_directory_and_each_daemon_loses_no_subscription(tor_testnet) -> None:
    topic = fresh_topic("restarts")
    net = tor_testnet
    async with net.listening("client-1", topic, keep=True):
        pass
    async with net.listening("relay-4", topic, keep=True):
        pass
    ids = set()
    daemons = net.daemons
    for names in (["directory"], daemons[0::3], daemons[1::3], daemons[2::3]):
        async with trio.open_nursery() as restarting:
            for name in names:
                restarting.start_soon(net.restart, name, name in ("relay-2", "client-1"))
        publisher = "client-2" if "client-2" not in names else "relay-9"
        for name in names:
            ids.add(await net.publish(publisher, topic, f"after {name}"))
    async with net.listening("client-1", topic) as one, net.listening("relay-4", topic) as two:
        await one.until(ids, 120)
        await two.until(ids, 120)
        assert one.shown == dict.fromkeys(ids, 1)
        assert two.shown == dict.fromkeys(ids, 1)


async def test_no_daemon_met_an_error_of_its_own(tor_testnet) -> None:
    for name in tor_testnet.daemons:
        status = await tor_testnet.status(name)
        assert status["counters"]["internal_errors"] == 0
        log = (Path(tor_testnet.member(name).config).parent / "log").read_text()
        assert "Traceback" not in log


async def test_logs_at_their_most_verbose_show_no_topic_key_or_address(tor_testnet) -> None:
    net = tor_testnet
    topic = fresh_topic("unspoken")
    async with net.listening("client-1", topic) as listening:
        await listening.until({await net.publish("relay-1", topic, "payload-never-logged")})
        mailbox = next(line["mailbox"] for line in net.truths("client-1") if line.get("topic") == topic)
    for name in [*net.daemons, "directory"]:
        config = Path(net.member(name).config)
        if name != "directory":
            assert load_settings(config, NodeSettings).log.level == "debug"
        log = (config.parent / "log").read_text()
        assert "unspoken" not in log
        assert "payload-never-logged" not in log
        assert mailbox not in log
        assert not re.search(r"[a-z2-7]{56}|[0-9a-f]{64}|127\.0\.0\.1", log), f"{name} logs an address or key"


def children(pid: int) -> list[int]:
    """Return the processes that a process started and that still run."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(FileNotFoundError, ProcessLookupError):
            if int(stat.read_text().rpartition(")")[2].split()[1]) == pid:
                found.append(int(stat.parent.name))
    return found


def records_of(net, name: str) -> list[bytes]:
    """Return all that a daemon keeps: rows of its database, lines of its traces, other files whole."""
    member = net.member(name)
    records = []
    for path in Path(member.state).rglob("*"):
        if path.is_file() and path.name not in ("state.db", "state.db-wal", "state.db-shm"):
            records.append(path.read_bytes())
    records += rows(Path(member.state) / "state.db")
    for kind in ("observations", "truth"):
        path = net.directory / "traces" / f"{name}.{kind}.jsonl"
        if path.exists():
            records += path.read_bytes().splitlines()
    return records


def rows(database: Path) -> list[bytes]:
    # Read only: the daemon that owns it is running.
    connection = sqlite3.connect(f"file:{database}?mode=ro", uri=True)
    try:
        return [
            kind.encode() + key + value for kind, key, value in connection.execute("SELECT * FROM records")
        ]
    finally:
        connection.close()


def holds(record: bytes, name: str) -> bool:
    """Tell whether a record holds a name: as text, or as the bytes that it is the hex of."""
    if name.encode() in record:
        return True
    return len(name) == 64 and bytes.fromhex(name) in record
