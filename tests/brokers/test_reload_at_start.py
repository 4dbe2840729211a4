"""A configuration that is read again while a broker still loads what it holds, before it listens."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
import trio
from small_network import BEGIN, until
from talk import Talk

from hushcast_brokers.broker.process import _Below, _Root
from hushcast_brokers.broker.settings import EdgeSection, parse_broker
from hushcast_brokers.keys import BROKER_KEYS
from hushcast_brokers.network_file import brokers_section
from hushcast_protocol.base.addresses import Address, memory_address, onion_address
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.link.links import Link
from hushcast_protocol.base.wire import encode
from hushcast_protocol.brokers.broker_tree import BrokerPosition, sign_tree
from hushcast_protocol.brokers.frames import (
    MAX_BROKER_FRAME,
    Join,
    ParentHello,
    RequestAnswer,
    decode_from_above,
)
from hushcast_protocol.brokers.network import BrokersNetwork
from hushcast_runtime.environment import simulated_environment
from hushcast_runtime.files import load_seed
from hushcast_runtime.processes import examined_process, process_frame
from hushcast_runtime.processes.doctors_socket import ExaminedSettings
from hushcast_runtime.storage.changes import Change
from hushcast_runtime.storage.store import MemoryStore
from hushcast_runtime.transports.base import Listener
from hushcast_runtime.transports.channel import open_channel
from hushcast_runtime.transports.memory import MemoryNetwork

ROOT = Seed(bytes(31) + b"\1")
NETWORK = BrokersNetwork("n", "clear", 3600, ROOT.public())
SOMEBODY = ROOT.public()[::-1]


class SlowTransport:
    """A transport that lets a daemon listen when it is told to."""

    def __init__(self, wires: MemoryNetwork) -> None:
        self._inner = wires.transport()
        self.is_asked, self.may_listen = trio.Event(), trio.Event()

    async def listen(self, seed: Seed, previous: Address | None = None) -> Listener:
        self.is_asked.set()
        await self.may_listen.wait()
        return await self._inner.listen(seed, previous)

    async def connect(self, address: Address, isolation: str, ahead: bytes = b"") -> trio.abc.Stream:
        return await self._inner.connect(address, isolation, ahead)


class World:
    """What a process of a broker is surrounded by."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.env = simulated_environment("reload", BEGIN)
        self.wires = MemoryNetwork()
        self.slow = SlowTransport(self.wires)
        self.store: Any = MemoryStore()
        self.store.close = lambda: None

        async def open_transport(*_: object) -> SlowTransport:
            return self.slow

        monkeypatch.setattr(examined_process, "open_transport", open_transport)
        monkeypatch.setattr(process_frame, "SqliteStore", lambda path: self.store)
        monkeypatch.setattr(ExaminedSettings, "environment", lambda settings: self.env)

    @asynccontextmanager
    async def reloaded(self, process: Any, fresh: Any) -> AsyncIterator[None]:
        """Have a process take a configuration before it listens; it runs within."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(process.live, nursery)
            await self.slow.is_asked.wait()
            process.apply(fresh)
            self.slow.may_listen.set()
            await until(lambda: process.health().has_started, 10.0, "it runs")
            yield
            nursery.cancel_scope.cancel()


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    return World(monkeypatch)


async def test_a_root_signs_the_tree_of_the_last_one(world: World, tmp_path: Path) -> None:
    network = '[network]\ncarrier = "brokers"\nname = "n"\n'
    text = f'role = "root"\nstate = "{tmp_path}"\ntransport = "tcp"\n' + network
    listed = f'[[brokers]]\nrole = "edge"\nkey = "{SOMEBODY.hex()}"\naddress = "127.0.0.1:7411"\n'
    before, fresh = (parse_broker(one.encode(), "f") for one in (text, text + listed))
    process: Any = _Root(before)
    async with world.reloaded(process, fresh):
        await until(lambda: process._status()["brokers_listed"] == 2, 10.0, "the tree lists the broker")


async def test_an_edge_broker_serves_the_clients_of_the_last_one(world: World, tmp_path: Path) -> None:
    text = f'role = "edge"\nstate = "{tmp_path}"\n' + brokers_section(NETWORK, onion_address(ROOT.public()))
    before: Any = parse_broker(text.encode(), "f")
    fresh = msgspec.structs.replace(before, edge=EdgeSection(open=False))
    own, service = (load_seed(tmp_path / name, world.env.randomness) for name in BROKER_KEYS)
    address = memory_address(service.public())
    seats = (
        BrokerPosition(ROOT.public(), memory_address(ROOT.public()), "root", None),
        BrokerPosition(own.public(), address, "edge", ROOT.public()),
    )
    tree = sign_tree(ROOT, NETWORK, 1, seats)
    await world.store.write(Change("tree", b"newest", encode(tree)))
    async with world.reloaded(_Below(before), fresh):
        client = Seed(SOMEBODY)
        link = Link.initiate(NETWORK.id, own.public(), world.env.randomness, MAX_BROKER_FRAME, client, None)
        channel, _ = await open_channel(world.wires.transport(), address, "", link, decode_from_above)
        talk = Talk(channel)
        assert isinstance(await talk.hear(), ParentHello)
        assert await talk.ask(Join(1, None)) == RequestAnswer(1, "unknown")
