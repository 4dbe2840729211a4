"""Whoever ends ready connections at honest relays chooses no origins; and nothing opens because of use."""

from __future__ import annotations

import math
import random
from collections import Counter
from itertools import combinations, pairwise
from typing import Any, cast

import trio

from hushcast_node.counters import COUNTERS
from hushcast_overlay.connector import Connector
from hushcast_overlay.routes.dropper import Dropper
from hushcast_overlay.routes.ready_connections import ReadyConnections
from hushcast_overlay.shards.shards import Shards
from hushcast_protocol.base.addresses import Address
from hushcast_protocol.base.keeping_rule import KeepingRule
from hushcast_protocol.base.roster import Relay
from hushcast_protocol.base.versions.manner import NEWEST
from hushcast_protocol.base.wire import RelayId
from hushcast_protocol.content.messages import Message
from hushcast_protocol.overlay.frames import Receipt
from hushcast_protocol.overlay.profile import HARDENED
from hushcast_protocol.overlay.ready_slots import NONE_READY, ReadyRule
from hushcast_runtime.context import Context
from hushcast_runtime.counters import Counters
from hushcast_runtime.environment import simulated_environment
from hushcast_runtime.storage.store import MemoryStore
from hushcast_runtime.tracing import NoTracer
from hushcast_runtime.transports.base import TransportError

RELAYS = [Relay(b"%032d" % number, Address(""), b"", 0) for number in range(12)]
COLLUDING = {relay.id for relay in RELAYS[:2]}
EIGHT = ReadyRule(8, 4500.0)
DROPS = 10_000
HOUR = 3600.0
AT_ODDS = 1e-3
"""Of a test that fails by chance."""


class SilentChannel:
    """A connection over which nothing comes."""

    async def stirred(self) -> bool:
        await trio.sleep_forever()

    async def aclose(self) -> None:
        pass


class OneNeighbourhood:
    """Where a daemon drops: all relays, as `Connector` and `Shards` show them to it."""

    keeping, today, manner = KeepingRule(6), 0, NEWEST

    def __init__(self, kills_honest: bool) -> None:
        self.kills_honest = kills_honest
        self.opened: list[float] = []
        self.drops: list[tuple[RelayId, bool]] = []
        """At which relays, and whether over a connection that was ready."""

    def is_cut(self, day: int) -> bool:
        return False

    def copies(self, day: int, trunk: bytes, width: int) -> tuple[int, ...]:
        return (0,)

    def of(self, day: int, trunk: bytes) -> OneNeighbourhood:
        return self

    async def find(self, day: int, trunk: bytes, copy: int) -> OneNeighbourhood:
        return self

    def origins(self) -> list[Relay]:
        return RELAYS

    async def unnamed(self, relay: RelayId, address: Address, decode: Any) -> SilentChannel:
        self.opened.append(trio.current_time())
        await trio.sleep(3.0)
        if self.kills_honest and relay not in COLLUDING:
            raise TransportError("its room is flooded")
        return SilentChannel()

    async def drop(self, relay: Relay, frame: Any, decode: Any, timeout: float, claim: Any) -> Receipt:
        self.drops.append((relay.id, claim is not None and await claim() is not None))
        return Receipt("accepted")


class Noted:
    """Hears how drops of one message go."""

    def note_try(self, origin: bytes) -> None:
        pass

    note_receipt = note_try

    def note_failure(self, reason: str) -> None:
        raise AssertionError(reason)


async def published(
    world: OneNeighbourhood, rule: ReadyRule, count: int, an_hour: float, seed: int = 1
) -> list[float]:
    """Publish at random moments; return these."""
    env = simulated_environment(seed)
    moments: list[float] = []
    async with trio.open_nursery() as nursery:
        context = Context(env, MemoryStore(), Counters(COUNTERS), NoTracer(), nursery.start_soon)
        connector, shards = cast("Connector", world), cast("Shards", world)
        ready = ReadyConnections(rule, connector, shards, context)
        nursery.start_soon(ready.run)
        dropper = Dropper(HARDENED, shards, connector, env, ready)
        message = Message(bytes(32), 0, (bytes(16),), bytes(512), b"")
        drawn = random.Random(seed)
        for _ in range(count):
            await trio.sleep(drawn.expovariate(an_hour / HOUR))
            moments.append(trio.current_time())
            await dropper.drop(message, Noted())
        nursery.cancel_scope.cancel()
    return moments


