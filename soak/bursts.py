"""Bursts: two houses publish to each other, while a gateway or a daemon of either is killed now and then.

Clients are paho's. What one house publishes must come to the other in order within its topic, and in the end
both houses must retain the same, the last of what was acknowledged.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import paho.mqtt.client as paho
import trio

import hushcast
from hushcast_runtime.storage.state_lock import holder
from hushcast_testnet import gateways, processes
from hushcast_testnet.chaos.breaker import ProcessBreaker
from hushcast_testnet.chaos.fault_plan import Fault
from hushcast_testnet.gateways import ALIAS
from hushcast_testnet.inventory import GatewayMember, Member, Testnet, deadline, load
from soak.paho_clients import connected, wait_until

LARGEST = 50  # messages of a burst; the smallest has two
DELETES = 0.3  # the share of bursts whose last message deletes what is retained
KILLS = 0.5  # the share of bursts in which something is killed
MOMENT = 1.0  # seconds after a burst has begun in which it is killed, drawn
AWAY = 2.0  # seconds that it stays away at most, drawn
ROUTED_WITHIN = 120.0  # seconds until relays route to both houses
SERVED_WITHIN = 180.0  # seconds in which what was killed serves again, and a burst is acknowledged
SETTLED_WITHIN = 600.0  # seconds after the last burst; daemons try again within ten minutes
STILL = 60.0  # seconds without a message that lacked, after which what lacks is missing
WAITING = 50  # messages in a house's outbox with which another burst begins: over Tor it may take minutes
DRAINED_WITHIN = 600.0  # seconds until there are no more
_QUIET = 1.0  # seconds without a retained message, after which all have come

Victim = Literal["gateway here", "gateway there", "daemon here", "daemon there"]
VICTIMS: tuple[Victim, ...] = ("gateway here", "gateway there", "daemon here", "daemon there")
Progress = Callable[[str], None]


@dataclass(frozen=True)
class Burst:
    """What one house publishes at once to a topic of its own, all of it retained, and what is killed."""

    number: int
    house: int
    """Which of the two publishes: `here`; the other one is `there`."""
    qos: int
    payloads: tuple[bytes, ...]
    victim: Victim | None
    moment: float
    """Seconds after the burst has begun when it is killed."""
    away: float
    """Seconds after which it is started again."""

    @property
    def topic(self) -> str:
        """Return where it is published."""
        return f"{ALIAS}/{self.house}/{self.number}"

    def firsts(self, came: Sequence[bytes]) -> list[bytes]:
        """Return what came, each message once: at QoS 1 the gateway there, or a client, may send it again."""
        return list(dict.fromkeys(came))

    def is_in_order(self, came: Sequence[bytes]) -> bool:
        """Tell whether what came did so in the order in which it was published; some may lack."""
        places = [self.payloads.index(one) for one in self.firsts(came)]
        return places == sorted(places)

    def lacks(self, came: Sequence[bytes]) -> int:
        """Return how much did not come."""
        return len(set(self.payloads) - set(came))


def plan_bursts(count: int, seed: int) -> list[Burst]:
    """Draw so many bursts."""
    chance = random.Random(f"hushcast bursts {seed}")  # noqa: S311
    return [_draw(number, chance) for number in range(count)]


def _draw(number: int, chance: random.Random) -> Burst:
    payloads = [b"%d.%02d" % (number, place) for place in range(chance.randint(2, LARGEST))]
    if chance.random() < DELETES:
        payloads[-1] = b""
    victim = chance.choice(VICTIMS) if chance.random() < KILLS else None
    house, qos = chance.randrange(2), chance.randrange(3)
    return Burst(
        number, house, qos, tuple(payloads), victim, chance.uniform(0, MOMENT), chance.uniform(0, AWAY)
    )


@dataclass
class House:
    """One house of a testnet, with a client that publishes and one that reads what the other publishes."""

    gateway: GatewayMember
    daemon: Member
    writer: paho.Client
    reader: paho.Client
    came: dict[str, list[bytes]] = field(default_factory=dict)
    """What the reader was given, by topic."""

    def victim(self, kind: str) -> GatewayMember | Member:
        """Return what is to be killed."""
        return self.gateway if kind == "gateway" else self.daemon

    def retained(self) -> dict[str, bytes]:
        """Return what a client that comes now finds retained."""
        found: dict[str, bytes] = {}
        last = [time.monotonic()]

        def take(client: paho.Client, data: Any, message: paho.MQTTMessage) -> None:
            found[message.topic] = bytes(message.payload)
            last[0] = time.monotonic()

        with connected(self.gateway.port, "counting", paho.MQTTv311, lasting=False) as client:
            client.on_message = take
            _subscribe(client, f"{ALIAS}/#")
            wait_until(lambda: time.monotonic() - last[0] > _QUIET, "all that is retained", SERVED_WITHIN)
        return found


def watch_bursts(directory: Path, count: int, seed: int, progress: Progress) -> dict[str, Any]:
    """Let the two houses of a running testnet publish so many bursts to each other; return figures.

    `ok` tells whether every burst came in order, and both houses retain the same in the end, which of what
    was acknowledged is the last. What came too late to be given to anybody is `missing`. Raises
    `AssertionError` where something does not serve again after a kill.
    """
    testnet = load(directory)
    plan = plan_bursts(count, seed)
    with ExitStack() as stack:
        houses = [
            stack.enter_context(_house(testnet, member, number))
            for number, member in enumerate(testnet.gateways)
        ]
        for house in houses:
            trio.run(_routed, house.daemon)
        for burst in plan:
            _publish(testnet, houses, burst)
            progress(f"burst {burst.number + 1}: QoS {burst.qos}, {len(burst.payloads)}, {burst.victim}")
        return _judge(houses, plan, progress)


@contextmanager
def _house(testnet: Testnet, gateway: GatewayMember, number: int) -> Iterator[House]:
    (daemon,) = [member for member in testnet.members if member.name == gateway.daemon]
    with (
        connected(gateway.port, "writer", paho.MQTTv311) as writer,
        connected(gateway.port, "reader", paho.MQTTv311) as reader,
    ):
        house = House(gateway, daemon, writer, reader)

        def take(client: paho.Client, data: Any, message: paho.MQTTMessage) -> None:
            house.came.setdefault(message.topic, []).append(bytes(message.payload))

        reader.on_message = take
        _subscribe(reader, f"{ALIAS}/{1 - number}/#")
        yield house


def _subscribe(client: paho.Client, wanted: str) -> None:
    granted = threading.Event()
    client.on_subscribe = lambda *_: granted.set()
    client.subscribe(wanted, 1)
    if not granted.wait(SERVED_WITHIN):
        raise AssertionError("no subscription was granted")


async def _routed(daemon: Member) -> None:
    with deadline(ROUTED_WITHIN, "the subscription was not installed in time"):
        async with hushcast.connect(daemon.socket) as asked:
            while not [held for held in await asked.subscriptions() if held.is_ready]:  # noqa: ASYNC110
                await trio.sleep(0.2)


async def _drained(daemon: Member) -> None:
    """Return when little waits in a daemon's outbox; it may have been started a moment ago."""
    with deadline(DRAINED_WITHIN, "the outbox does not empty"):
        while True:
            with suppress(hushcast.HushcastError):
                async with hushcast.connect(daemon.socket, reconnect=False) as asked:
                    if len(await asked.outbox()) <= WAITING:
                        return
            await trio.sleep(0.2)


