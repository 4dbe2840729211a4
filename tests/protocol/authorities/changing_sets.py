"""Directories whose set changes at random moments, with liars who know when; all messages come in time.

Each set has five of nine directories. A change is asked for at a random epoch; who joins starts a day ahead
with the set of then, or late with the set of now, or comes back with the disk of its last time. The liars
stay, or go and come as others do. Each of them has a machine that says what an honest one would; the
adversary lets of this through what it likes, and says what else its keys can sign: ballots that go on from
any head that ever was, from one of its own making or from none, with any set to come, one of them or two, to
some or all; assents to anything; old heads; or nothing. Only while more than n − q directories lie, are away
or lag does it behave: then nothing is promised.
"""

from __future__ import annotations

import itertools
from random import Random

from authority_world import FIRST, NETWORK, RELAYS, SEEDS, Member, World, start_of
from core_examples import seed
from told_heads import head_told

from hushcast_protocol.authorities.actions import Stop
from hushcast_protocol.authorities.authority_set import Authorities, AuthorityContact
from hushcast_protocol.authorities.ballots import Ballot, Cast, ballot_digest
from hushcast_protocol.authorities.beacon import to_say
from hushcast_protocol.authorities.frames import Assent, AuthorityFrame, Echo
from hushcast_protocol.authorities.head_questions import AskHeads, Heads
from hushcast_protocol.authorities.heads import (
    AssentBody,
    AuthorityChange,
    CertifiedHead,
    IndexedSignature,
    assent_to,
    decode_head,
    head_digest,
)
from hushcast_protocol.authorities.listing import settle
from hushcast_protocol.authorities.schedule import schedule
from hushcast_protocol.base.addresses import memory_address
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.crypto.signatures import SignaturePurpose, signature
from hushcast_protocol.base.errors import PeerError
from hushcast_protocol.base.wire import PublicKey, encode

COUNT = 5  # directories of a set
ASKED = 8  # a change is asked for once in so many epochs, where none is coming
MADE_UP = [seed(3000 + number) for number in range(2)]  # keys that never were a directory's


def set_of(keys: list[PublicKey], quorum: int) -> Authorities:
    return Authorities.of([AuthorityContact(key, memory_address(key)) for key in keys], quorum)


