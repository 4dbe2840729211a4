"""Gateways with keys for an alias, each beside a daemon of one network in memory."""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import trio
from fake_daemon import FakeDaemon
from houses import until
from memory_gateway import Gateway
from purpose_files import ISSUER, VOCABULARY, write_files
from purposes_house import ALL, Reader

import hushcast
from hushcast_gateway.broker_state import open_broker
from hushcast_gateway.clients.server import Server
from hushcast_gateway.counters import GatewayCounters
from hushcast_gateway.network.gateway_network import GatewayNetwork
from hushcast_gateway.network_ways import NetworkWays
from hushcast_gateway.peer import ClientPeer
from hushcast_gateway.purposes.alias_keys import read_keys
from hushcast_gateway.purposes.rules import Purposes
from hushcast_gateway.sections.keys_section import KeysSection
from hushcast_gateway.settings import GatewaySettings
from hushcast_protocol.mqtt.reason_codes import Reason
from hushcast_protocol.mqtt.topics.access import AccessPermissions
from hushcast_protocol.mqtt.wire.packets import Connect
from hushcast_protocol.purposes.purpose_keyring import PurposeKeyring
from hushcast_protocol.purposes.signed_vocabulary import SignedVocabulary
from hushcast_runtime.environment import system_environment
from hushcast_runtime.processes.config import parse_settings
from hushcast_runtime.storage.store import MemoryStore

LINK = hushcast.new_link("cars", private=True)
USERS = f"""
[users.car]
uid = [1]
{ALL}reserve = ["hush/cars/#", "home/#"]
[users.dashboard]
uid = [2]
{ALL}purpose = "operations/routing"
purposes = ["operations"]
[users.advertiser]
uid = [3]
{ALL}purpose = "marketing/individualized"
purposes = ["marketing"]
"""
POSITION = "hush/cars/7/position"


def keys_section(
    folder: Path, purposes: Iterable[str], signed: SignedVocabulary | None = None
) -> KeysSection:
    """Write the files of an alias's keys, with grants for these purposes."""
    files = write_files(folder, purposes, signed)
    return KeysSection(
        vocabulary_file=str(files.vocabulary),
        issuer=ISSUER.public().hex(),
        reader_key_file=str(files.reader_key),
        grant_files=tuple(map(str, files.grants)),
    )


def keyed(folder: Path, purposes: Iterable[str], signed: SignedVocabulary | None = None) -> PurposeKeyring:
    return read_keys(keys_section(folder, purposes, signed), time.time, os.urandom)


@dataclass
class House:
    """A gateway with keys for the alias `cars`, and its daemon."""

    daemon: FakeDaemon
    counters: GatewayCounters
    gateway: Gateway
    network: GatewayNetwork
    rules: Purposes
    store: MemoryStore

    async def connect(self, user: str) -> Reader:
        return Reader(await self.gateway.connect(user, username=user))

    async def reads(self, user: str, wanted: str = "hush/cars/#") -> Reader:
        """Return a client whose subscription has come to the network."""
        client = await self.connect(user)
        assert await client.subscribe(wanted) < 0x80
        await until(lambda: any(one["ready"] for one in self.daemon.service.subscriptions()))
        return client

    async def publish_beside(self, payload: bytes, tags: Iterable[str]) -> None:
        """Publish as another program that has the alias's link."""
        async with hushcast.connect(self.daemon.socket) as daemon:
            await daemon.enqueue(LINK, payload, tags=tags)


@asynccontextmanager
async def house(
    daemon: FakeDaemon,
    keys: PurposeKeyring | None,
    section: str = "",
    maps: str = "",
    alias: str = "",
    store: MemoryStore | None = None,
) -> AsyncIterator[House]:
    text = f"""
[purposes]
{section}
[daemon]
socket = "{daemon.socket}"
[[gateway.alias]]
name = "cars"
link_file = "/unused"
{alias}
{maps}
{USERS}"""
    settings = parse_settings(text.encode(), "gateway.toml", GatewaySettings)
    assert settings.purposes is not None
    env, counters, store = system_environment(), GatewayCounters(), store or MemoryStore()
    ways = NetworkWays(settings.gateway, {"cars": LINK}, {"cars": keys} if keys else {})
    rules = Purposes(settings.purposes, settings.speakers(), VOCABULARY, env.now, ways)
    network = GatewayNetwork(settings, ways, env, counters, rules)

    async def authenticate(packet: Connect, peer: ClientPeer) -> AccessPermissions | Reason:
        name = packet.username or ""
        return AccessPermissions(settings.users[name].access(), name, packet.client_id)

    def permissions_of(user: str, client_id: str) -> AccessPermissions:
        return AccessPermissions(settings.users[user].access(), user, client_id)

    state = await open_broker(store, env, network, purposes=rules, permissions_of=permissions_of)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(state.run)
        nursery.start_soon(network.run, state, store)
        gateway = Gateway(state, Server(state, authenticate), nursery)
        yield House(daemon, counters, gateway, network, rules, store)
        nursery.cancel_scope.cancel()


@asynccontextmanager
async def network(tmp_path: Path, *keys: PurposeKeyring | None, **options: Any) -> AsyncIterator[list[House]]:
    """Run a house for each set of keys; the options are the first one's."""
    with trio.fail_after(30):
        async with trio.open_nursery() as nursery, AsyncExitStack() as stack:
            houses: list[House] = []
            for number, one in enumerate(keys):
                shared = houses[0].daemon.network if houses else None
                daemon = FakeDaemon(tmp_path / f"s{number}", network=shared)
                await daemon.start(nursery)
                given = options if not houses else {}
                houses.append(await stack.enter_async_context(house(daemon, one, **given)))
            yield houses
            nursery.cancel_scope.cancel()


def by(section: KeysSection, before: PurposeKeyring | None = None) -> PurposeKeyring:
    return read_keys(section, time.time, os.urandom, before)
