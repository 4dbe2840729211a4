"""A flood of names at an authority, over links: `python -m benchmarks.lab.registration_flood [--names N]`.

The directory is the real one, with its rooms, checks and caps, and its records in SQLite; streams are in
memory, and each takes a time to arrive. Time is virtual: what counts is what the processor does, and an hour
in which nothing happens takes none. Each name answers at an address of its own while it is being registered.
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import tempfile
import time
from collections import Counter as Tally
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

import trio
import trio.testing

from hushcast_directory.client.directory_client import DirectoryClient
from hushcast_directory.server.authority_driver import AuthorityDriver
from hushcast_directory.server.configured_set import ConfiguredSet
from hushcast_directory.server.counters import DIRECTORY_COUNTERS
from hushcast_directory.server.daemon import Directory, DirectoryParts
from hushcast_directory.server.descriptors import DESCRIPTOR
from hushcast_directory.server.roll import Roll
from hushcast_protocol.authorities.authority_set import Authorities, AuthorityContact
from hushcast_protocol.authorities.head_inside import inside_of
from hushcast_protocol.authorities.listing import Listing, turn
from hushcast_protocol.authorities.seat_admission import SeatAdmission
from hushcast_protocol.base.addresses import memory_address
from hushcast_protocol.base.backoff import Backoff
from hushcast_protocol.base.crypto.secrets import ParcelKey, Seed
from hushcast_protocol.base.epochs import EPOCHS_A_DAY
from hushcast_protocol.base.errors import PeerError, Refusal
from hushcast_protocol.base.link.links import Link
from hushcast_protocol.base.record_kinds import RecordKind
from hushcast_protocol.base.roster import Descriptor, Network, sign_descriptor
from hushcast_protocol.base.wire import PublicKey, RelayId
from hushcast_protocol.overlay.frames import MAX_OVERLAY_FRAME, decode_overlay
from hushcast_runtime.counters import Counters
from hushcast_runtime.environment import simulated_environment
from hushcast_runtime.logs import configure_logs
from hushcast_runtime.storage.state_layout import DATABASE
from hushcast_runtime.storage.store import SqliteStore
from hushcast_runtime.transports.base import TransportError
from hushcast_runtime.transports.channel import accept_channel
from hushcast_runtime.transports.memory import MemoryNetwork
from hushcast_testnet.simulations.clock_calls import call_at

EPOCH = 3600  # seconds
BEGIN = 20_000 * EPOCHS_A_DAY * EPOCH  # a day begins
NETWORK = Network("a flood", "hardened", EPOCH)
CALENDAR = NETWORK.calendar
OWN = Seed(b"directory key of 32 bytes length")
ALONE = PublicKey(OWN.public())
LASTS = 4  # epochs that descriptors of the flood hold: as long as they may
PARCEL = ParcelKey(bytes(31) + b"\1").public()  # nobody sends them parcels
PAUSE = 1.0, 5.0  # seconds until a name that was turned away comes again


@dataclass(frozen=True)
class Plan:
    """What comes at an authority that has had a day's peace."""

    names: int = 100_000
    """Of one sender, each handed in until it is taken, or told that others are before it in line."""
    at_once: int = 128
    """Of them under way: more than are reached and wait at once, so all who come compete."""
    relays: int = 50
    """That have a seat before."""
    newcomers: int = 10
    """Honest relays that come while it lasts, and stay."""
    seats: int = 20
    """For newcomers a day."""
    delay: tuple[float, float] = (0.2, 1.0)
    """Seconds that a stream's bytes take one way, between these: a relay is reached in one to six."""
    minutes: float = 120.0
    """Of real time, after which no more names come."""


