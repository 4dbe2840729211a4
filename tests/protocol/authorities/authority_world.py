"""Authorities over links that lose, repeat and reorder, with disks that outlast crashes; and two-faced ones.

`play` takes its moves from bytes or a seed, and holds what must be true whatever happens: nobody honest says
two things or is accused, what has to be on disk is there before it is said, and no two heads of one epoch are
certified unless 2q − n authorities sign both.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import msgspec
from core_examples import seed

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
from hushcast_protocol.authorities.authority_set import Authorities, AuthorityContact
from hushcast_protocol.authorities.ballots import Ballot, Cast, ballot_digest
from hushcast_protocol.authorities.chain import ChainState
from hushcast_protocol.authorities.evidence import check_evidence, check_fork
from hushcast_protocol.authorities.frames import Assent, AuthorityFrame, Echo
from hushcast_protocol.authorities.head_inside import inside_of
from hushcast_protocol.authorities.head_questions import Heads
from hushcast_protocol.authorities.heads import (
    AssentBody,
    CertifiedHead,
    IndexedSignature,
    assent_to,
    check_certified,
    head_digest,
)
from hushcast_protocol.authorities.listing import ListedRelay, Listing
from hushcast_protocol.authorities.machine import Authority
from hushcast_protocol.authorities.schedule import schedule
from hushcast_protocol.authorities.seat_admission import OPEN, SeatAdmission
from hushcast_protocol.base.addresses import memory_address
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.crypto.signatures import SignaturePurpose, signature
from hushcast_protocol.base.errors import PeerError
from hushcast_protocol.base.roster import Network
from hushcast_protocol.base.wire import PublicKey, encode

NETWORK = Network("authorities", "hardened", 3600)
FIRST = 24 * 100  # the first epoch of a day
RELAYS: tuple[ListedRelay, ...] = tuple(
    (bytes([number]) * 32, bytes([number]) * 16, number - 3) for number in (3, 5, 7)
)
SEEDS = sorted((seed(2000 + number) for number in range(9)), key=Seed.public)
MOST = 40  # messages on their way


@cache
def members(count: int, quorum: int, first: int = 0, admission: SeatAdmission = OPEN) -> Authorities:
    """Return a set of `count` of `SEEDS`, from the one numbered `first` on."""
    keys = [one.public() for one in SEEDS[first : first + count]]
    return Authorities.of([AuthorityContact(key, memory_address(key)) for key in keys], quorum, admission)


def start_of(epoch: int) -> float:
    """Return a moment just before the exchange for an epoch."""
    return NETWORK.calendar.epoch_start(epoch) - NETWORK.calendar.grace - 1


class Member:
    """An honest authority, with its disk."""

    def __init__(self, world: World, seed: Seed, authorities: Authorities) -> None:
        self.world, self.seed, self.key = world, seed, seed.public()
        self.disk = AuthorityState(ChainState(authorities))
        self.listed: tuple[ListedRelay, ...] = RELAYS
        self.following: Authorities | None = None
        self.said: dict[tuple[type, int], bytes] = {}
        self.published: list[CertifiedHead] = []
        self.listings: dict[int, Listing] = {}
        self.proofs: list[Accuse | Stop] = []
        self.restart()

    def restart(self) -> None:
        """Lose all but the disk."""
        self.machine = Authority(NETWORK, self.seed, self.disk, self.world.now)
        for listing in list(self.listings.values())[-3:]:
            self.machine.know(listing)

    def tick(self) -> None:
        for _ in range(100):
            if self.machine.deadline > self.world.now:
                return
            self.do(self.machine.tick(self.world.now))
        raise AssertionError("a deadline that does not pass")

    def hear(self, sender: PublicKey, data: bytes) -> None:
        self.do(self.machine.received(sender, data, self.world.now))

    def do(self, actions: AuthorityActions) -> None:
        for action in actions:
            if action is AuthorityCommand.VOTE:
                self.do(self.machine.cast(self.listed, self.following, self.world.now))
            elif isinstance(action, Keep):
                self.disk = action.kept
                if action.listing is not None:
                    self.listings[action.listing.epoch] = action.listing
            elif isinstance(action, SendFrame):
                self._check_said(action.frame)
                for key in action.to:
                    self.world.send(self.key, key, action.frame)
            elif isinstance(action, PublishHead):
                head = check_certified(action.certified, NETWORK.id, self._set_of(action.certified))
                assert self.disk.chain.newest == action.certified, "published before it is on disk"
                assert action.listing.root == inside_of(head).root
                self.listings[action.listing.epoch] = action.listing
                assert not self.published or head.epoch > self.world.epoch_of(self.published[-1])
                self.published.append(action.certified)
            elif isinstance(action, Accuse):
                check_evidence(action.evidence, NETWORK.id)
                assert action.evidence.accused in self.world.two_faced, "an honest one is accused"
                self.proofs.append(action)
            elif isinstance(action, Stop):
                assert self.disk.chain.fork == action.fork
                check_fork(action.fork, NETWORK.id, self._set_of(action.fork.first))
                self.proofs.append(action)

    def _set_of(self, certified: CertifiedHead) -> Authorities:
        found = self.machine.chain.in_charge(self.world.epoch_of(certified))
        assert found is not None
        return found

    def _check_said(self, frame: AuthorityFrame) -> None:
        """What is said once is on disk before, and never said differently."""
        if isinstance(frame, Echo) and frame.author == self.key:
            assert self.disk.voted >= frame.epoch
            assert self.said.setdefault((Echo, frame.epoch), frame.ballot) == frame.ballot
        if isinstance(frame, Assent):
            assert self.disk.assented >= frame.epoch
            assert self.said.setdefault((Assent, frame.epoch), frame.head) == frame.head


class World:
    """All of them, and what is on its way."""

    def __init__(self, authorities: Authorities, two_faced: int = 0, joining: int = 0) -> None:
        """`two_faced` of them are the adversary's; `joining` more are not among the authorities yet."""
        self.now = start_of(FIRST)
        self.authorities = authorities
        own = [one for one in SEEDS if one.public() in authorities.keys]
        more = [one for one in SEEDS if one.public() not in authorities.keys][:joining]
        self.two_faced = {one.public(): one for one in own[:two_faced]}
        self.honest = {one.public(): Member(self, one, authorities) for one in own[two_faced:] + more}
        self.on_the_way: list[tuple[PublicKey, PublicKey, bytes]] = []
        self.heard: list[AuthorityFrame] = []

    @staticmethod
    def epoch_of(certified: CertifiedHead) -> int:
        epoch: int = msgspec.msgpack.decode(certified.head)[2]
        return epoch

    def send(self, sender: PublicKey, to: PublicKey, frame: AuthorityFrame) -> None:
        if to in self.two_faced:
            self.heard = [*self.heard[-30:], frame]
        elif to in self.honest:
            self.on_the_way.append((sender, to, encode(frame)))

    def pass_to(self, moment: float) -> None:
        """Let time pass to a moment, and everybody do what is due by then, one deadline after the other."""
        while (due := min(one.machine.deadline for one in self.honest.values())) <= moment:
            self.now = max(self.now, due)
            for one in self.honest.values():
                one.tick()
        self.now = moment

    def deliver(self) -> None:
        """Deliver all that is on its way, and what comes of it."""
        while self.on_the_way:
            sender, to, data = self.on_the_way.pop(0)
            self.honest[to].hear(sender, data)

    def epoch(self, epoch: int, two_faced: Callable[[], None] = lambda: None) -> None:
        """Let an epoch go as it should; `two_faced` acts in the middle of each round."""
        times = schedule(NETWORK.calendar, epoch, self.authorities)
        self.pass_to(times.gathered)
        self.deliver()
        for number in range(self.authorities.rounds + 1):
            self.pass_to(times.cast + number * times.round)
            self.deliver()
            self.now += times.round / 2
            two_faced()
            self.deliver()
        self.pass_to(times.published + 1)
        self.deliver()

    def cast(
        self, author: PublicKey, epoch: int, listed: tuple[ListedRelay, ...], *signers: PublicKey
    ) -> Echo:
        """Return another ballot of a two-faced authority, signed by it and by others of these."""
        newest = next((one.disk.chain.newest for one in self.honest.values()), None)
        body = encode(Ballot(NETWORK.id, epoch, author, newest, listed, None, None, None))
        cast = Cast(NETWORK.id, epoch, author, ballot_digest(body))
        keys = self.authorities.keys
        marks = [
            IndexedSignature(
                keys.index(key), signature(self.two_faced[key], SignaturePurpose.BALLOT, encode(cast))
            )
            for key in sorted({author, *signers})
        ]
        return Echo(epoch, author, cast.ballot, tuple(marks), body)

    def assent(self, signer: PublicKey, epoch: int, head: bytes) -> Assent:
        """Return a two-faced authority's assent."""
        return Assent(epoch, head, assent_to(self.two_faced[signer], AssentBody(NETWORK.id, epoch, head)))