def chi_square(counts: Counter[Any], cells: int) -> float:
    """How far counts are from those of one probability for all cells, in standard deviations."""
    expected = counts.total() / cells
    square = sum((counts[cell] - expected) ** 2 for cell in counts) / expected
    square += expected * (cells - len(counts))
    return (square - (cells - 1)) / math.sqrt(2 * (cells - 1))


def apart(one: list[float], other: list[float]) -> float:
    """How likely two samples of one distribution are this far apart, by Kolmogorov and Smirnov."""
    tagged = sorted([(value, 1 / len(one)) for value in one] + [(value, -1 / len(other)) for value in other])
    height = farthest = 0.0
    for (value, step), following in pairwise([*tagged, (math.inf, 0.0)]):
        height += step
        if value != following[0]:
            farthest = max(farthest, abs(height))
    root = math.sqrt(len(one) * len(other) / (len(one) + len(other)))
    scaled = (root + 0.12 + 0.11 / root) * farthest
    return float(min(1.0, 2 * sum((-1) ** (k - 1) * math.exp(-2 * (k * scaled) ** 2) for k in range(1, 101))))


async def test_origins_are_uniform_where_no_ready_connection_at_an_honest_relay_lives() -> None:
    world = OneNeighbourhood(kills_honest=True)
    await published(world, EIGHT, DROPS, an_hour=1.0)
    pairs = Counter(
        frozenset((one, other))
        for (one, _), (other, _) in zip(world.drops[::2], world.drops[1::2], strict=True)
    )
    assert pairs.total() == DROPS
    assert set(pairs) <= {frozenset(pair) for pair in combinations([relay.id for relay in RELAYS], 2)}
    assert abs(chi_square(pairs, math.comb(len(RELAYS), 2))) < 4
    assert abs(chi_square(Counter(relay for relay, _ in world.drops), len(RELAYS))) < 4
    over_ready = Counter(relay for relay, is_ready in world.drops if is_ready)
    assert over_ready.total() > DROPS / 5, "most of those at colluders are over connections that live"
    assert set(over_ready) == COLLUDING


async def test_when_slots_open_does_not_depend_on_their_use() -> None:
    quiet, busy = OneNeighbourhood(kills_honest=False), OneNeighbourhood(kills_honest=True)
    await published(quiet, EIGHT, 5, an_hour=0.01, seed=2)
    moments = await published(busy, EIGHT, 1500, an_hour=3.0, seed=3)

    def gaps(opened: list[float]) -> list[float]:
        return [later - earlier for earlier, later in pairwise(opened)]

    assert min(len(quiet.opened), len(busy.opened)) > 1000
    assert apart(gaps(quiet.opened), gaps(busy.opened)) > AT_ODDS
    after_use = [
        next(opened for opened in busy.opened if opened > moment) - moment
        for moment in moments
        if moment < busy.opened[-1]
    ]
    # The time from any moment to the next one of a Poisson process is as the time between two.
    assert apart(gaps(quiet.opened), after_use[::3]) > AT_ODDS


async def test_that_a_dependence_would_be_found() -> None:
    drawn = random.Random(4)
    one = [drawn.expovariate(1.0) for _ in range(1500)]
    assert apart(one, [1.3 * drawn.expovariate(1.0) for _ in range(1500)]) < AT_ODDS


async def test_of_twenty_publications_nineteen_find_one_ready() -> None:
    world = OneNeighbourhood(kills_honest=False)
    await published(world, EIGHT, 2000, an_hour=1.0)
    both = list(zip(world.drops[::2], world.drops[1::2], strict=True))
    assert 0.94 < sum(one or other for (_, one), (_, other) in both) / len(both) < 0.98


async def test_who_holds_none_dials() -> None:
    world = OneNeighbourhood(kills_honest=False)
    await published(world, NONE_READY, 10, an_hour=1.0)
    assert not world.opened
    assert [is_ready for _, is_ready in world.drops] == [False] * 20