@dataclass
class Outcome:
    """What came of it."""

    names: int = 0
    """That were handed in."""
    told: dict[str, int] = field(default_factory=dict)
    """How often the sender heard what."""
    hours: float = 0.0
    """Virtual ones that the flood took."""
    epochs: int = 0
    heads_missed: int = 0
    seats_lost: int = 0
    """Of relays that had one before, in any epoch."""
    renewals: int = 0
    renewals_refused: int = 0
    slowest_renewal: float = 0.0
    """Virtual seconds."""
    reached_after: list[float] = field(default_factory=list)
    """Virtual seconds until each honest newcomer was taken, with its tries."""
    in_line: int = 0
    """How often honest newcomers were told that others are before them in line."""
    names_seated: int = 0
    most_new_seats: int = 0
    """That were not there when the day began: who goes gives its place back."""
    out_of_turn: int = 0
    """Newcomers that were seated though others on the ballot are before them in line."""
    newcomers_seated: int = 0
    """On the day after, of the honest ones."""
    most_held: int = 0
    """Descriptors in memory."""
    most_remembered: int = 0
    """Digests, and newcomers in line, in memory."""
    most_records: int = 0
    most_disk: int = 0
    """Bytes of the database and its log."""
    processor: float = 0.0
    """Milliseconds a name, of both ends together."""
    memory: tuple[int, int] = (0, 0)
    """MiB of the process, before and at its most."""
    cut_short: bool = False
    """Whether time was up before all names had come."""