def play(pick: Callable[[int], int], more: Callable[[], bool]) -> None:
    """Do what `pick` says (below its argument) while there is `more`; then heal, and see that all agree."""
    count, quorum = ((1, 1), (3, 2), (4, 3), (5, 4))[pick(4)]
    authorities = members(count, quorum)
    world = World(authorities, two_faced=2 * quorum - count - 1)
    world.pass_to(start_of(FIRST) + 2)
    while more():
        _move(world, pick)
        assert not any(isinstance(one, Stop) for each in world.honest.values() for one in each.proofs)
        heads: dict[int, bytes] = {}
        for one in world.honest.values():
            for certified in one.published[-3:]:
                assert heads.setdefault(world.epoch_of(certified), certified.head) == certified.head
    # With everybody honest from now on and nothing lost, the second epoch from here has a head at the latest.
    world.on_the_way.clear()
    epoch = NETWORK.calendar.epoch(world.now) + 2
    for each in (epoch, epoch + 1):
        world.epoch(each)
    if len(world.honest) >= quorum:
        digests = {one.disk.chain.newest for one in world.honest.values()}
        assert {world.epoch_of(one) for one in digests if one} == {epoch + 1}
        assert len({one.head for one in digests if one}) == 1


def _move(world: World, pick: Callable[[int], int]) -> None:
    authorities, waiting = world.authorities, world.on_the_way
    move = pick(16)
    if move < 6 and waiting:
        sender, to, data = waiting.pop(pick(min(len(waiting), 256)))
        _hear(world, sender, to, data)
    elif move < 8 and waiting:
        for sender, to, data in [waiting.pop(0) for _ in range(min(len(waiting), 1 + pick(32)))]:
            _hear(world, sender, to, data)
    elif move == 8 and waiting:
        waiting.append(waiting[pick(min(len(waiting), 256))])
    elif move == 9 and waiting:
        waiting.pop(pick(min(len(waiting), 256)))
    elif move == 10:
        list(world.honest.values())[pick(len(world.honest))].restart()
    elif move < 13:
        epoch = NETWORK.calendar.epoch(world.now + NETWORK.calendar.grace)
        each = schedule(NETWORK.calendar, epoch, authorities).round
        world.pass_to(world.now + each * (1 + pick(12)) / 2)
    elif world.two_faced:
        _two_faced(world, pick)
    del waiting[:-MOST]