class Changing(World):
    """The directories of one network, the honest ones and the adversary's."""

    def __init__(self, quorum: int, chance: Random) -> None:
        self.chance, self.quorum = chance, quorum
        liars = SEEDS[: COUNT - quorum]
        first = set_of([one.public() for one in SEEDS[:COUNT]], quorum)
        super().__init__(first)
        self.two_faced = {one.public(): one for one in liars}
        self.honest = {one.public(): Member(self, one, first) for one in SEEDS[len(liars) : COUNT]}
        self.puppets = {one.public(): Member(self, one, first) for one in liars}
        self.away: dict[PublicKey, Member] = {}  # with the disk of their last time
        self.late: dict[
            PublicKey, int
        ] = {}  # who starts when the set to come is in charge, and in which epoch
        self.past: list[CertifiedHead] = []
        self.lies, self.lied = False, 0
        """Whether the liars lie in this epoch, and in how many they did."""
        self.heads: dict[int, bytes] = {}

    def send(self, sender: PublicKey, to: PublicKey, frame: AuthorityFrame) -> None:
        if sender in self.two_faced and self.lies and self.chance.random() < 0.7:
            return
        if to in self.honest or to in self.puppets:
            self.on_the_way.append((sender, to, encode(frame)))

    def say(self, sender: PublicKey, frame: AuthorityFrame) -> None:
        """Have a liar say something to some, or to all."""
        some = self.chance.random()
        for to in self.honest:
            if some < 0.4 or self.chance.random() < 0.5:
                self.on_the_way.append((sender, to, encode(frame)))

    def pass_to(self, moment: float) -> None:
        running = [*self.honest.values(), *self.puppets.values()]
        while (due := min(one.machine.deadline for one in running)) <= moment:
            self.now = max(self.now, due)
            for one in running:
                one.tick()
        self.now = moment

    def deliver(self) -> None:
        while self.on_the_way:
            sender, to, data = self.on_the_way.pop(0)
            try:
                (self.honest.get(to) or self.puppets[to]).hear(sender, data)
            except PeerError:
                if sender not in self.two_faced:  # it would lose its link
                    raise

    def play(self, epochs: int) -> None:
        """Let epochs go; each has one head, the same at all honest directories that are there."""
        for epoch in range(FIRST, FIRST + epochs):
            self._change(epoch)
            ready = [one for one in self.honest.values() if self._is_ready(one, epoch)]
            self.lies = len(ready) >= self.quorum and self.chance.random() < 0.9
            self.lied += self.lies
            self._epoch(epoch)
            newest = {one.disk.chain.newest for one in ready}
            digests = {head_digest(one.head) for one in newest if one is not None}
            assert len(digests) == 1, f"epoch {epoch - FIRST}: {len(digests)} heads"
            assert {self.epoch_of(one) for one in newest if one} == {epoch}, f"no head in {epoch - FIRST}"
            self.heads[epoch] = digests.pop()
            self.past += [one for one in newest if one is not None][:1]
            for one in self.honest.values():
                assert not any(isinstance(proof, Stop) for proof in one.proofs), "a fork"
                one.proofs.clear()
                one.published = one.published[-3:]

    def _is_ready(self, one: Member, epoch: int) -> bool:
        chain = one.machine.chain
        found = chain.in_charge(epoch)
        return (
            found is not None
            and found.signers == self.authorities.signers
            and one.key in found.keys
            and (
                chain.epoch >= epoch - 2 or not self.past
            )  # who is not in charge hears the newest an epoch late
        )

    def _change(self, epoch: int) -> None:
        """Ask for another set now and then; let those of it start, and those of former ones go."""
        someone = max(self.honest.values(), key=lambda one: one.machine.chain.epoch)
        head = someone.machine.chain.head
        self.authorities = someone.machine.chain.in_charge(epoch) or self.authorities
        coming = head.change if head is not None else None
        if coming is not None and epoch >= coming.epoch:
            coming = None
        for key, begins in list(self.late.items()):
            if epoch >= begins and head is not None and head.authorities.signers == self.authorities.signers:
                del self.late[key]
                if key in self.authorities.keys:
                    self._start(key, self.authorities)
        wanted = next((one.following for one in self.honest.values() if one.following), None)
        if coming is None and wanted is not None and wanted.signers == self.authorities.signers:
            for one in self.honest.values():
                one.following = None
            for key in [key for key in self.honest if key not in self.authorities.keys]:
                self.away[key] = self.honest.pop(key)
            wanted = None
        if wanted is None and coming is None and head is not None and self.chance.random() < 1 / ASKED:
            self._ask_for_another(epoch)

    def _ask_for_another(self, epoch: int) -> None:
        liars, chance = list(self.two_faced), self.chance
        others = [one.public() for one in SEEDS if one.public() not in self.two_faced]
        staying = liars if chance.random() < 0.7 else liars[1:]
        keys = [*staying, *chance.sample(others, COUNT - len(staying))]
        following = set_of(keys, self.quorum)
        if following.signers == self.authorities.signers:
            return
        fresh = [key for key in keys if key not in self.honest and key not in self.two_faced]
        for place, key in enumerate(fresh):
            if place == 0 and chance.random() < 0.6:
                self.late[key] = (-(-epoch // 24) + 1) * 24 + chance.randrange(1, 8)
            else:
                self._start(key, self.authorities)
        for one in [*self.honest.values(), *self.puppets.values()]:
            one.following = following

    def _start(self, key: PublicKey, authorities: Authorities) -> None:
        one = next(one for one in SEEDS if one.public() == key)
        before = self.away.pop(key, None)
        began = Member(self, one, authorities)
        if before is not None and self.chance.random() < 0.5:
            began.disk = before.disk
            began.listings = before.listings
            began.restart()
        began.following = next((each.following for each in self.honest.values()), None)
        self.honest[key] = began

    def _epoch(self, epoch: int) -> None:
        times = schedule(NETWORK.calendar, epoch, self.authorities)
        self.pass_to(start_of(epoch) + 2)
        self.deliver()
        self._lie(epoch, 0)
        self.pass_to(times.gathered)
        self.deliver()
        self._lie(epoch, 0)
        for number in range(self.authorities.rounds + 1):
            self.pass_to(times.cast + number * times.round)
            self.deliver()
            self.now += times.round / 2
            self._lie(epoch, number + 1)
            self.deliver()
        self.pass_to(times.published + 1)
        self.deliver()

    def _lie(self, epoch: int, number: int) -> None:
        """Say what the liars' keys can sign, in round `number`, 0 before the first."""
        if not self.lies:
            return
        chance = self.chance
        for key in self.two_faced:
            for _ in range(chance.randrange(3)):
                kind = chance.randrange(6)
                if kind == 0:
                    shown = self._head(epoch)
                    self.say(key, AskHeads(None) if shown is None else Heads((shown,)))
                elif kind == 1 and number:
                    self.say(key, self._assent(key, epoch))
                elif number and key in self.authorities.keys:
                    self.say(key, self._ballot(key, epoch))

    def _ballot(self, author: PublicKey, epoch: int) -> Echo:
        chance = self.chance
        commit, reveal = to_say(self.two_faced[author], NETWORK.id, epoch)
        if chance.random() < 0.3:
            commit, reveal = chance.choice(((None, None), (bytes(32), None), (None, bytes(32))))
        sets = [None, self.authorities, *(decode_head(one.head).authorities for one in self.past[-60::20])]
        listed = tuple(sorted(chance.sample(RELAYS, chance.randrange(4))))
        ballot = Ballot(
            NETWORK.id, epoch, author, self._head(epoch), listed, commit, reveal, chance.choice(sets)
        )
        body = encode(ballot)
        cast = Cast(NETWORK.id, epoch, author, ballot_digest(body))
        keys = self.authorities.keys
        signers = [key for key in self.two_faced if key in keys and (key == author or chance.random() < 0.8)]
        marks = tuple(
            IndexedSignature(
                keys.index(key), signature(self.two_faced[key], SignaturePurpose.BALLOT, encode(cast))
            )
            for key in sorted(signers)
        )
        return Echo(epoch, author, cast.ballot, marks, body if chance.random() < 0.9 else None)

    def _assent(self, key: PublicKey, epoch: int) -> Assent:
        heads = [one.machine._head for one in self.honest.values() if one.machine._head is not None]
        digest = head_digest(self.chance.choice(heads)) if heads else self.chance.randbytes(32)
        return Assent(epoch, digest, assent_to(self.two_faced[key], AssentBody(NETWORK.id, epoch, digest)))

    def _head(self, epoch: int) -> CertifiedHead | None:
        """Return a head that was, one of another set, one that is made up, or none."""
        chance = self.chance
        kind = chance.randrange(5)
        former = [one for one in self.past if decode_head(one.head).authorities != self.authorities]
        if kind == 0 or not self.past:
            return self._made_up(epoch) if chance.random() < 0.7 else None
        if kind == 1 and former:
            return chance.choice(former[-40:])
        if kind == 2:
            return self.past[-1]
        return chance.choice(self.past[-60:]) if kind == 3 else self._made_up(epoch)

    def _made_up(self, epoch: int) -> CertifiedHead:
        """Return a head of a set that never was, which says that those of now follow it."""
        seeds: list[Seed] = sorted([*MADE_UP, *self.two_faced.values()], key=Seed.public)
        quorum = len(seeds) // 2 + 1
        authorities = set_of([one.public() for one in seeds], quorum)
        before = epoch - self.chance.randrange(1, 30)
        change = AuthorityChange(epoch - epoch % 24, self.authorities)
        listing = settle(RELAYS, None, before, authorities.admission, None)
        head = head_told(NETWORK.id, before, bytes(32), authorities, change, listing.root, 3)
        body = encode(head)
        accord = AssentBody(NETWORK.id, before, head_digest(body))
        marks = tuple(IndexedSignature(place, assent_to(one, accord)) for place, one in enumerate(seeds))
        return CertifiedHead(body, marks)


def changes(world: Changing) -> int:
    """Return how often another set took over."""
    sets = [decode_head(one.head).authorities.signers for one in world.past]
    return sum(one != other for one, other in itertools.pairwise(sets))