class _InlineStore(SqliteStore):
    """Commits in the scheduler's own thread: virtual time must not pass while a disk is written.

    What a power failure would leave is not the question here, so nothing waits for the disk itself.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._connection.execute("PRAGMA synchronous=OFF")

    async def _in_thread(self, work: Any, *args: Any) -> Any:
        await trio.lowlevel.checkpoint()
        return work(*args)

    async def scan(
        self, kind: RecordKind, prefix: bytes = b"", after: bytes | None = None, limit: int = -1
    ) -> list[tuple[bytes, bytes]]:
        """Return committed records in order."""
        await trio.lowlevel.checkpoint()
        return self._select(kind, prefix, after, limit)


class Flood:
    """The world in which it comes."""

    def __init__(self, plan: Plan, folder: Path, nursery: trio.Nursery, seed: int = 1) -> None:
        self.plan = plan
        self.outcome = Outcome()
        self._folder = folder
        self._nursery = nursery
        self._random = Random(seed)  # noqa: S311 - delays that replay; no secret comes of it
        self.env = simulated_environment(seed, BEGIN)
        self._wires = MemoryNetwork(lambda: self._random.uniform(*plan.delay), call_at())
        self._store = _InlineStore(folder / DATABASE)
        self.roll = Roll(NETWORK, OWN, self._store)
        member = AuthorityContact(ALONE, memory_address(ALONE))
        sitting = ConfiguredSet(Authorities.of([member], 1, SeatAdmission(plan.seats)), None, plan.relays)
        counters = Counters(DIRECTORY_COUNTERS)
        transport = self._wires.transport()
        parts = DirectoryParts(self.roll, OWN, sitting, self.env, transport, self._store, counters)
        self.directory = Directory(parts)
        self._names: Iterator[Seed] = (self._seed(b"n", number) for number in range(plan.names))
        self._flooding = False
        self._of_flood: set[RelayId] = set()
        self._ballots: dict[int, set[RelayId]] = {}

    @property
    def agreeing(self) -> AuthorityDriver:
        """What the authority agrees on, with itself."""
        found = self.directory.agreeing
        assert isinstance(found, AuthorityDriver)
        return found

    @staticmethod
    def _seed(kind: bytes, number: int) -> Seed:
        return Seed(kind + number.to_bytes(31, "big"))

    async def run(self) -> Outcome:
        """Play a day of peace, the flood, and a change of day after it; return what came of it."""
        plan, out = self.plan, self.outcome
        self._note_ballots()
        await self._nursery.start(self.directory.run)
        relays = [self._seed(b"r", number) for number in range(plan.relays)]
        for seed in relays:
            self._nursery.start_soon(self._stay, seed)
        await self._until(CALENDAR.epoch(BEGIN) + EPOCHS_A_DAY + 1)
        before, used = _resident(), time.process_time()
        began, first = self.env.now(), CALENDAR.epoch(self.env.now())
        self._nursery.start_soon(self._watch, {seed.public() for seed in relays}, first)
        newcomers = [self._seed(b"h", number) for number in range(plan.newcomers)]
        self._nursery.start_soon(self._come, newcomers)
        await self._flood()
        out.hours = (self.env.now() - began) / 3600
        out.processor = 1000 * (time.process_time() - used) / max(1, out.names)
        midnight = (CALENDAR.epoch(self.env.now()) // EPOCHS_A_DAY + 1) * EPOCHS_A_DAY
        await self._until(max(midnight, CALENDAR.epoch(self.env.now()) + LASTS + 1) + EPOCHS_A_DAY)
        seated = {relay for relay, *_ in self._listing().seats}
        out.newcomers_seated = sum(seed.public() in seated for seed in newcomers)
        out.memory = before, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        return out

    # Whoever registers

    async def _flood(self) -> None:
        until, self._flooding = time.monotonic() + 60 * self.plan.minutes, True
        told: Tally[str] = Tally()

        async def hand_in() -> None:
            for seed in self._names:
                if time.monotonic() > until:
                    self.outcome.cut_short = True
                    return
                self.outcome.names += 1
                self._of_flood.add(seed.public())
                while (heard := await self._knock(seed, LASTS)) in ("turned away", "gave way"):
                    told[heard] += 1
                    await trio.sleep(self._random.uniform(*PAUSE))
                told[heard] += 1

        async with trio.open_nursery() as nursery:
            for _ in range(self.plan.at_once):
                nursery.start_soon(hand_in)
        self._flooding = False
        self.outcome.told = dict(sorted(told.items()))

    async def _come(self, newcomers: list[Seed]) -> None:
        """Have honest newcomers come, one after the other, while the flood lasts."""
        share = self.plan.names / (len(newcomers) + 1)
        for number, seed in enumerate(newcomers):
            while self._flooding and self.outcome.names < number * share:  # noqa: ASYNC110 - virtual time
                await trio.sleep(10)
            self._nursery.start_soon(self._stay, seed)

    async def _stay(self, seed: Seed) -> None:
        """Register every epoch, as a relay does, for ever."""
        backoff, began, was_taken = Backoff(1.0, 60.0, self.env.randomness), self.env.now(), False
        while True:
            asked = self.env.now()
            heard = await self._knock(seed, 3)
            is_seated = self.roll.lists(seed.public())
            if is_seated:
                self.outcome.renewals += 1
                self.outcome.renewals_refused += heard != "taken"
                self.outcome.slowest_renewal = max(self.outcome.slowest_renewal, self.env.now() - asked)
            if heard != "taken":
                self.outcome.in_line += heard == "in line"
                await trio.sleep(backoff.next())
                continue
            if not was_taken and self._flooding and not is_seated:
                self.outcome.reached_after.append(round(self.env.now() - began, 1))
            was_taken = True
            backoff.reset()
            await trio.sleep(EPOCH * self.env.uniform(0.6, 1.0))

    async def _knock(self, seed: Seed, epochs: int) -> str:
        """Register once, and answer at the address meanwhile; return what was heard."""
        transport, now = self._wires.transport(), int(self.env.now())
        listener = await transport.listen(seed)
        body = Descriptor(NETWORK.id, seed.public(), listener.address, PARCEL, now, now + epochs * EPOCH, 0)
        client = DirectoryClient(self.env, transport, NETWORK.id, memory_address(ALONE), _Known(ALONE))

        async def answer(stream: trio.abc.Stream) -> None:
            link = Link.respond(NETWORK.id, seed, self.env.randomness, MAX_OVERLAY_FRAME)
            try:
                channel, _ = await accept_channel(stream, link, decode_overlay)
                await channel.finish()
            except (PeerError, TransportError):
                pass

        async with trio.open_nursery() as nursery:
            nursery.start_soon(listener.serve, answer)
            try:
                await client.register(sign_descriptor(seed, body))
                heard = "taken"
            except Refusal as refusal:
                heard = _in_short(refusal.reason)
            except (TransportError, PeerError):
                heard = "gave way"
            transport.vanish()
            nursery.cancel_scope.cancel()
        return heard

    # What is looked at

    def _note_ballots(self) -> None:
        """Have each ballot noted, to compare with it who is seated."""
        cast = self.roll.ballot

        def ballot(epoch: int, agreed: float, was_away: bool) -> Any:
            listed = cast(epoch, agreed, was_away)
            self._ballots[epoch] = {relay for relay, *_ in listed}
            return listed

        self.roll.ballot = ballot  # type: ignore[method-assign]

    async def _watch(self, relays: set[RelayId], first: int) -> None:
        """Look at memory and disk all the time, and at each head."""
        out, seen = self.outcome, first - 1
        held = {relay for relay, *_ in self._listing().seats}
        self._waited = dict(self._listing().waiting)
        while True:
            out.most_held = max(out.most_held, self.roll.count(0))
            remembered = len(self.roll._by_digest) + len(self.roll._line)
            out.most_remembered = max(out.most_remembered, remembered)
            files = [self._folder / f"{DATABASE}{end}" for end in ("", "-wal")]
            out.most_disk = max(out.most_disk, sum(file.stat().st_size for file in files))
            now = CALENDAR.epoch(self.env.now())
            if now > seen:
                out.most_records = max(out.most_records, len(await self._store.scan(DESCRIPTOR)))
                listing = self._listing()
                out.epochs += 1
                out.heads_missed += listing.epoch < now
                seated = {relay for relay, *_ in listing.seats}
                out.seats_lost += len(relays - seated)
                fresh = sum(since >= now - now % EPOCHS_A_DAY for *_, since in listing.seats)
                out.most_new_seats = max(out.most_new_seats, fresh)
                out.names_seated += len((seated - held) & self._of_flood)
                out.out_of_turn += self._out_of_turn(listing.epoch, seated - held, seated)
                held, seen = seated, now
                self._waited = dict(listing.waiting)
            await trio.sleep(EPOCH / 60)

    def _out_of_turn(self, epoch: int, fresh: set[RelayId], seated: set[RelayId]) -> int:
        """Return how many were seated before somebody on the ballot who is earlier in the day's line."""
        machine = self.agreeing.machine
        head = machine.chain.head if machine is not None else None
        assert head is not None
        today = inside_of(head).draw.today
        beacon = today.value if today is not None and today.day == epoch // EPOCHS_A_DAY else None

        def in_turn(relay: RelayId) -> tuple[bool, int, bytes]:
            # Who came in one epoch is one as good as the other here.
            ahead, since, place = turn(relay, self._waited.get(relay, epoch), epoch, beacon, bytes(32))
            return ahead, since, b"" if ahead else place

        waiting = self._ballots.get(epoch, set()) - seated
        first = min((in_turn(relay) for relay in waiting), default=None)
        return 0 if first is None else sum(in_turn(relay) > first for relay in fresh)

    def _listing(self) -> Listing:
        found, _ = self.agreeing._archive.after(None)
        assert found is not None
        assert found.listing is not None, "it is of the newest head"
        return found.listing

    async def _until(self, epoch: int) -> None:
        await trio.sleep(max(0.0, CALENDAR.epoch_start(epoch) - self.env.now()) + 1)


