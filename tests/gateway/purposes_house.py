"""A gateway with purposes: users by name alone, and a vocabulary of a fleet of cars."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from memory_gateway import Client, Gateway, running

from hushcast_gateway.peer import ClientPeer
from hushcast_gateway.purposes.rules import Purposes
from hushcast_gateway.settings import GatewaySettings
from hushcast_protocol.mqtt.reason_codes import Reason
from hushcast_protocol.mqtt.topics.access import AccessPermissions
from hushcast_protocol.mqtt.wire.packets import (
    Connect,
    Packet,
    PingReq,
    PingResp,
    Properties,
    PubAck,
    Publish,
    RequestedSubscription,
    SubAck,
    Subscribe,
)
from hushcast_protocol.purposes.vocabulary import Vocabulary
from hushcast_runtime.processes.config import parse_settings
from hushcast_runtime.storage.store import Store

VOCABULARY = Vocabulary(
    [
        "operations/billing",
        "operations/routing",
        "marketing/individualized",
        "marketing/newsletter",
        "research",
    ]
)
ALL = 'publish = ["#"]\nsubscribe = ["#", "$SYS/hush/purposes"]\n'
USERS = f"""
[users.car]
uid = [1]
{ALL}reserve = ["cars/%u/#", "cars/car"]
[users.owner]
uid = [2]
{ALL}reserve = ["cars/#"]
may_presubscribe = ["billing/screen"]
purposes = ["operations"]
[users.billing]
uid = [3]
{ALL}purposes = ["operations/billing"]
[users.advertiser]
uid = [4]
{ALL}purposes = ["marketing"]
[users.device]
uid = [5]
{ALL}purpose = "operations/routing"
[users.stranger]
uid = [6]
{ALL}reserve = ["#"]
"""


def settings(section: str = "", users: str = USERS) -> GatewaySettings:
    return parse_settings(f"[purposes]\n{section}\n{users}".encode(), "gateway.toml", GatewaySettings)


def purposes(section: str = "", users: str = USERS, now: float = 1_000_000.0) -> Purposes:
    given = settings(section, users)
    assert given.purposes is not None
    return Purposes(given.purposes, given.speakers(), VOCABULARY, lambda: now)


class House:
    """A gateway that runs, and its rules."""

    def __init__(self, gateway: Gateway, rules: Purposes) -> None:
        self.gateway = gateway
        self.broker = gateway.broker
        self.rules = rules

    async def connect(self, user: str, client_id: str = "", version: int = 5, **more: Any) -> Reader:
        name = client_id or user
        ap = more.pop("ap", "")
        if ap:
            more["properties"] = {"user_property": [("ap", ap)]}
        client = await self.gateway.connect(name, version, username=user, **more)
        return Reader(client)


class Reader:
    """A client, with the few words that tests need."""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def subscribe(self, wanted: str, ap: str = "", qos: int = 1, **properties: Any) -> int:
        """Return the reason."""
        if ap:
            properties["user_property"] = [("ap", ap)]
        given: Properties = properties  # type: ignore[assignment]
        await self.client.send(Subscribe(9, [RequestedSubscription(wanted, qos)], given))
        return (await self.until(SubAck)).reasons[0]

    async def publish(
        self, topic: str, payload: bytes = b"x", retain: bool = False, **properties: Any
    ) -> int:
        """Publish at QoS 1 and return the reason."""
        given: Properties = properties  # type: ignore[assignment]
        await self.client.send(Publish(topic, payload, 1, retain, packet_id=5, properties=given))
        return (await self.until(PubAck)).reason

    async def reserve(self, wanted: str, aip: str = "", pip: str = "") -> int:
        """Reserve by the published topics."""
        spelled = wanted.replace("#", "HASH").replace("+", "PLUS")
        return await self.publish(f"!RESERVE/{spelled}{{{aip}|{pip}}}")

    async def release(self, wanted: str) -> int:
        return await self.publish(f"!RESERVE/{wanted.replace('#', 'HASH').replace('+', 'PLUS')}{{!}}")

    async def until(self, kind: type[Any]) -> Any:
        """Return the next packet of a kind; what was received before it is kept for `got`."""
        kept: list[Packet] = []
        while not isinstance(packet := await self.client.next(), kind):
            assert packet is not None, "the gateway closed"
            kept.append(packet)
        self.client._packets[:0] = kept
        return packet

    async def got(self) -> list[bytes]:
        """Return and acknowledge all messages that came, by their payloads."""
        return [one.payload for one in await self.messages()]

    async def messages(self) -> list[Publish]:
        found: list[Publish] = []
        while True:  # what is acknowledged may let more come
            came = await self._round()
            found += came
            answers = [PubAck(one.packet_id) for one in came if one.qos]
            if not answers:
                return found
            await self.client.send(*answers)

    async def _round(self) -> list[Publish]:
        await self.client.send(PingReq())
        found = []
        while not isinstance(packet := await self.client.next(), PingResp):
            assert isinstance(packet, Publish), packet
            found.append(packet)
        return found

    async def leave(self) -> None:
        await self.client.stream.aclose()


@asynccontextmanager
async def house(
    section: str = "", users: str = USERS, store: Store | None = None, **options: Any
) -> AsyncIterator[House]:
    rules = purposes(section, users)
    given = settings(section, users)

    async def authenticate(packet: Connect, peer: ClientPeer) -> AccessPermissions | Reason:
        section = given.users.get(packet.username or "")
        if section is None:
            return Reason.NOT_AUTHORIZED
        permissions = AccessPermissions(section.access(), packet.username or "", packet.client_id)
        rules.connected(permissions, packet)
        return permissions

    async with running(store, authenticate, purposes=rules, **options) as gateway:
        yield House(gateway, rules)