def _hear(world: World, sender: PublicKey, to: PublicKey, data: bytes) -> None:
    try:
        world.honest[to].hear(sender, data)
    except PeerError:
        assert sender in world.two_faced, "an honest frame is refused"


def _two_faced(world: World, pick: Callable[[int], int]) -> None:
    """Have one of the adversary's say anything at all that it can sign."""
    keys = list(world.two_faced)
    one, to = keys[pick(len(keys))], list(world.honest)[pick(len(world.honest))]
    epoch = NETWORK.calendar.epoch(world.now + NETWORK.calendar.grace) + pick(8) // 7
    kind = pick(5)
    frame: AuthorityFrame
    if kind < 2:
        frame = world.cast(one, epoch, RELAYS[: pick(4)], *keys[: pick(3)])
        if pick(2):
            frame = msgspec.structs.replace(frame, body=None)
    elif kind == 2:
        machine = list(world.honest.values())[pick(len(world.honest))].machine
        head = machine._head or bytes(32)
        frame = world.assent(one, epoch, head_digest(head))
    elif kind == 3 and world.heard:
        frame = world.heard[pick(len(world.heard))]
    else:
        newest = [each.disk.chain.newest for each in world.honest.values() if each.disk.chain.newest]
        if not newest:
            return
        given = newest[pick(len(newest))]
        frame = Heads((msgspec.structs.replace(given, marks=given.marks[: 1 + pick(len(given.marks))]),))
    _hear(world, one, to, encode(frame))
