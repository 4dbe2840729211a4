"""False accepts and false rejects: what real clients got, beside what plain sets say that they should get.

A drawn world: places with rooms and kinds of sensors, reservations with wildcards by two owners, readers with
wildcards, each for a purpose or for none. In each round every topic gets one message, and then some
reservations change. The rule is written here in its own words and shares no code with the gateway.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import trio

from benchmarks.figures import PeerMissing
from benchmarks.peers.mqtt import packet, text
from benchmarks.purpose_experiments.sides import (
    ALL,
    Given,
    Side,
    reserve,
    started,
    subscribe,
)

PURPOSES = tuple(
    f"{first}/{second}/{third}" for first in "abc" for second in "def" for third in "gh"
)  # and those above them
SEED = 20
_ALLOW_SOMETHING = 0.97  # of reservations: each of the others closes its topics
_END = "end"
_NUMBER = 4  # bytes of a payload: which message it is
_UNDECIDED = 1.5  # seconds: a gateway looks at whole subscriptions at least once a second

Sets = tuple[frozenset[str], frozenset[str]]


class Size(msgspec.Struct, frozen=True):
    """How large the world is."""

    topics: int = 500
    clients: int = 50
    subscriptions: int = 5  # of each client
    reservations: int = 60  # by clients; a sixth as many in the configuration, which is another owner
    rounds: int = 4
    changes: int = 12  # reservations that change between two rounds


class Verdicts(msgspec.Struct, frozen=True):
    """What came of a side: counts of pairs of a message and a client."""

    name: str
    asked: int = 0
    allowed: int = 0
    """Of those, how many by some subscription of the client's, message by message."""
    false_accepts: int = 0
    false_rejects: int = 0
    with_subscription: int = 0
    """Allowed ones of subscriptions that were refused or rest as a whole: the price of such a mode."""
    refused: int = 0
    """Subscriptions that were refused when they were made."""
    missing: str = ""


