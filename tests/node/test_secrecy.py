"""No daemon's state or trace ties a box to the daemon that owns it, the owner's own apart."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from small_network import DAY_SECONDS, ONE, TWO, Node, SmallNetwork, small_network, until

from hushcast_overlay.routes.route import OverlayRoute
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.content.bodies import Content
from hushcast_protocol.content.topics import write_link
from hushcast_protocol.overlay.late_routes import WAIT
from hushcast_runtime.storage.changes import packed
from hushcast_runtime.storage.store import MemoryStore

pytestmark = pytest.mark.slow


def records(node: Node) -> list[bytes]:
    """Everything that a daemon keeps, one entry a record."""
    assert isinstance(node.store, MemoryStore)
    return [
        kind.encode() + b"|" + key + b"|" + packed(value)
        for kind, held in node.store._records.items()
        for key, value in held.items()
    ]


def everything(node: Node) -> bytes:
    return b"\n".join(records(node))


def both_forms(secret: bytes) -> tuple[bytes, bytes]:
    return secret, secret.hex().encode()


def box_seed(route: OverlayRoute) -> Seed:
    """The key of what a route's messages come to."""
    assert route.box is not None
    return route.box.seed


def box_marks(route: OverlayRoute) -> list[bytes]:
    """What names a box: its key, in every form that it is kept in."""
    return [*both_forms(box_seed(route).public())]


def names_one_of_several(net: SmallNetwork, record: bytes) -> bool:
    """Tell whether a record names several relays, as a host's does those at the top of a tree."""
    return sum(holds_any(record, list(both_forms(relay.id))) for relay in net.relays) > 1


def holds_any(data: bytes, marks: list[bytes]) -> bool:
    return any(mark in data for mark in marks)


async def run_a_while(net: SmallNetwork, *owners: Node) -> None:
    """Subscribe, publish, change the day, publish again."""
    ears = [await owner.listen(topic) for owner in owners for topic in (ONE, TWO)]
    publisher = net.clients[-1]
    for number in range(6):
        await publisher.daemon.service.publish((ONE, TWO)[number % 2], Content(b"a payload to look for"))
    for ear in ears:
        await ear.hears(3)
    midnight = net.calendar.day_start(net.calendar.day(net.now) + 1)
    await net.sleep_until(midnight - 0.2 * DAY_SECONDS)
    for number in range(6):
        await publisher.daemon.service.publish((ONE, TWO)[number % 2], Content(b"a payload to look for"))
    for ear in ears:
        await ear.hears(6)


async def test_only_the_host_knows_a_box() -> None:
    async with small_network(relays=8, clients=2) as net:
        owner = net.clients[0]
        await run_a_while(net, owner)
        for topic in (ONE, TWO):
            held = owner.route(topic)
            assert len(held.planned) == 2
            trees = [planned.installation.tree for planned in held.planned.values()]
            tops = {relay for tree in trees for relay, above in tree.parents.items() if above is None}
            assert tops < {relay.id for relay in net.relays}
            know = {relay.id for relay in net.relays if holds_any(everything(relay), box_marks(held))}
            assert held.box is not None
            assert know == {held.box.hosts.current}
            assert not holds_any(everything(net.clients[1]), box_marks(held))
            assert isinstance(net.directory.store, MemoryStore)
            directory = repr(net.directory.store._records).encode()
            assert not holds_any(directory, box_marks(held))


async def test_what_only_the_subscriber_knows_is_nowhere_else() -> None:
    async with small_network(relays=6, clients=2) as net:
        owner = net.clients[0]
        await run_a_while(net, owner)
        secrets = [write_link(ONE).encode(), write_link(TWO).encode()]
        secrets += [ONE.name.encode(), TWO.name.encode(), b"a payload to look for"]
        for topic in (ONE, TWO):
            held = owner.route(topic)
            secrets += [*both_forms(box_seed(held).reveal()), held.wanted.name]
            for planned in held.planned.values():
                secrets += both_forms(planned.installation.secret.reveal())
                for token in (planned.installation.trunk, *planned.installation.entries):
                    secrets += both_forms(token)
        assert all(holds_any(everything(owner), [secret]) for secret in secrets[:2])
        # Origins keep what was dropped a while: for leases that are on their way.
        kept = [b"spool|", b"intake|"]
        await until(lambda: not any(holds_any(everything(relay), kept) for relay in net.relays), 2 * WAIT)
        for relay in net.relays:
            assert not holds_any(everything(relay), secrets)


async def test_nothing_ties_a_box_to_a_relay_that_owns_it() -> None:
    """The owner is a relay itself. Of all records of others that name the box, none names the owner."""
    async with small_network(relays=6, clients=1) as net:
        owner = net.relays[0]
        await run_a_while(net, owner)
        assert owner.identity is not None
        names = [
            *both_forms(owner.id),
            owner.identity.service.public(),
            net.directory_entry(owner).encode(),
            net.directory_entry(owner).split(".")[0].encode(),
            *both_forms(owner.identity.parcel_key.public()),
        ]
        for topic in (ONE, TWO):
            marks = box_marks(owner.route(topic))
            for node in net.nodes:
                if node is owner:
                    continue
                for record in records(node):
                    if holds_any(record, marks) and holds_any(record, names):  # it has a seat as others have
                        assert names_one_of_several(net, record)
        # What a relay holds on its neighbours is the same whoever of them is the owner: seats, and rosters.
        for node in net.relays[1:]:
            kinds = {record.split(b"|")[0] for record in records(node) if holds_any(record, names)}
            assert kinds <= {b"lease", b"roster", b"spool", b"installation"}


async def test_boxes_of_one_owner_share_nothing_at_relays() -> None:
    async with small_network(relays=6, clients=2) as net:
        await run_a_while(net, net.clients[0])
        one, two = (box_marks(net.clients[0].route(topic)) for topic in (ONE, TWO))
        for relay in net.relays:
            for record in records(relay):
                assert not (holds_any(record, one) and holds_any(record, two))


async def test_traces_of_what_relays_saw_do_not_tie_a_box_to_its_owner(tmp_path: Path) -> None:
    async with small_network(relays=6, clients=2, traces=tmp_path / "traces") as net:
        owners = net.relays[0], net.clients[0]
        await run_a_while(net, *owners)
        for owner in owners:
            name = owner.id.hex() if owner.identity else owner.name
            for topic in (ONE, TWO):
                box = box_seed(owner.route(topic)).public().hex()
                for file in (tmp_path / "traces").iterdir():
                    is_owners = file.name.startswith(f"{owner.name}.")
                    for line in file.read_text().splitlines():
                        if box not in line:
                            continue
                        record = json.loads(line)
                        if is_owners:
                            continue
                        assert file.name.endswith(".observations.jsonl")
                        assert set(record) <= {
                            *("schema", "node", "time", "epoch", "kind", "message", "tokens"),
                            *("next", "lease", "mark", "elements", "children", "day"),
                        }
                        assert record["next"] == box
                        assert name not in line


async def test_nothing_is_left_at_relays_once_a_subscription_has_lapsed() -> None:
    async with small_network(relays=4, clients=2) as net:
        owner = net.clients[0]
        await run_a_while(net, owner)
        marks = [mark for topic in (ONE, TWO) for mark in box_marks(owner.route(topic))]
        assert any(holds_any(everything(relay), marks) for relay in net.relays)
        await owner.stop()
        day = net.calendar.day(net.now) + 1
        await net.sleep_until(net.calendar.lapse(day) + 70)
        for relay in net.relays:
            assert not holds_any(everything(relay), marks)
            assert not any(record.startswith(b"lease|") for record in records(relay))
