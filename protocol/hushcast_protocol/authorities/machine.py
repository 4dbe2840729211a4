"""The machine of one authority: from the exchange before an epoch to the head that a quorum signed.

It is moved by `tick`, once `deadline` has passed, by `received` with what another authority sent, and by
`cast`. Each returns what is to be done, in order (`actions.py`; `GATHER` and `VOTE` are commands); what
stands after a `Keep` waits until that is on disk. It sends to other authorities by key, over links that prove
the sender; frames may be lost, come twice or out of order.

    phase       event                            next        actions
    WAITING     the exchange begins              GATHERING   SendFrame Heads, GATHER
    GATHERING   time to cast                     VOTING      VOTE
    VOTING      `cast`, in time                  VOTING      Keep, SendFrame Echo
    VOTING      an echo                          VOTING      as in `rounds.py`
    VOTING      the last round over, too few
                ballots                          WAITING     -
    VOTING      the last round over              ASSENTING   Keep, SendFrame Assent
    ASSENTING   a quorum assented to the same    WAITING     Keep, PublishHead, SendFrame Heads
    any         a newer head with a quorum       (the same)  Keep; PublishHead, or SendFrame AskListing
    any         the listing asked for            (the same)  PublishHead
    any         another head of one epoch        STOPPED     Keep, Stop, and Accuse who signed both
    any but STOPPED: next exchange begins        GATHERING   as above

Who is not among the authorities in charge of an epoch, or does not speak its wire, stays WAITING, and
follows. After a restart a machine sits out the epoch whose exchange has begun. It never casts twice for an
epoch, nor assents twice: the epochs are on disk before, and each is later than the last. Without the listing
of the head before no assent.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from contextlib import suppress

from hushcast_protocol.authorities import frames
from hushcast_protocol.authorities.actions import (
    Accuse,
    AuthorityActions,
    AuthorityCommand,
    AuthorityState,
    Keep,
    Phase,
    PublishHead,
    SendFrame,
    Stop,
)
from hushcast_protocol.authorities.authority_set import Authorities
from hushcast_protocol.authorities.ballots import Ballot
from hushcast_protocol.authorities.beacon import to_say
from hushcast_protocol.authorities.chain import Chain
from hushcast_protocol.authorities.evidence import Evidence, who_forked
from hushcast_protocol.authorities.head_inside import root_of
from hushcast_protocol.authorities.head_questions import AskHeads, Heads
from hushcast_protocol.authorities.heads import (
    AssentBody,
    CertifiedHead,
    IndexedSignature,
    assent_to,
    decode_head,
    head_digest,
)
from hushcast_protocol.authorities.listing import ListedRelay, Listing
from hushcast_protocol.authorities.rounds import Rounds
from hushcast_protocol.authorities.schedule import Schedule, next_epoch, schedule
from hushcast_protocol.authorities.tally import HeadBasis, count, head_basis
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.crypto.signatures import SignaturePurpose, Signed, check
from hushcast_protocol.base.epochs import Calendar
from hushcast_protocol.base.errors import AuthenticationError, PeerError
from hushcast_protocol.base.roster import Network
from hushcast_protocol.base.wire import PublicKey, encode

MAX_ASSENTS = 2  # to different heads that one authority is heard with: two are evidence
MAX_ASKED = 8  # times an epoch that one authority is told how heads follow each other, or a listing
MAX_LISTINGS = 4  # listings of heads that are held: of the newest, and of those that somebody may go on from


class Authority:
    """One of the directories of a network."""

    def __init__(
        self, network: Network, seed: Seed, kept: AuthorityState, now: float, beginning: Listing | None = None
    ) -> None:
        """Begin with what was kept; at first `AuthorityState(ChainState(authorities))`.

        `beginning` is the listing of the roster that the first head goes on from, if there was one.
        """
        self.key: PublicKey = seed.public()
        self.chain = Chain(network.id, kept.chain)
        self.phase = Phase.WAITING if kept.chain.fork is None else Phase.STOPPED
        self._network = network.id
        self._calendar: Calendar = network.calendar
        self._seed = seed
        self._voted, self._assented = kept.voted, kept.assented
        begun = -1 if beginning is None else beginning.epoch
        self._epoch = 1 + max(next_epoch(self._calendar, now) - 1, kept.voted, kept.assented, begun)
        self._rounds: Rounds | None = None
        self._times: Schedule | None = None
        self._head: bytes | None = None  # that was assented to
        self.agreed = -1
        """The newest epoch whose head, signed by a quorum, was the one that this authority assented to."""
        self._listings: dict[bytes, Listing] = {}  # by root
        self._beginning = beginning
        self._asked: set[PublicKey] = set()  # for the listing of the newest head
        self._assents: dict[PublicKey, dict[bytes, bytes]] = {}
        self._answered: dict[PublicKey, int] = {}

    @property
    def kept(self) -> AuthorityState:
        """All that has to outlast a restart, as it is now."""
        return AuthorityState(self.chain.state, self._voted, self._assented)

    @property
    def epoch(self) -> int | None:
        """The epoch whose head is agreed on, `None` if this authority has no part in that."""
        return None if self._rounds is None else self._rounds.epoch

    @property
    def deadline(self) -> float:
        """When `tick` is to be called, Unix seconds; infinite once stopped."""
        if self.phase is Phase.STOPPED:
            return math.inf
        if self.phase is Phase.GATHERING and self._times is not None:
            return self._times.cast
        if self.phase is Phase.VOTING and self._times is not None:
            return self._times.counted
        return self._calendar.epoch_start(self._epoch) - self._calendar.grace

    def know(self, listing: Listing) -> AuthorityActions:
        """Take a listing that was kept, came or was counted, those of later epochs later."""
        self._listings[listing.root] = listing
        for root in list(self._listings)[:-MAX_LISTINGS]:
            del self._listings[root]
        newest = self.chain.state.newest
        return (
            [PublishHead(newest, listing)]
            if newest is not None and root_of(self.chain.head) == listing.root
            else []
        )

    def tick(self, now: float) -> AuthorityActions:
        """Do what the deadline that has passed asks for; call it again while there is another."""
        if now < self.deadline:
            return []
        if self.phase is Phase.GATHERING:
            self.phase = Phase.VOTING
            return [AuthorityCommand.VOTE]
        if self.phase is Phase.VOTING:
            return self._count()
        return self._begin(now)

    def cast(
        self, listed: tuple[ListedRelay, ...], following: Authorities | None, now: float
    ) -> AuthorityActions:
        """Cast a ballot; nothing if it is too late for the first round.

        `listed` are the relays that this authority reached, in ascending order, each with the digest of its
        newest descriptor; `following` the authorities that it would have instead of those of now.
        """
        rounds, times = self._rounds, self._times
        if self.phase is not Phase.VOTING or rounds is None or times is None or times.number(now) > 1:
            return []
        return [] if rounds.epoch <= self._voted else self._vote(rounds, listed, following)

    def _vote(
        self, rounds: Rounds, listed: tuple[ListedRelay, ...], following: Authorities | None
    ) -> AuthorityActions:
        commit, reveal = to_say(self._seed, self._network, rounds.epoch)
        newest = self.chain.state.newest
        ballot = Ballot(self._network, rounds.epoch, self.key, newest, listed, commit, reveal, following)
        self._voted = rounds.epoch
        return [Keep(self.kept), *rounds.cast(ballot)]

    def due_alone(self, now: float) -> int | None:
        """Return the epoch whose head is missing here where this is a network's one authority, else `None`.

        It is the first, or one after a time away: there is nobody to wait for.
        """
        calendar = self._calendar
        begins = self.chain.head is None and self._beginning is None
        epoch = calendar.epoch(now if begins else now + calendar.lead)
        authorities = self.chain.in_charge(epoch)
        if authorities is None or authorities.keys != (self.key,) or self.phase is Phase.STOPPED:
            return None
        if not authorities.is_spoken:
            return None
        before = -1 if self._beginning is None else self._beginning.epoch
        return epoch if epoch > max(self._voted, self._assented, self.chain.epoch, before) else None

    def alone(
        self, listed: tuple[ListedRelay, ...], following: Authorities | None, now: float
    ) -> AuthorityActions:
        """Publish at once what is `due_alone`; `listed` and `following` are as in `cast`."""
        epoch = self.due_alone(now)
        authorities = None if epoch is None else self._set_out(epoch)
        if epoch is None or authorities is None:
            return []
        self._rounds = Rounds(self._network, epoch, authorities, self._seed)
        return [*self._vote(self._rounds, listed, following), *self._count()]

    def received(self, sender: PublicKey, data: bytes, now: float) -> AuthorityActions:
        """Take a frame of another authority; raise a `PeerError` for what no honest one sends."""
        return self.take(sender, frames.decode_frame(data), now)

    def take(self, sender: PublicKey, frame: frames.AuthorityFrame, now: float) -> AuthorityActions:
        """Take a frame that was decoded, as `received` does."""
        if isinstance(frame, Heads):
            return self._follow(sender, frame)
        if isinstance(frame, AskHeads):
            return self._show(sender, frame)
        if isinstance(frame, frames.AskListing):
            listing = self._listings.get(frame.root)
            return [] if listing is None else self._to(sender, listing)
        if isinstance(frame, Listing):
            lacks = self._lacks_listing()
            return self.know(frame) if lacks is not None and lacks == frame.root else []
        rounds = self._rounds
        if rounds is None or frame.epoch != rounds.epoch or self.phase is Phase.STOPPED:
            return []  # of another epoch: it came late, or this one sat it out
        if sender not in rounds.authorities.keys:
            raise AuthenticationError("a frame of a vote is from nobody of its authorities")
        if isinstance(frame, frames.AskBallot):
            return rounds.answer(sender, frame)
        if isinstance(frame, frames.Assent):
            return self._agreed(sender, frame, rounds)
        return self._echoed(sender, frame, rounds, now)

    def _begin(self, now: float) -> AuthorityActions:
        """Begin the exchange before an epoch; one whose time to vote has passed is left out."""
        epoch = max(self._epoch, next_epoch(self._calendar, now) - 1)
        authorities = self._set_out(epoch)
        self.phase = Phase.WAITING
        if authorities is None or epoch <= self.chain.epoch:
            return []
        asked = self._ask_listing(key for key in authorities.keys if key != self.key)
        if self.key not in authorities.keys or not authorities.is_spoken:
            return [*asked, *self._to_others(authorities.keys, self._question())]
        times = schedule(self._calendar, epoch, authorities)
        if now >= times.cast + times.round:
            return asked
        self._times = times
        self._rounds = Rounds(self._network, epoch, authorities, self._seed)
        self.phase = Phase.GATHERING
        newest = self.chain.state.newest
        shown = [] if newest is None else self._to_others(authorities.keys, Heads((newest,)))
        return [*asked, *shown, AuthorityCommand.GATHER]

    def _set_out(self, epoch: int) -> Authorities | None:
        """Forget what was said of another epoch; return who is in charge of this one."""
        self._epoch, self._head = epoch + 1, None
        self._assents, self._answered, self._asked = {}, {}, set()
        self._rounds = self._times = None
        return self.chain.in_charge(epoch)

    def _echoed(self, sender: PublicKey, echo: frames.Echo, rounds: Rounds, now: float) -> AuthorityActions:
        times = self._times
        if times is None or self.phase not in (Phase.GATHERING, Phase.VOTING) or now >= times.counted:
            return []
        return rounds.take(sender, echo, times.number(now))

    def _count(self) -> AuthorityActions:
        """Count what the rounds left, and assent to the head that follows from it."""
        rounds = self._rounds
        assert rounds is not None
        ballots, faults = rounds.counted()
        actions: AuthorityActions = []
        for ballot in ballots.values():
            if ballot.previous is not None:
                with suppress(PeerError):  # of a set that is not known here, if it ever was one
                    actions += self._take(ballot.previous)
        if self.phase is Phase.STOPPED:
            return actions
        state = self.chain.state
        first = HeadBasis(state.beginning, None, self._beginning) if self.chain.head is None else None
        before = head_basis(rounds.authorities, ballots, self.key, first, self._listings)
        found = None
        if before is not None:
            found = count(self._network, rounds.epoch, rounds.authorities, ballots, faults, before)
        if found is None:
            self.phase = Phase.WAITING
            return actions + self._ask_listing(key for key in rounds.authorities.keys if key != self.key)
        self.phase = Phase.ASSENTING
        head, listing = found
        self.know(listing)
        self._head, self._assented = encode(head), rounds.epoch
        digest = head_digest(self._head)
        given = assent_to(self._seed, AssentBody(self._network, rounds.epoch, digest))
        self._assents.setdefault(self.key, {})[digest] = given
        actions += [
            Keep(self.kept, listing),
            *self._to_others(rounds.authorities.keys, frames.Assent(rounds.epoch, digest, given)),
        ]
        return actions + self._certify(rounds)

    def _lacks_listing(self) -> bytes | None:
        """Return the root of the newest head if its listing is not here, else `None`."""
        root = root_of(self.chain.head)
        return None if root in self._listings else root

    def _ask_listing(self, whom: Iterable[PublicKey]) -> AuthorityActions:
        """Ask for the listing of the newest head if it is not here, everybody once an epoch."""
        root = self._lacks_listing()
        to = tuple(key for key in whom if key not in self._asked)
        if root is None or not to:
            return []
        self._asked.update(to)
        return [SendFrame(to, frames.AskListing(root))]

    def _agreed(self, sender: PublicKey, assent: frames.Assent, rounds: Rounds) -> AuthorityActions:
        given = self._assents.setdefault(sender, {})
        if assent.head in given or len(given) >= MAX_ASSENTS or sender == self.key:
            return []
        body = encode(AssentBody(self._network, rounds.epoch, assent.head))
        check(sender, SignaturePurpose.ASSENT, body, assent.signature)
        actions: AuthorityActions = []
        for head, before in given.items():
            first = Signed(encode(AssentBody(self._network, rounds.epoch, head)), before)
            actions.append(Accuse(Evidence(sender, first, Signed(body, assent.signature))))
        given[assent.head] = assent.signature
        return actions + self._certify(rounds)

    def _certify(self, rounds: Rounds) -> AuthorityActions:
        """Make a certified head of the own one once a quorum assented to it."""
        if self.phase is not Phase.ASSENTING or self._head is None:
            return []
        digest, places = head_digest(self._head), enumerate(rounds.authorities.keys)
        marks = tuple(
            IndexedSignature(place, self._assents[key][digest])
            for place, key in places
            if digest in self._assents.get(key, ())
        )
        if len(marks) < rounds.authorities.quorum:
            return []
        certified = CertifiedHead(self._head, marks)
        actions = self._take(certified)
        if self.phase is Phase.ASSENTING:
            self.phase = Phase.WAITING
        # Those to come, too: from this one they may have to go on. Who was replaced is told when it asks.
        coming = (decode_head(self._head).change or rounds).authorities.keys
        keys = dict.fromkeys((*rounds.authorities.keys, *coming))
        return actions + self._to_others(keys, Heads((certified,)))

    def _follow(self, sender: PublicKey, frame: Heads) -> AuthorityActions:
        """Take heads that another authority shows, as far as a quorum signed them."""
        if self.phase is Phase.STOPPED:
            return self._show(sender, AskHeads(None))
        actions: AuthorityActions = []
        for certified in frame.heads:
            try:
                head = decode_head(certified.head)
                if self.chain.knows_set_of(head):
                    actions += self._take(certified)
                elif head.epoch > self.chain.epoch and len(frame.heads) == 1:
                    actions += self._to(sender, self._question())  # it may know how that set came about
            except PeerError:
                if not actions:
                    raise
                break  # what came before it holds, and is to be kept
        return actions + self._ask_listing((sender,))

    def _question(self) -> AskHeads:
        return AskHeads(None if self.chain.head is None else self.chain.epoch)

    def _show(self, sender: PublicKey, question: AskHeads) -> AuthorityActions:
        """Show how heads follow each other, or the fork that ended them."""
        heads = self.chain.after(question.after)
        return self._to(sender, Heads(tuple(heads))) if heads else []

    def _to(self, sender: PublicKey, frame: AskHeads | Heads | Listing) -> AuthorityActions:
        """Send to one authority, of now, of before or to come, a few times an epoch."""
        told = self._answered.get(sender, 0)
        if told >= MAX_ASKED or sender not in self.chain.named():
            return []
        self._answered[sender] = told + 1
        return [SendFrame((sender,), frame)]

    def _take(self, certified: CertifiedHead) -> AuthorityActions:
        """Follow a certified head; stop if it is one of two for its epoch."""
        if not self.chain.take(certified):
            return []
        fork = self.chain.state.fork
        if fork is None:
            self._asked.clear()
            if certified.head == self._head:
                self.agreed = self.chain.epoch
            listing = self._listings.get(root_of(self.chain.head) or b"")
            return [Keep(self.kept), *([] if listing is None else [PublishHead(certified, listing)])]
        self.phase = Phase.STOPPED
        authorities = self.chain.in_charge(decode_head(certified.head).epoch)
        assert authorities is not None
        accused = [Accuse(one) for one in who_forked(fork, self._network, authorities)]
        proof = Heads((fork.first, fork.second))
        return [Keep(self.kept), Stop(fork), *accused, *self._to_others(authorities.keys, proof)]

    def _to_others(self, keys: Iterable[PublicKey], frame: frames.AuthorityFrame) -> AuthorityActions:
        others = tuple(key for key in keys if key != self.key)
        return [SendFrame(others, frame)] if others else []
