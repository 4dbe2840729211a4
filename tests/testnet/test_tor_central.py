"""A central system over a private Tor network: what a server, two proxies and six daemons must show."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import trio
from joining import joined
from sockets_seen import look_at_sockets

from hushcast_runtime.storage.state_lock import holder
from hushcast_testnet import testnet
from hushcast_testnet.demonstrations.carrier_demo import central_course
from hushcast_testnet.demonstrations.course import CourseOutcome, converse
from hushcast_testnet.inventory import Member
from hushcast_testnet.layouts import CentralLayout
from hushcast_testnet.tor.private_tor import TorNetwork

pytestmark = [pytest.mark.tor, pytest.mark.processes]


@dataclass(frozen=True)
class Conversed:
    """A testnet in which the demonstration's conversation was had, and what was seen of it."""

    directory: Path
    outcome: CourseOutcome
    connected: Counter[str]
    """Sockets of each daemon, in all looks."""
    strange: set[tuple[str, tuple[str, int], tuple[str, int]]]
    """Those that lead elsewhere than to tor."""


@pytest.fixture(scope="module")
def conversed(tmp_path_factory: pytest.TempPathFactory, tor_network: TorNetwork) -> Iterator[Conversed]:
    directory = tmp_path_factory.mktemp("central") / "net"
    with joined(directory, tor_network, CentralLayout(6, 2)):
        yield trio.run(converse_under_eyes, directory, tor_network)


async def converse_under_eyes(directory: Path, tor_network: TorNetwork) -> Conversed:
    loaded = testnet.load(directory)
    pids = {member.name: holder(Path(member.state)) or 0 for member in loaded.members}
    tor_pids = {process.pid for process in tor_network.processes}
    client = tor_network.clients[0]
    doors = {int(door.rpartition(":")[2]) for door in (client.control, client.socks)}
    connected, strange = Counter[str](), set()

    async def look() -> None:
        while True:
            looks = [look_at_sockets(pids, tor_pids, doors) for _ in range(2)]
            connected.update(looks[0][0])
            # What was opened or closed while the kernel's table was read has no owner yet or any more.
            strange.update(looks[0][1] & looks[1][1])
            await trio.sleep(0.5)

    sockets = {member.name: Path(member.socket or "") for member in loaded.nodes}
    async with trio.open_nursery() as nursery:
        nursery.start_soon(look)
        outcome = await converse(central_course(), sockets, 0.0, lambda text: None, lambda text: None)
        nursery.cancel_scope.cancel()
    return Conversed(directory, outcome, connected, strange)


def test_three_topics_with_ranges_and_a_private_one_are_delivered_once(conversed: Conversed) -> None:
    outcome = conversed.outcome
    assert outcome.published == 24
    assert len(outcome.delays) == 36
    assert None not in outcome.delays
    assert outcome.extra == 0


def test_every_byte_between_daemons_goes_by_tor(conversed: Conversed) -> None:
    names = [member.name for member in testnet.load(conversed.directory).members]
    assert all(conversed.connected[name] for name in names)  # they do have connections: the look sees them
    assert not conversed.strange


def test_nothing_that_they_keep_ties_a_pseudonym_or_a_publication_to_a_daemon(conversed: Conversed) -> None:
    loaded = testnet.load(conversed.directory)
    users = [member.name for member in loaded.nodes]
    truths = [line for name in users for line in lines(conversed, name, "truth")]
    drawn = {use: pseudonyms(truths, use) for use in ("publish", "subscribe")}
    published = {truth["message"] for truth in truths if truth["kind"] == "published"}
    asked = Counter(
        (name, line["topic"])
        for name in users
        for line in introduced(lines(conversed, name, "truth"), "subscribe")
    )
    assert len(asked) == 6
    assert set(asked.values()) <= {1, 2}  # one a day; tomorrow's may be drawn from noon on
    assert len(drawn["publish"]) >= len(published) == 24  # one for each publication
    words = [*users, "weather", "temperature", "diary", "celsius", "message "]
    found = Counter[str]()
    for member in loaded.members:
        if member.is_node:
            continue
        kept = list(records(member))
        seen = [json.dumps(line).encode() for line in lines(conversed, member.name, "observations")]
        for record in [*kept, *seen]:
            assert not [word for word in words if word.encode() in record], f"{member.name} knows too much"
            for use in drawn:
                found[f"{member.name} {use}"] += any(holds(record, one) for one in drawn[use])
        if member.role == "proxy":  # it sees each message go by, and cannot say which it is
            assert not any(holds(record, one) for record in [*kept, *seen] for one in published)
        # Who publishes is nowhere on disk, not by a pseudonym either.
        assert not any(holds(record, one) for record in kept for one in drawn["publish"])
    # The search finds what is there, and no proxy has what is the other role's.
    assert {name for name in found if found[name]} == {
        "server publish",
        "server subscribe",
        "publications-1 publish",
        "deliveries-1 subscribe",
    }
    handed = [line for line in lines(conversed, "server", "observations") if line["kind"] == "handed"]
    publications = {(line["pseudonym"], line["message"]) for line in handed}
    assert len({pseudonym for pseudonym, _ in publications}) == len(publications)  # a new one for each


def pseudonyms(truths: list[dict[str, Any]], use: str) -> set[str]:
    return {line["pseudonym"] for line in introduced(truths, use)}


def introduced(truths: list[dict[str, Any]], use: str) -> list[dict[str, Any]]:
    return [line for line in truths if line["kind"] == "introduced" and line["use"] == use]


def lines(conversed: Conversed, name: str, kind: str) -> list[dict[str, Any]]:
    text = (conversed.directory / "traces" / f"{name}.{kind}.jsonl").read_text()
    return [json.loads(line) for line in text.splitlines()]


def records(member: Member) -> Iterator[bytes]:
    """Yield all that a daemon keeps: rows of its database, other files whole, its log."""
    for path in [*Path(member.state).rglob("*"), member.home / "log"]:
        if path.is_file() and not path.name.startswith("state.db"):
            yield path.read_bytes()
    # Read only: the daemon that owns it is running.
    connection = sqlite3.connect(f"file:{member.state}/state.db?mode=ro", uri=True)
    try:
        for kind, key, value in connection.execute("SELECT * FROM records"):
            yield kind.encode() + key + value
    finally:
        connection.close()


def holds(record: bytes, name: str) -> bool:
    """Tell whether a record holds a key or id: as text, or as the bytes that it is the hex of."""
    return name.encode() in record or bytes.fromhex(name) in record
