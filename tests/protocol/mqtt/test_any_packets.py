"""Whatever packets come from whomever in whatever order: no foreign exception, and nothing is left behind."""

from __future__ import annotations

import random

import pytest
from broker_world import Client, World

from hushcast_protocol.mqtt.topics.permissions import FullPermissions
from hushcast_protocol.mqtt.wire.packets import (
    V5,
    V311,
    Disconnect,
    Packet,
    PingReq,
    PubAck,
    PubComp,
    Publish,
    PubRec,
    PubRel,
    RequestedSubscription,
    Subscribe,
    Unsubscribe,
    Will,
)

TOPICS = ["a", "a/b", "b", "$SYS/x", "a/b/c"]
FILTERS = ["a", "a/#", "#", "+/b", "$share/g/a/#", "$share/g/#", "$share/h/+", "$SYS/#"]


class Moody(FullPermissions):
    """Permissions that change all the time."""

    def __init__(self, chance: random.Random) -> None:
        super().__init__()
        self._chance = chance

    def may_publish(self, topic: str) -> bool:
        return self._chance.random() < 0.9

    def may_subscribe(self, wanted: str) -> bool:
        return self._chance.random() < 0.9

    def may_receive(self, topic: str) -> bool:
        return self._chance.random() < 0.9


def publish(chance: random.Random, version: int) -> Publish:
    qos = chance.randrange(3)
    properties = {}
    if version == V5 and chance.random() < 0.3:
        properties = {"message_expiry_interval": chance.randrange(5), "user_property": [("k", "v")]}
    payload = b"" if chance.random() < 0.2 else chance.randbytes(chance.choice([1, 10, 300]))
    return Publish(
        chance.choice(TOPICS),
        payload,
        qos,
        chance.random() < 0.3,
        qos > 0 and chance.random() < 0.2,
        chance.randint(1, 6) if qos else 0,
        properties,  # type: ignore[arg-type]
    )


def packet(chance: random.Random, version: int) -> Packet:
    number = chance.randint(1, 6)
    kind = chance.randrange(10)
    if kind < 3:
        return publish(chance, version)
    if kind == 3:
        wanted = chance.sample(FILTERS, chance.randint(1, 3))
        options = [
            RequestedSubscription(
                one, chance.randrange(3), version == V5 and one[:2] != "$s" and chance.random() < 0.3
            )
            for one in wanted
        ]
        return Subscribe(number, options)
    if kind == 4:
        return Unsubscribe(number, chance.sample(FILTERS, 2))
    if kind == 5:
        return PubRel(number)
    if kind == 6:
        return Disconnect(chance.choice([0, 4]) if version == V5 else 0)
    if kind == 7:
        return PubRec(number, chance.choice([0, 0, 0x80]) if version == V5 else 0)
    return chance.choice([PingReq(), PubAck(number), PubComp(number)])


def behave(client: Client, chance: random.Random) -> None:
    """Read some of what came, and answer most of it as one should."""
    for one in client.got():
        if client.outlet.is_closed or chance.random() < 0.1:
            return
        if isinstance(one, Publish) and one.qos:
            client.send(PubAck(one.packet_id) if one.qos == 1 else PubRec(one.packet_id))
        elif isinstance(one, PubRel):
            client.send(PubComp(one.packet_id))
        elif isinstance(one, PubRec):
            client.send(PubRel(one.packet_id))


def arrive(world: World, chance: random.Random) -> Client:
    version = chance.choice([V5, V311])
    fields = {"expiry": chance.choice([0, 3, 1_000])} if version == V5 else {}
    if version == V5 and chance.random() < 0.5:
        fields["properties"] = {  # type: ignore[assignment]
            "receive_maximum": chance.choice([1, 2, 100]),
            "topic_alias_maximum": chance.choice([0, 2]),
            "maximum_packet_size": chance.choice([60, 1_000]),
        }
    will = Will(chance.choice(TOPICS), b"gone", chance.randrange(3)) if chance.random() < 0.3 else None
    client = world.arrive(
        chance.choice("xyz"), version, chance.random() < 0.3, Moody(chance), will=will, **fields
    )
    client.outlet.room = chance.random() < 0.9
    return client


@pytest.mark.parametrize("seed", range(40))
def test_any_packets_in_any_order(seed: int) -> None:
    chance = random.Random(seed)
    world = World()
    clients: list[Client] = []
    for _ in range(400):
        world.commits = chance.random() < 0.6
        world.settle()
        move = chance.random()
        here = [client for client in clients if client.link is not None]
        if move < 0.08 or not here:
            clients.append(arrive(world, chance))
        elif move < 0.12:
            gone = chance.choice(here)
            clients.remove(gone)
            gone.lose()
        elif move < 0.13:
            world.kill()
            clients.clear()
        elif move < 0.18:
            world.pass_time(chance.choice([0.5, 2, 5]))
        elif move < 0.5:
            behave(chance.choice(here), chance)
        else:
            client = chance.choice(here)
            client.send(packet(chance, client.version))
        client = chance.choice(clients) if clients else None
        if client is not None and client.link is not None and chance.random() < 0.1:
            client.outlet.room = True
            world.broker.drained(client.link, world.now)
    clean_up(world, clients)


def clean_up(world: World, clients: list[Client]) -> None:
    """Let all sessions end, and see that nothing of them is left, in memory or on disk."""
    world.commits = True
    for client in clients:
        client.lose()
    for name in "xyz":
        world.connect(name).lose()
    world.pass_time(1)
    assert (world.broker.sessions, world.broker.subscriptions, world.broker.connected) == (0, 0, 0)
    assert world.broker.held_bytes == 0
    assert (
        world.kinds().get("mqtt-message", 0) == world.broker.retained == world.kinds().get("mqtt-retained", 0)
    )
    assert world.kinds().keys() <= {"mqtt-message", "mqtt-retained"}
    world.kill()
    assert world.broker.sessions == 0
