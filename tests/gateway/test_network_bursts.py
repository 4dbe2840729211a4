"""Bursts between houses over a network that shuffles, while gateways and daemons are killed in between."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest
import trio
from fake_carrier import FakeCarrier
from houses import LINK, House, listening, quick, until
from memory_gateway import Client, Gateway

from hushcast_protocol.base.versions.manner import NEWEST
from hushcast_protocol.mqtt.wire.packets import PubAck, PubComp, Publish, PubRec, PubRel

ALL = ("gateway here", "gateway there", "daemon here", "daemon there")


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    quick(monkeypatch)
    monkeypatch.setattr(FakeCarrier, "manner", replace(NEWEST, republish_within=0.2))


class Pair:
    """Two houses, the one that publishes and the one that reads."""

    def __init__(self, tmp_path: Path, chance: random.Random) -> None:
        self.here = House(tmp_path / "here", {"home": LINK}, {}, None)
        self.there = House(tmp_path / "there", {"home": LINK}, {}, self.here)
        self.here.daemon.network.shuffle, self.here.daemon.network.delay = chance, 0.02
        self.houses = self.here, self.there
        self.gateways: list[Gateway] = []
        self._ends: list[trio.Event] = []
        self._gone: list[trio.Event] = []

    async def start(self, nursery: trio.Nursery) -> None:
        for which, house in enumerate(self.houses):
            await house.daemon.start(nursery)
            for events in (self._ends, self._gone):
                events.append(trio.Event())
            self.gateways.append(await nursery.start(self._live, which))

    async def kill(self, which: int, nursery: trio.Nursery) -> None:
        if which < 2:
            self._ends[which].set()
            await self._gone[which].wait()
            self._ends[which], self._gone[which] = trio.Event(), trio.Event()
            self.gateways[which] = await nursery.start(self._live, which)
        else:
            self.houses[which - 2].daemon.stop()
            await trio.sleep(0.05)  # it takes its socket away
            await self.houses[which - 2].daemon.start(nursery)

    async def _live(self, which: int, task_status: trio.TaskStatus[Gateway]) -> None:
        async with self.houses[which].gateway() as gateway:
            task_status.started(gateway)
            await self._ends[which].wait()
        self._gone[which].set()


async def confirmed(client: Client, packets: list[Publish]) -> None:
    """Publish, each as soon as the one before is out; return when all are acknowledged."""
    await client.send(*packets)
    left = {packet.packet_id for packet in packets if packet.qos}
    while left:
        match await client.next():
            case PubAck(packet_id=done) | PubComp(packet_id=done):
                left.remove(done)
            case PubRec(packet_id=received):
                await client.send(PubRel(received))


def burst(chance: random.Random, topic: str, qos: int) -> list[Publish]:
    count = chance.randint(2, 18)
    payloads = [b"%03d" % number for number in range(1, count + 1)]
    if chance.random() < 0.3:
        payloads[-1] = b""  # deletes what is retained
    return [
        Publish(topic, payload, qos, True, packet_id=number if qos else 0)
        for number, payload in enumerate(payloads, 1)
    ]


@pytest.mark.slow
@pytest.mark.parametrize("qos", [0, 1, 2])
@pytest.mark.parametrize(
    "killed", [None, *range(len(ALL))], ids=lambda one: "none" if one is None else ALL[one]
)
async def test_bursts_keep_their_order(tmp_path: Path, qos: int, killed: int | None) -> None:
    chance = random.Random(qos)
    pair = Pair(tmp_path, chance)
    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            await pair.start(nursery)
            reader = await listening(pair.there, pair.gateways[1], "hush/home/#", clean=False, expiry=900)
            sent: dict[str, list[bytes]] = {}
            got: dict[str, list[bytes]] = {}
            for number in range(4):
                packets = burst(chance, f"hush/home/{number}", qos)
                sent[packets[0].topic] = [one.payload for one in packets]
                half = len(packets) // 2
                writer = await pair.gateways[0].connect(f"writer {number}")
                await confirmed(writer, packets[:half])
                if not qos:  # nobody says that the daemon has it
                    handed = sum(map(len, sent.values())) - len(packets) + half
                    await until(lambda handed=handed: len(pair.here.daemon.published) == handed)
                if killed is not None:
                    await pair.kill(killed, nursery)
                    if killed == 0:
                        writer = await pair.gateways[0].connect(f"writer {number}")
                    if killed == 1:
                        reader = await pair.gateways[1].connect("listener", clean=False, expiry=900)
                await confirmed(writer, packets[half:])
                while got.get(packets[-1].topic, [])[-1:] != [packets[-1].payload]:
                    message = await reader.message()
                    if message.qos:
                        await reader.send(PubAck(message.packet_id))
                    seen = got.setdefault(message.topic, [])
                    if message.payload not in seen:
                        seen.append(message.payload)
            if qos or killed != 1:
                assert got == sent
            for topic, payloads in sent.items():
                for gateway in pair.gateways:
                    kept = gateway.broker.retained_at(topic)
                    assert (kept.payload if kept is not None else b"") == payloads[-1]
            nursery.cancel_scope.cancel()