class World:
    """Reservations, readers and messages, drawn from a seed, and what the rule says of them."""

    def __init__(self, size: Size) -> None:
        self._chance = random.Random(SEED)  # noqa: S311 - to be drawn again the same
        self.size = size
        self.topics = [f"site/{n % 10}/{n // 10 % 10}/{n // 100}" for n in range(size.topics)]
        named = {"/".join(one.split("/")[:count]) for one in PURPOSES for count in (1, 2, 3)}
        self._named = sorted(named)
        configured = {self._filter(): self._sets() for _ in range(size.reservations // 6)}
        self.readers = [
            {self._filter(): self._purpose() for _ in range(size.subscriptions)} for _ in range(size.clients)
        ]
        self.held: dict[tuple[str, str], Sets] = {("config", one): sets for one, sets in configured.items()}
        self.given = Given(
            tuple(self._named),
            ("a", "b", "c"),
            tuple((one, tuple(sorted(aip)), tuple(sorted(pip))) for one, (aip, pip) in configured.items()),
        )

    def changes(self, count: int) -> Iterator[tuple[str, str]]:
        """Change reservations, and yield each filter with what to say of it."""
        for _ in range(count):
            ours = [wanted for owner, wanted in self.held if owner == "clients"]
            if ours and self._chance.random() < 0.2:
                wanted = self._chance.choice(ours)
                del self.held["clients", wanted]
                yield wanted, "!"
            else:
                again = ours and self._chance.random() < 0.4
                wanted = self._chance.choice(ours) if again else self._filter()
                aip, pip = self.held["clients", wanted] = self._sets()
                yield wanted, f"{','.join(sorted(aip))}|{','.join(sorted(pip))}"

    def allowed(self, topic: str, purpose: str) -> bool:
        """Tell whether a message of a topic may be used for a purpose; an empty one is none."""
        owners: dict[str, list[Sets]] = {}
        for (owner, wanted), sets in self.held.items():
            if covers(wanted, topic):
                owners.setdefault(owner, []).append(sets)
        if not owners or not purpose:
            return not owners
        if any(not aip or _below(purpose, pip) for clauses in owners.values() for aip, pip in clauses):
            return False
        return all(any(_below(purpose, aip) for aip, _ in clauses) for clauses in owners.values())

    def _filter(self) -> str:
        levels = self._chance.choice(self.topics).split("/")
        for number in range(1, 4):
            if self._chance.random() < 0.25:
                levels[number] = "+"
        if self._chance.random() < 0.3:
            levels[self._chance.randint(2, 3) :] = ["#"]
        return "/".join(levels)

    def _purpose(self) -> str:
        return "" if self._chance.random() < 0.1 else self._chance.choice(self._named)

    def _sets(self) -> Sets:
        count = self._chance.randint(1, 5) if self._chance.random() < _ALLOW_SOMETHING else 0
        aip = frozenset(self._chance.choices(["a", "b", "c"] * 5 + self._named, k=count))
        pip = frozenset(self._chance.choices(self._named, k=self._chance.randint(0, 1)))
        return aip, pip


def covers(wanted: str, topic: str) -> bool:
    """Tell whether a filter matches a topic; none here begins with `$`."""
    ours, theirs = wanted.split("/"), topic.split("/")
    if ours[-1] == "#":
        ours, theirs = ours[:-1], theirs[: len(ours) - 1]
    return len(ours) == len(theirs) and all(
        one in ("+", other) for one, other in zip(ours, theirs, strict=True)
    )


def _below(purpose: str, some: frozenset[str]) -> bool:
    return any(f"{purpose}/".startswith(f"{one}/") for one in some)


async def judged(size: Size, sides: Sequence[Side] = ALL) -> tuple[Verdicts, ...]:
    """Judge each side, one after the other, in the same world."""
    found = []
    with tempfile.TemporaryDirectory(prefix="hushcast-bench-") as folder:
        for number, side in enumerate(one for one in sides if one.reserves):
            try:
                found.append(await _judge(side, World(size), Path(folder) / str(number)))
            except PeerMissing as why:
                found.append(Verdicts(side.name, missing=str(why)))
    return tuple(found)


async def _judge(side: Side, world: World, place: Path) -> Verdicts:
    with started(side, place, world.given) as broker:
        owner = await broker.connect(b"owner")
        readers = [await broker.connect(b"reader%d" % number) for number in range(world.size.clients)]
        for wanted, terms in world.changes(world.size.reservations):
            if side.speaks:
                await reserve(owner, wanted, terms)
        granted = [
            {
                wanted: await subscribe(stream, wanted, purpose if side.speaks else "")
                for wanted, purpose in theirs.items()
            }
            for stream, theirs in zip(readers, world.readers, strict=True)
        ]
        for stream in readers:
            await subscribe(stream, _END, "")
        counted = _Counted(side, world, granted)
        for number in range(world.size.rounds):
            if number:
                for wanted, terms in world.changes(world.size.changes):
                    if side.speaks:
                        await reserve(owner, wanted, terms)
                if side.mode in ("subscribe", "hybrid"):
                    await trio.sleep(_UNDECIDED)
            for one, topic in enumerate(world.topics):
                await owner.send_all(packet(0x30, text(topic.encode()) + one.to_bytes(_NUMBER, "big")))
            await owner.send_all(packet(0x30, text(_END.encode()) + bytes(_NUMBER)))
            for reader, stream in enumerate(readers):
                counted.add(reader, await _until_end(stream))
        for stream in (owner, *readers):
            await stream.aclose()
    return counted.verdicts()


class _Counted:
    """Compares what each client got in a round with the rule."""

    def __init__(self, side: Side, world: World, granted: list[dict[str, bool]]) -> None:
        self._side = side
        self._world = world
        self._granted = granted
        self._asked = self._allowed = self._accepts = self._rejects = self._along = 0

    def add(self, reader: int, got: set[int]) -> None:
        """Count a round of a client's."""
        granted = self._granted[reader]
        for number, topic in enumerate(self._world.topics):
            matching = {
                wanted: self._world.allowed(topic, purpose)
                for wanted, purpose in self._world.readers[reader].items()
                if covers(wanted, topic)
            }
            allowed, came = any(matching.values()), number in got
            self._asked += bool(matching)
            self._allowed += allowed
            self._accepts += came and not allowed
            if allowed and not came:
                is_there = any(one and granted[wanted] for wanted, one in matching.items())
                if is_there and self._side.mode != "subscribe":
                    self._rejects += 1
                else:
                    self._along += 1

    def verdicts(self) -> Verdicts:
        """Return the sums."""
        refused = sum(not one for theirs in self._granted for one in theirs.values())
        counts = self._asked, self._allowed, self._accepts, self._rejects, self._along, refused
        return Verdicts(self._side.name, *counts)


async def _until_end(stream: trio.SocketStream) -> set[int]:
    """Return the numbers of the messages that came before that to the last topic."""
    found: set[int] = set()
    data = b""
    while True:
        while (one := _first(data)) is not None:
            packet_, data = one
            topic = packet_[2 : 2 + int.from_bytes(packet_[:2], "big")].decode()
            if topic == _END:
                return found
            found.add(int.from_bytes(packet_[-_NUMBER:], "big"))
        more = await stream.receive_some()
        if not more:
            raise PeerMissing("it closes a connection")
        data += more


def _first(data: bytes) -> tuple[bytes, bytes] | None:
    """Return what the first PUBLISH holds behind its length, and what follows; `None` for less than one."""
    if len(data) < 2 or len(data) < 2 + data[1]:
        return None
    if data[0] >> 4 != 3 or data[1] > 127:
        raise PeerMissing("it sends something else than short messages")
    return data[2 : 2 + data[1]], data[2 + data[1] :]