@dataclass(frozen=True)
class _Known:
    key: PublicKey


def _in_short(reason: str) -> str:
    if reason.startswith("too many newcomers wait"):
        return "turned away"
    return "in line" if reason.startswith("too many relays wait") else reason


def _resident() -> int:
    """Return the MiB that this process has in memory."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") >> 20


async def play(plan: Plan, folder: Path) -> Outcome:
    """Play a plan under trio's clock, which should be virtual, with a state in a folder."""
    async with trio.open_nursery() as nursery:
        outcome = await Flood(plan, folder, nursery).run()
        nursery.cancel_scope.cancel()
    return outcome


def main() -> None:
    """Print what came of a flood."""
    parser = argparse.ArgumentParser(description=__doc__)
    for key, default in islice(asdict(Plan()).items(), 5):
        parser.add_argument(f"--{key.replace('_', '-')}", type=int, default=default)
    parser.add_argument("--minutes", type=float, default=Plan.minutes)
    plan = Plan(**vars(parser.parse_args()))
    configure_logs("error", as_json=False)
    with tempfile.TemporaryDirectory(prefix="hushcast-flood-") as folder:
        outcome = trio.run(play, plan, Path(folder), clock=trio.testing.MockClock(autojump_threshold=0))
    for key, value in asdict(outcome).items():
        sys.stdout.write(f"{key.replace('_', ' '):20} {value}\n")


if __name__ == "__main__":
    main()
