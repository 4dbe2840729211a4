"""A network of authorities in one process: their clocks, disks and links, from one seed."""

from __future__ import annotations

import heapq
import itertools
from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from random import Random
from typing import Protocol

from hushcast_protocol.authorities.actions import (
    Accuse,
    AuthorityActions,
    AuthorityCommand,
    AuthorityState,
    Keep,
    PublishHead,
    SendFrame,
    Stop,
)
from hushcast_protocol.authorities.authority_set import Authorities
from hushcast_protocol.authorities.chain import ChainState
from hushcast_protocol.authorities.frames import Assent, AuthorityFrame, decode_frame
from hushcast_protocol.authorities.listing import ListedRelay, Listing
from hushcast_protocol.authorities.machine import Authority
from hushcast_protocol.authorities.schedule import Schedule, schedule
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.errors import PeerError
from hushcast_protocol.base.roster import Network
from hushcast_protocol.base.wire import encode

EPOCH_SECONDS = 3600
LEGS = 3  # of a round: an echo, the question for its ballot and the answer all fit into it
MOST_LATE = 3.0  # rounds by which a message is late that misses one
LISTINGS = 3  # on each disk
REMEMBERED = 64  # frames of the past that those who replay have


class AuthorityAdversary(Protocol):
    """Whoever moves all faulty authorities together."""

    def sends(self, member: SimulatedAuthority, to: Iterable[bytes], frame: AuthorityFrame) -> None:
        """Send what a faulty one's machine would send, or something else."""

    def hears(self, member: SimulatedAuthority, sender: bytes, frame: AuthorityFrame) -> None:
        """See what came to a faulty one."""


class SimulatedAuthority:
    """One authority: its machine, its disk, and what it published."""

    def __init__(self, world: AuthoritiesWorld, seed: Seed, is_faulty: bool) -> None:
        self.world = world
        self.seed = seed
        self.key = seed.public()
        self.is_faulty = is_faulty
        self.listed: tuple[ListedRelay, ...] = ()
        self.following: Authorities | None = None
        self.disk = AuthorityState(ChainState(world.authorities))
        self.machine: Authority | None = None
        self.published: dict[int, Listing] = {}
        self._listings: dict[int, Listing] = {}  # on the disk, by epoch
        self.accused: list[bytes] = []
        self.assented: dict[int, set[bytes]] = {}
        self.stops_after: type | None = None  # it crashes once it has done such an action

    def start(self) -> None:
        """Start, with what is on the disk."""
        self.machine = Authority(self.world.network, self.seed, self.disk, self.world.now)
        for listing in self._listings.values():
            self.machine.know(listing)

    def crash(self) -> None:
        """Lose all that is not on the disk."""
        self.machine, self.stops_after = None, None

    def hear(self, sender: bytes, data: bytes, frame: AuthorityFrame) -> None:
        """Take what came over a link."""
        if self.machine is None:
            return
        try:
            self.do(self.machine.received(sender, data, self.world.now))
        except PeerError:
            self.world.refused += 1
        if self.is_faulty:
            self.world.adversary.hears(self, sender, frame)

    def tick(self) -> None:
        """Do what is due."""
        while self.machine is not None and self.machine.deadline <= self.world.now:
            self.do(self.machine.tick(self.world.now))

    def do(self, actions: AuthorityActions) -> None:
        """Do what the machine wants done, in order, unless it crashes meanwhile."""
        todo = deque(actions)
        while todo and (machine := self.machine) is not None:
            action = todo.popleft()
            if action is AuthorityCommand.VOTE:
                todo.extendleft(reversed(machine.cast(self.listed, self.following, self.world.now)))
            elif isinstance(action, Keep):
                self.disk = action.kept
                if action.listing is not None:
                    self._have(action.listing)
            elif isinstance(action, SendFrame):
                self._send(action.to, action.frame)
            elif isinstance(action, PublishHead):
                self.published[action.listing.epoch] = action.listing
                self._have(action.listing)
            elif isinstance(action, Accuse):
                self.accused.append(action.evidence.accused)
            else:
                assert action is AuthorityCommand.GATHER or isinstance(action, Stop)
            if self.stops_after is not None and isinstance(action, self.stops_after):
                self.crash()

    def _have(self, listing: Listing) -> None:
        self._listings[listing.epoch] = listing
        for epoch in sorted(self._listings)[:-LISTINGS]:
            del self._listings[epoch]

    def _send(self, to: Iterable[bytes], frame: AuthorityFrame) -> None:
        if isinstance(frame, Assent):
            self.assented.setdefault(frame.epoch, set()).add(frame.head)
        if self.is_faulty:
            self.world.adversary.sends(self, to, frame)
        else:
            self.world.send(self.key, to, encode(frame))


class AuthoritiesWorld:
    """All authorities of a network and the messages between them."""

    adversary: AuthorityAdversary

    def __init__(
        self, authorities: Authorities, seeds: list[Seed], faulty: set[bytes], random: Random
    ) -> None:
        self.authorities = authorities
        self.network = Network("authorities", "hardened", EPOCH_SECONDS)
        self.random = random
        self.late = 0.0
        self.now = 0.0
        self.refused = 0
        self.past: deque[bytes] = deque(maxlen=REMEMBERED)
        self.members = {
            seed.public(): SimulatedAuthority(self, seed, seed.public() in faulty) for seed in seeds
        }
        self._queue: list[tuple[float, int, Callable[[], None]]] = []
        self._number = itertools.count()

    @property
    def honest(self) -> list[SimulatedAuthority]:
        """Those who do as they should."""
        return [member for member in self.members.values() if not member.is_faulty]

    @property
    def faulty(self) -> list[SimulatedAuthority]:
        """Those whom the adversary moves."""
        return [member for member in self.members.values() if member.is_faulty]

    def times(self, epoch: int) -> Schedule:
        """Return when what is due."""
        return schedule(self.network.calendar, epoch, self.authorities)

    @property
    def leg(self) -> float:
        """Seconds that an honest message takes at most, where it is not late."""
        return self.times(0).round / LEGS

    def send(self, sender: bytes, to: Iterable[bytes], data: bytes, delay: float | None = None) -> None:
        """Deliver after `delay` seconds, or as an honest message travels."""
        frame = decode_frame(data)
        for key in to:
            if delay is None:
                is_late = self.random.random() < self.late
                span = self.times(0).round
                wait = (
                    self.random.uniform(span, MOST_LATE * span)
                    if is_late
                    else self.leg * self.random.random()
                )
            else:
                wait = delay
            self.at(self.now + wait, partial(self.members[key].hear, sender, data, frame))
        if self.random.random() < 0.05:
            self.past.append(data)

    def at(self, moment: float, call: Callable[[], None]) -> None:
        """Have something happen at a moment."""
        heapq.heappush(self._queue, (moment, next(self._number), call))

    def run(self, until: float) -> None:
        """Let time pass."""
        while True:
            due = min((m.machine.deadline for m in self.members.values() if m.machine), default=until)
            moment = min(self._queue[0][0] if self._queue else until, due)
            if moment >= until:
                break
            self.now = max(self.now, moment)
            if self._queue and self._queue[0][0] <= due:
                heapq.heappop(self._queue)[2]()
            else:
                for member in self.members.values():
                    member.tick()
        self.now = until
