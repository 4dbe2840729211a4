"""The adversary: it moves all faulty authorities together, knows all, and delays its messages as it likes.

Behind each faulty authority a machine runs as at an honest one; what this would send is changed as the kind
of fault says, and what nobody honest sends is added. Half of the time a faulty one also assents to whatever
anybody else does.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from functools import partial

import msgspec

from hushcast_protocol.authorities.actions import Keep, SendFrame
from hushcast_protocol.authorities.ballots import Ballot, Cast, ballot_digest
from hushcast_protocol.authorities.frames import AskBallot, Assent, AuthorityFrame, Echo
from hushcast_protocol.authorities.head_inside import inside_of
from hushcast_protocol.authorities.head_questions import Heads
from hushcast_protocol.authorities.heads import (
    AssentBody,
    CertifiedHead,
    IndexedSignature,
    assent_to,
    decode_head,
    head_digest,
)
from hushcast_protocol.base.crypto.signatures import SignaturePurpose, signature
from hushcast_protocol.base.wire import decoder, encode
from hushcast_testnet.authorities.world import AuthoritiesWorld, SimulatedAuthority

PHANTOM = bytes([255]) * 32
"""A relay that no honest authority reached."""

_decode_ballot = decoder(Ballot, "ballot", 1 << 20)


class AuthorityFault(Enum):
    """Ways to be faulty, for one epoch."""

    SILENT = "sends nothing"
    CRASH = "crashes in the middle, and comes back with its disk"
    EQUIVOCATE = "casts one ballot to some and another to others"
    SELECTIVE = "sends each message to some only"
    WITHHOLD = "shows its ballot late, to some, with the signatures of all who are faulty"
    LATE = "sends everything late, within rounds or after them"
    BAD_SHARE = "commits and reveals what does not fit, or reveals nothing"
    STALE = "goes on from old heads, shows them as new, and repeats what was said before"
    INVENT = "makes up heads with signatures of its own, and shows nonsense"
    TWO_HEADS = "assents to what it made up, and to what others assent to"


class FaultyAuthorities:
    """What all faulty authorities do."""

    def __init__(self, world: AuthoritiesWorld) -> None:
        self._world = world
        self._random = world.random
        self._kinds: dict[bytes, set[AuthorityFault]] = {member.key: set() for member in world.faulty}
        self._epoch = 0
        self._bodies: dict[bytes, tuple[Cast, bytes]] = {}  # of ballots that it made, by digest
        self._seen: dict[bytes, dict[bytes, bytes]] = {}  # signatures of honest assents, by head
        self._old: list[CertifiedHead] = []

    def begin(self, epoch: int, kinds: Iterable[AuthorityFault]) -> None:
        """Choose what each does in an epoch, just before its exchange."""
        self._epoch, self._bodies, self._seen = epoch, {}, {}
        for member, kind in zip(self._world.faulty, kinds, strict=True):
            self._kinds[member.key] = {kind}
            if self._random.random() < 0.5 and kind is not AuthorityFault.SILENT:
                self._kinds[member.key].add(AuthorityFault.TWO_HEADS)
            newest = member.disk.chain.newest
            if newest is not None and self._random.random() < 0.1:
                self._old = [*self._old[-8:], newest]
            if kind is AuthorityFault.CRASH:
                self._plan_crash(member, epoch)
            if kind is AuthorityFault.INVENT or kind is AuthorityFault.STALE:
                self._plan_nonsense(member, kind, epoch)
        self._world.at(self._world.times(epoch).published, self._complete)

    def sends(self, member: SimulatedAuthority, to: Iterable[bytes], frame: AuthorityFrame) -> None:
        """Send what the machine of a faulty one would, or something else."""
        kinds, random, world = self._kinds[member.key], self._random, self._world
        if AuthorityFault.SILENT in kinds:
            return
        if AuthorityFault.SELECTIVE in kinds:
            to = [key for key in to if random.random() < 0.5]
        delay = random.random() * world.leg
        if AuthorityFault.LATE in kinds:
            delay = random.choice((0.5, 1.0, 2.0)) * random.random() * world.times(0).round
        if isinstance(frame, Echo) and frame.author == member.key and frame.body is not None:
            self._show_own(member, list(to), frame, kinds)
        elif isinstance(frame, Assent) and AuthorityFault.TWO_HEADS in kinds:
            for key in to:
                head = random.choice((frame.head, random.randbytes(32)))
                self._assent(member, key, head, delay)
        else:
            world.send(member.key, to, encode(frame), delay)

    def hears(self, member: SimulatedAuthority, sender: bytes, frame: AuthorityFrame) -> None:
        """Answer for ballots that the machine behind does not know of; take note of assents."""
        if isinstance(frame, AskBallot) and frame.ballot in self._bodies:
            cast, body = self._bodies[frame.ballot]
            if AuthorityFault.SELECTIVE not in self._kinds[member.key] or self._random.random() < 0.5:
                self._show(member, [sender], cast, body, [member], 0.0)
        if isinstance(frame, Assent) and not self._world.members[sender].is_faulty:
            self._seen.setdefault(frame.head, {})[sender] = frame.signature
            if AuthorityFault.TWO_HEADS in self._kinds[member.key] and frame.epoch == self._epoch:
                self._assent(member, sender, frame.head, 0.0)

    def _show_own(
        self, member: SimulatedAuthority, to: list[bytes], frame: Echo, kinds: set[AuthorityFault]
    ) -> None:
        """Cast a ballot as the kinds of fault have it."""
        assert frame.body is not None
        random, world = self._random, self._world
        ballot: Ballot = _decode_ballot(frame.body)
        if AuthorityFault.BAD_SHARE in kinds:
            made_up = random.choice((None, random.randbytes(32)))
            if ballot.reveal is not None or random.random() < 0.5:
                ballot = msgspec.structs.replace(ballot, reveal=made_up)
        if AuthorityFault.STALE in kinds:
            ballot = msgspec.structs.replace(ballot, previous=random.choice([None, *self._old]))
        if AuthorityFault.INVENT in kinds and ballot.previous is not None:
            ballot = msgspec.structs.replace(ballot, previous=self.made_up(self._epoch - 1))
        versions = [ballot]
        if AuthorityFault.EQUIVOCATE in kinds or (AuthorityFault.WITHHOLD in kinds and random.random() < 0.5):
            versions.append(msgspec.structs.replace(ballot, listed=ballot.listed[1:]))
        times = world.times(self._epoch)
        for key in to:
            shown = random.choice((versions[:1], versions[-1:], versions)) if len(versions) > 1 else versions
            for one in shown:
                body = encode(one)
                cast = Cast(one.network, one.epoch, one.author, ballot_digest(body))
                self._bodies[cast.ballot] = cast, body
                signers, moment = [member], world.now + random.random() * world.leg
                if AuthorityFault.LATE in kinds:
                    moment = world.now + 2 * random.random() * times.round
                if AuthorityFault.WITHHOLD in kinds:
                    if random.random() < 0.5:
                        continue
                    others = [other for other in world.faulty if other is not member]
                    signers += random.sample(others, random.randint(0, len(others)))
                    # Just before the end of the last round in which so many signatures are enough.
                    moment = times.cast + min(len(signers), world.authorities.rounds) * times.round - 0.001
                self._show(member, [key], cast, body, signers, max(0.0, moment - world.now))

    def _show(
        self,
        member: SimulatedAuthority,
        to: list[bytes],
        cast: Cast,
        body: bytes,
        signers: list[SimulatedAuthority],
        delay: float,
    ) -> None:
        keys = self._world.authorities.keys
        signed = encode(cast)
        marks = sorted(
            (
                IndexedSignature(keys.index(one.key), signature(one.seed, SignaturePurpose.BALLOT, signed))
                for one in signers
            ),
            key=lambda mark: mark.place,
        )
        shown = None if self._random.random() < 0.2 else body  # then it waits to be asked
        echo = Echo(cast.epoch, cast.author, cast.ballot, tuple(marks), shown)
        self._world.send(member.key, to, encode(echo), delay)

    def _assent(self, member: SimulatedAuthority, to: bytes, head: bytes, delay: float) -> None:
        given = assent_to(member.seed, AssentBody(self._world.network.id, self._epoch, head))
        self._world.send(member.key, [to], encode(Assent(self._epoch, head, given)), delay)

    def _plan_crash(self, member: SimulatedAuthority, epoch: int) -> None:
        times, random = self._world.times(epoch), self._random
        moment = random.uniform(times.gathered, times.published)

        def crash() -> None:
            if random.random() < 0.5:
                member.crash()
            else:  # between the disk and the message, or between two messages
                member.stops_after = random.choice((Keep, SendFrame))

        def back() -> None:
            member.crash()
            member.start()

        self._world.at(moment, crash)
        self._world.at(random.uniform(moment, times.published + times.round), back)

    def _plan_nonsense(self, member: SimulatedAuthority, kind: AuthorityFault, epoch: int) -> None:
        times, random, world = self._world.times(epoch), self._random, self._world
        for other in (one for one in world.members.values() if one is not member):
            if kind is AuthorityFault.INVENT:
                frames = [encode(Heads((self.made_up(random.choice((epoch - 1, epoch, epoch + 1))),)))]
            else:
                frames = [encode(Heads((one,))) for one in self._old[-2:]]
                frames += random.sample(list(world.past), min(2, len(world.past)))
            for data in frames:
                world.at(
                    random.uniform(times.gathered, times.published),
                    partial(world.send, member.key, [other.key], data, 0.0),
                )

    def made_up(self, epoch: int) -> CertifiedHead:
        """Return a head with the signatures of all who are faulty, once or twice, and none of others."""
        world, random = self._world, self._random
        newest = next((one.disk.chain.newest for one in world.honest if one.disk.chain.newest), None)
        if newest is None:
            return CertifiedHead(b"", (IndexedSignature(0, bytes(64)),))
        last = decode_head(newest.head)
        inside = msgspec.structs.replace(inside_of(last), root=random.randbytes(32))
        head = encode(msgspec.structs.replace(last, epoch=max(0, epoch), inside=encode(inside)))
        return CertifiedHead(head, self._marks(epoch, head, {}) or (IndexedSignature(0, bytes(64)),))

    def _marks(self, epoch: int, head: bytes, others: dict[bytes, bytes]) -> tuple[IndexedSignature, ...]:
        world = self._world
        accord = AssentBody(world.network.id, epoch, head_digest(head))
        given = {one.key: assent_to(one.seed, accord) for one in world.faulty} | others
        return tuple(
            IndexedSignature(place, given[key])
            for place, key in enumerate(world.authorities.keys)
            if key in given
        )

    def _complete(self) -> None:
        """Complete each head that honest ones assented to with signatures, and show it to them."""
        if not any(AuthorityFault.TWO_HEADS in self._kinds[member.key] for member in self._world.faulty):
            return
        for member in self._world.honest:
            head = None if member.machine is None else member.machine._head
            if head is None or member.machine is None or member.machine.chain.epoch >= self._epoch:
                continue
            marks = self._marks(self._epoch, head, self._seen.get(head_digest(head), {}))
            if len(marks) >= self._world.authorities.quorum:
                shown = encode(Heads((CertifiedHead(head, marks),)))
                self._world.send(self._world.faulty[0].key, [member.key], shown, 0.0)
