"""What authorities' probes find: `python -m benchmarks.lab.expulsion [--relays N] [--share S] [--churn C]`.

Real daemons in one process, under a mock clock: relays, of which some lose a share of what they are given,
and for each authority a client with hidden subscriptions. Whom more than half of the authorities list is left
out of the rosters. A line an epoch: bad relays and honest ones that each authority and most of them list.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import trio
import trio.testing

from hushcast_directory.server import expulsion_list
from hushcast_directory.server.hidden_subscriptions import HiddenSubscriptions
from hushcast_directory.server.roll import Roll
from hushcast_protocol.authorities.expulsion import ExpelledRelay, LossTrial
from hushcast_protocol.base.errors import Refusal
from hushcast_protocol.base.roster import Network
from hushcast_protocol.content.topics import Interest, parse_topic
from hushcast_protocol.overlay.profile import HARDENED
from hushcast_runtime.logs import configure_logs
from hushcast_testnet.simulations.clock_calls import ClockCalls
from hushcast_testnet.simulations.colluders import Colluders
from hushcast_testnet.simulations.faults import Faults, keep_churning
from hushcast_testnet.simulations.overlay_members import OverlayMember, OverlayWorld
from hushcast_testnet.simulations.overlay_simulation import rare_collections
from hushcast_testnet.simulations.scenario import BEGIN, EPOCH_SECONDS


@dataclass(frozen=True)
class Asked:
    """What to measure."""

    relays: int
    bad: float
    share: float
    select: bool
    churn: float
    authorities: int
    subscriptions: int
    probes: float
    epochs: int
    seed: int


class Client:
    """A daemon as `HiddenSubscriptions` needs it, without a socket in between."""

    def __init__(self, member: OverlayMember) -> None:
        self._member = member

    async def subscribe(self, topic: str) -> None:
        """Subscribe; return once messages reach the daemon."""
        (await self._member.daemon.service.subscribe(Interest(parse_topic(topic)))).close()

    async def unsubscribe(self, topic: str) -> None:
        """End a subscription, if there is one."""
        await self._member.daemon.service.unsubscribe(parse_topic(topic))

    async def losses(self, topic: str) -> LossTrial | None:
        """Return what each relay lost and passed on."""
        await trio.lowlevel.checkpoint()
        try:
            (told,) = await self._member.daemon.service.coverage(parse_topic(topic), losses=True)
        except (Refusal, ValueError):
            return None
        counts: Mapping[str, Sequence[float]] = told["losses"]
        return {bytes.fromhex(relay): (lost, passed) for relay, (lost, passed) in counts.items()}


async def measure(asked: Asked, folder: Path, clock: trio.testing.MockClock) -> None:
    """Run a network, and print a line an epoch."""
    world = OverlayWorld(
        Network("expulsion", "hardened", EPOCH_SECONDS),
        HARDENED,
        asked.seed,
        BEGIN,
        None,
        asked.probes or asked.relays,
        ClockCalls(clock).call_at,
    )
    async with trio.open_nursery() as nursery:
        await world.open_directory(asked.relays, nursery)
        (roll,), calendar = world.directory.rolls, world.network.calendar
        relays = [OverlayMember(world, f"relay-{number}", is_relay=True) for number in range(asked.relays)]
        clients = [
            OverlayMember(world, f"client-{number}", is_relay=False) for number in range(asked.authorities)
        ]
        for member in (*relays, *clients):
            await member.start(nursery)
        for member in (*relays, *clients):
            while not member.daemon.ready:  # noqa: ASYNC110 - a mock clock makes waiting free
                await trio.sleep(1)
        bad = world.env.sample(relays, round(asked.bad * asked.relays))
        together = Colluders() if asked.select else None
        for relay in bad:
            relay.lose_messages(together, asked.share)
        honest = [relay for relay in relays if relay not in bad]
        nursery.start_soon(keep_churning, Faults(churn=asked.churn), honest, world.env, nursery)
        lists = []
        for number, client in enumerate(clients):
            lists.append(folder / str(number))
            environment = world.environment(f"authority-{number}")
            probing = HiddenSubscriptions(
                Client(client), calendar, environment, lists[-1], asked.subscriptions
            )
            nursery.start_soon(probing.run)
        names = {relay.key for relay in bad}
        for epoch in range(1, asked.epochs + 1):
            await trio.sleep(EPOCH_SECONDS)
            told = [expulsion_list.read(file) for file in lists]
            _vote(roll, calendar.epoch(world.env.now()), told)
            _tell(epoch, told, names, roll)
        nursery.cancel_scope.cancel()


def _vote(roll: Roll, now: int, told: Sequence[Sequence[ExpelledRelay]]) -> None:
    """Leave out whom more than half of the authorities leave out, in an epoch."""
    votes: Counter[bytes] = Counter()
    for one in told:
        roll.expel(one)
        votes.update(roll.expelled(now))
    entries = {one.relay: one for each in told for one in each}
    roll.expel([entries[relay] for relay, count in votes.items() if 2 * count > len(told)])


def _tell(epoch: int, told: Sequence[Sequence[ExpelledRelay]], bad: set[Any], roll: Roll) -> None:
    votes = Counter(relay.relay for one in told for relay in one)
    most = {relay for relay, count in votes.items() if 2 * count > len(told)}
    sets = [{one.relay for one in each} for each in told]
    left = len(bad & set(roll.listed()))
    print(
        f"epoch {epoch}: listed {' '.join(f'{len(each & bad)}+{len(each - bad)}' for each in sets)},"
        f" by most {len(most & bad)}+{len(most - bad)}; bad with a seat: {left}",
        flush=True,
    )


def main() -> None:
    """Measure once."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--relays", type=int, default=60)
    parser.add_argument("--bad", type=float, default=0.1, help="share of the relays that lose messages")
    parser.add_argument("--share", type=float, default=1.0, help="of what they are given, that they lose")
    parser.add_argument("--select", action="store_true", help="they lose what they hold twice")
    parser.add_argument("--churn", type=float, default=0.0, help="of the honest ones, that go a minute")
    parser.add_argument("--authorities", type=int, default=3)
    parser.add_argument("--subscriptions", type=int, default=8)
    parser.add_argument("--probes", type=float, default=0.0, help="an epoch; as many as relays unless given")
    parser.add_argument("--epochs", type=int, default=72)
    parser.add_argument("--seed", type=int, default=1)
    asked = Asked(**vars(parser.parse_args()))
    internals: Any = trio._core._run
    internals._r = random.Random(asked.seed)  # noqa: S311
    internals._ALLOW_DETERMINISTIC_SCHEDULING = True
    clock = trio.testing.MockClock(autojump_threshold=0)
    configure_logs("error", as_json=False)
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder, rare_collections():
        trio.run(measure, asked, Path(folder), clock, clock=clock)
    print(f"{time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()