def _publish(testnet: Testnet, houses: Sequence[House], burst: Burst) -> None:
    """Publish a burst, kill and start what it says, and wait until all is acknowledged."""
    here, there = houses[burst.house], houses[1 - burst.house]
    for house in houses:
        trio.run(_drained, house.daemon)
    for client in (here.writer, there.reader):
        # paho sends what is published while it connects before what waits: that would be its own disorder
        wait_until(client.is_connected, "the client comes back", SERVED_WITHIN)
    told = [here.writer.publish(burst.topic, payload, burst.qos, retain=True) for payload in burst.payloads]
    if burst.victim is not None:
        time.sleep(burst.moment)
        kind, _, where = burst.victim.partition(" ")
        trio.run(_kill, testnet, (here if where == "here" else there).victim(kind), burst.away)
    if burst.qos:
        wait_until(lambda: all(one.is_published() for one in told), "all is acknowledged", SERVED_WITHIN)


async def _kill(testnet: Testnet, victim: GatewayMember | Member, away: float) -> None:
    if isinstance(victim, Member):
        breaker, fault = ProcessBreaker(testnet), Fault("kill", victim.name, 0.0, away)
        await breaker.begin(fault)
        await trio.sleep(away)
        await breaker.end(fault)
        return
    pid = holder(Path(victim.state))
    running = processes.find(victim.name, pid) if pid is not None else None
    if running is None:
        raise AssertionError(f"{victim.name} is not running")
    await processes.kill([running])
    await trio.sleep(away)
    await gateways.start([victim])


def _judge(houses: Sequence[House], plan: Sequence[Burst], progress: Progress) -> dict[str, Any]:
    """Wait until all has come that comes and both houses retain the same, and count what does not hold."""
    until, still = time.monotonic() + SETTLED_WITHIN, time.monotonic() + STILL
    before = -1
    while True:
        kept = [house.retained() for house in houses]
        differ = [one for one in plan if kept[0].get(one.topic) != kept[1].get(one.topic)]
        stale = [
            one for one in plan if one.qos and any(of.get(one.topic, b"") != one.payloads[-1] for of in kept)
        ]
        came = {one: houses[1 - one.house].came.get(one.topic, []) for one in plan}
        missing = [sum(one.lacks(of) for one, of in came.items() if bool(one.qos) == kind) for kind in (0, 1)]
        now = time.monotonic()
        if missing[1] != before:
            before, still = missing[1], now + STILL
        if (not (differ or stale) and (not missing[1] or now > still)) or now > until:
            break
        progress(f"{len(differ)} topics differ, {len(stale)} are stale, messages lack: {missing[1]}")
    shuffled = [one for one in plan if not one.is_in_order(came[one])]
    for what, found in (("shuffled", shuffled), ("differ", differ), ("stale", stale)):
        for one in found:
            progress(f"{what}: burst {one.number + 1} of QoS {one.qos}, {one.victim}: {came[one]}")
    return {
        "ok": not (shuffled or differ or stale),
        "bursts": len(plan),
        "messages": sum(len(one.payloads) for one in plan),
        "kills": sum(one.victim is not None for one in plan),
        "in_order": len(plan) - len(shuffled),
        "retained_equal": len(plan) - len(differ),
        "stale": len(stale),
        "missing": missing[1],
        "missing_at_qos_0": missing[0],
        "again": sum(len(of) - len(set(of)) for of in came.values()),
    }
