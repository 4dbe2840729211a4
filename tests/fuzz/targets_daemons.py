"""Targets: the directory asked and answering, records read back."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from random import Random
from types import SimpleNamespace
from typing import Any
from unittest import mock

import core_examples as examples
import trio
import trio.testing
from core_examples import DAY, DIRECTORY, NETWORK, NOW, relay_id, stream
from fuzzing import Script, Stranger, Target, alone, each, finished, frames_of, many, scripts
from mutating import mutate_bytes, mutate_packed
from targets_decoders import descriptor_signed_anew

from hushcast_directory.client.directory_client import DirectoryClient
from hushcast_directory.client.trust import Trust
from hushcast_directory.server import archive
from hushcast_directory.server.configured_set import SetOfOne
from hushcast_directory.server.directory_server import DirectoryServer
from hushcast_directory.server.roll import Roll
from hushcast_directory.server.succession import hand_over, load_succession
from hushcast_local.inbox import Inbox
from hushcast_local.subscription import interest_record, kept
from hushcast_node.counters import COUNTERS
from hushcast_overlay.relay.identity import Identity
from hushcast_overlay.relay.lease_store import LeaseStore
from hushcast_overlay.relay.parcels import Parcels
from hushcast_overlay.routes.route import TreeInstallation
from hushcast_overlay.routes.route_records import RouteRecords
from hushcast_protocol.authorities.directory_requests import (
    MAX_DIRECTORY_ANSWER,
    DirectoryRefusal,
    Fetch,
    HeadAnswer,
    KeySuccession,
    RegisterRelay,
    RelayRegistered,
    Rosters,
    decode_directory_answer,
)
from hushcast_protocol.authorities.head_answers import roster_of
from hushcast_protocol.base.addresses import memory_address
from hushcast_protocol.base.crypto.secrets import FilterKey, LeaseSecret
from hushcast_protocol.base.crypto.signatures import Signed
from hushcast_protocol.base.errors import PeerError, Refusal
from hushcast_protocol.base.key_handovers import KeyHandover, sign_handover
from hushcast_protocol.base.link.links import Link
from hushcast_protocol.base.roster import Descriptor, check_roster
from hushcast_protocol.base.wire import encode
from hushcast_protocol.content.bodies import Content
from hushcast_protocol.content.hops import HopMessage
from hushcast_protocol.content.topics import Interest, make_topic
from hushcast_protocol.overlay.hops import relay_hop
from hushcast_protocol.overlay.installations import HostRoot, Installation
from hushcast_protocol.overlay.tree import plan
from hushcast_protocol.shards.shard_requests import AskLeaf, AskPiece, AskSlice, ShardUnavailable, ShownLeaf
from hushcast_runtime.context import Context
from hushcast_runtime.counters import Counters
from hushcast_runtime.environment import Environment
from hushcast_runtime.logs import LEVELS, log
from hushcast_runtime.storage.changes import Change, packed
from hushcast_runtime.storage.spool import Spool
from hushcast_runtime.storage.store import MemoryStore, StoreError
from hushcast_runtime.tracing import NoTracer
from hushcast_runtime.transports.base import TransportError
from hushcast_runtime.transports.streams import say_ahead


class _Records:
    """A store that answers at once, so that what stands on it needs no scheduler."""

    def __init__(self) -> None:
        self.records: dict[str, dict[bytes, bytes]] = {}

    async def write(self, *changes: Change) -> None:
        self.write_soon(*changes)

    def write_soon(self, *changes: Change) -> None:
        for change in changes:
            kind = self.records.setdefault(change.kind, {})
            if change.value is None:
                kind.pop(change.key, None)
            else:
                kind[change.key] = packed(change.value)

    async def scan(
        self, kind: str, prefix: bytes = b"", after: bytes | None = None, limit: int = -1
    ) -> list[tuple[bytes, bytes]]:
        found = sorted(item for item in self.records.get(kind, {}).items() if item[0].startswith(prefix))
        found = [item for item in found if after is None or item[0] > after]
        return found if limit < 0 else found[:limit]


def _environment(now: float = NOW) -> Environment:
    async def compute(function: Callable[..., Any], *args: Any) -> Any:
        return function(*args)

    return Environment(lambda: now, stream(), compute)


# A directory alone, moved by descriptors and by time


def _descriptor_bodies() -> list[bytes]:
    return [encode(_fresh(number)) for number in range(6)]


def _fresh(number: int, issued: float = NOW, expires: float = NOW + 120) -> Descriptor:
    relay = relay_id(number)
    return Descriptor(
        NETWORK.id,
        relay,
        memory_address(relay),
        examples.parcel_key(number).public(),
        int(issued),
        int(expires),
        0,
    )


async def _directory(data: bytes) -> None:
    """A directory alone lists few, publishes later heads than before, and goes on after a restart."""
    script, now = Script(data, 200), [NOW]  # a move may sign and check heads
    with mock.patch.object(Roll, "most", 4), mock.patch.object(archive, "HEADS_KEPT", 3):
        kept, first, last = _Records(), script.number() % 3, -1
        server = await _made(kept, now, first)
        while script:
            agreeing, roll = server.agreeing, server._roll
            machine = agreeing.machine
            assert machine is not None
            move = script.number() % 8
            if move == 0:
                now[0] += script.number()
            elif move == 1 and (epoch := machine.due_alone(now[0])) is not None:
                if roll.count(now[0]) < first:
                    continue
                ballot = await agreeing._ballot(epoch, math.inf)
                await agreeing._do(machine, machine.alone(ballot, None, now[0]))
                answer: Any = agreeing.answer(Fetch(epoch - 1))
                assert roster_of(answer, NETWORK).relays.keys() == set(roll.listed())
                assert machine.chain.epoch == epoch > last
                last = epoch
            elif move == 2:
                answer = agreeing.answer(Fetch(script.choose((None, 0, 2**48 - 1, max(0, last - 1)))))
                assert answer.heads or not answer.more
            elif move == 3:
                server = await _made(kept, now, first)
                assert server.agreeing.epoch == (None if last < 0 else last)
            else:
                _hand_in(script, roll, now[0])
            assert len(server._roll._descriptors) <= 4
            assert len(agreeing._archive.epochs) <= 3


async def _made(kept: Any, now: list[float], first: int) -> DirectoryServer:
    """Return a directory that has read what is kept, and does nothing by itself."""
    transport: Any = _Transport()
    env = dataclasses.replace(_environment(), now=lambda: now[0], elapsed=lambda: now[0])
    roll = Roll(NETWORK, DIRECTORY, kept)
    await roll.load()
    server = DirectoryServer(env, transport, roll, SetOfOne(first))
    server.agreeing.address = memory_address(DIRECTORY.public())
    await server.agreeing._archive.load()
    await server.agreeing._load()
    return server


def _hand_in(script: Script, book: Roll, now: float) -> None:
    number, age, validity = script.number() % 8, script.number() - 128, script.number() * 4 - 200
    body = encode(_fresh(number, now + age * 4, max(0, now + validity)))
    if script.number() % 4 == 0:
        body = mutate_packed(Random(script.number(4)), [body, *_some_bodies()])
    signed = descriptor_signed_anew(body)
    try:
        descriptor = book.examine(signed, now)
    except (PeerError, Refusal):
        return
    finished(book.admit(descriptor, signed))


@cache
def _some_bodies() -> tuple[bytes, ...]:
    return tuple(_descriptor_bodies())


# Both ends of a question to the directory


class _Transport:
    """Leads every connection to one end of a pair of streams, or nowhere."""

    def __init__(self, ours: Any = None) -> None:
        self._ours = ours

    async def connect(self, address: Any, isolation: str, ahead: bytes = b"") -> Any:
        if self._ours is None:
            raise TransportError("nothing there")
        return await say_ahead(self._ours, ahead)


async def _asked(data: bytes) -> None:
    """The server answers each hostile asker with one answer that decodes, or ends the connection."""
    server = await _made(_Records(), [NOW], 1)
    for frame in frames_of(data):
        await _ask(server, frame)


async def _ask(server: DirectoryServer, frame: bytes) -> None:
    asker: Any = Stranger(
        Link.initiate(NETWORK.id, DIRECTORY.public(), stream(3), MAX_DIRECTORY_ANSWER), [frame]
    )
    await server._answer(asker)
    assert len([decode_directory_answer(answer) for answer in asker.heard]) <= 1
    assert not server._roll._descriptors, "a relay was listed that was not reached"


async def _answered(data: bytes) -> None:
    """The client takes what a hostile directory answers, or refuses it."""
    directory = Stranger(Link.respond(NETWORK.id, DIRECTORY, stream(4), 4096), [data])
    transport: Any = _Transport(directory)
    trust = Trust(NETWORK, DIRECTORY.public())
    client = DirectoryClient(_environment(), transport, NETWORK.id, memory_address(DIRECTORY.public()), trust)
    try:
        answer = await client.roster(None)
        if isinstance(answer, KeySuccession):
            await trust.take(answer.handovers, MemoryStore())
        elif isinstance(answer, Rosters) and answer.roster is not None:
            trust.check(answer.roster, check_roster)
    except (PeerError, Refusal, TransportError):
        assert trust.key == DIRECTORY.public()


def in_trio(work: Any) -> Callable[[bytes], None]:
    def run(data: bytes) -> None:
        log._silent = LEVELS
        trio.run(work, data, clock=trio.testing.MockClock(autojump_threshold=0))

    return run


def _requests() -> Iterator[bytes]:
    yield encode(Fetch(None))
    yield encode(Fetch(7))
    for asked in (AskLeaf(7, 0, 1), AskSlice(0, 1), AskPiece(0, 0)):
        yield encode(asked)
    for number in range(3):
        yield encode(RegisterRelay(descriptor_signed_anew(encode(_fresh(number)))))


def _handed_over() -> Signed:
    return sign_handover(DIRECTORY, KeyHandover(NETWORK.id, DIRECTORY.public(), examples.seed(9).public(), 3))


def _answers() -> Iterator[bytes]:
    yield encode(HeadAnswer((), (), (), False, None))
    yield encode(Rosters(None, False))
    yield encode(KeySuccession((_handed_over(),)))
    yield encode(Rosters(examples.roster_of(2).signed, True))
    yield encode(DirectoryRefusal("no"))
    yield encode(RelayRegistered())
    yield encode(ShownLeaf(bytes(9), (bytes(32),)))
    yield encode(ShardUnavailable())


# Records as a daemon left them, damaged since


class _Kept:
    """Real records of every kind, and how a daemon reads each kind back."""

    def __init__(self) -> None:
        self.store = _Records()
        store: Any = self.store
        spool = Spool(store)
        spool.put([HopMessage(relay_hop(relay_id(1)), examples.small_message(number=n)) for n in range(3)])
        inbox = Inbox(b"i" * 16, _environment(), store, Counters(COUNTERS))
        for number in range(3):
            inbox.put(bytes([number]) * 32, DAY, Content(b"x", {"lat": 3, "kind": "é"}, b"a" * 32))
        tree = plan([relay_id(number) for number in range(4)], 2, b"s" * 16)
        root = HostRoot(examples.BOX, relay_id(4))
        installation = Installation(DAY, root, tree, b"t" * 16, (b"e" * 16,), LeaseSecret(b"l" * 32))
        store.write_soon(interest_record(b"i" * 16, Interest(make_topic("one")), 1.0))
        finished(Trust(NETWORK, DIRECTORY.public()).take([_handed_over()], store))
        new = examples.seed(9)
        finished(hand_over(store, NETWORK, DIRECTORY, new, 3, signs=True))
        records = RouteRecords(store)
        finished(records.keep_installation(TreeInstallation(b"i" * 16, 0, installation, set(tree.parents))))


@cache
def _kept() -> dict[str, dict[bytes, bytes]]:
    return _Kept().store.records


def _stored(data: bytes) -> None:
    """A damaged record is taken for what it says, or set aside; of a directory's keys it is an error."""
    kind = sorted(_kept())[data[0] % len(_kept())] if data else "spool"
    records = {name: dict(found) for name, found in _kept().items()}
    key = data[1:].partition(b"|")[0] or next(iter(records[kind]))
    records[kind][key] = data[1:].partition(b"|")[2]
    store: Any = _Records()
    store.records = records
    finished(Spool(store).load())
    finished(Inbox(b"i" * 16, _environment(), store, Counters(COUNTERS)).load())
    finished(RouteRecords(store).load_installations())
    finished(kept(store))
    with suppress(StoreError):
        finished(load_succession(store, NETWORK, examples.seed(9).public()))
    with suppress(StoreError):
        finished(Trust(NETWORK, DIRECTORY.public()).load(store))
    shards: Any = SimpleNamespace(calendar=NETWORK.calendar, network=NETWORK)
    identity = Identity(examples.seed(0), examples.seed(0), examples.parcel_key(0), FilterKey(bytes(32)))
    context = Context(_environment(), store, Counters(COUNTERS), NoTracer(), print)
    leases = LeaseStore(identity, NETWORK.calendar, context)
    finished(leases.load())
    finished(Parcels(identity, shards, leases, None, print, None, context).load())  # type: ignore[arg-type]


def _record_inputs() -> Iterator[bytes]:
    for number, kind in enumerate(sorted(_kept())):
        for key, value in _kept()[kind].items():
            yield bytes([number]) + key + b"|" + value


TARGETS = [
    Target("directory", in_trio(_directory), lambda: scripts(size=60), weight=1),
    Target("directory-asked", in_trio(_asked), alone(_requests), (), many(mutate_packed), 1),
    Target("directory-answers", in_trio(each(_answered)), alone(_answers), (), many(mutate_packed), 1),
    Target("stored", _stored, _record_inputs, (), mutate_bytes, 5),
]
