"""The rounds of one epoch: which ballots count, the same for all honest authorities (Dolev and Strong, 1983).

In round r, from 1 to n − q + 1, a ballot is taken if at least r authorities signed its statement, the author
among them, and if it is there entire. Whoever takes one signs and passes it on. So what an honest authority
takes in a round before the last, all others take in the next; and what it takes in the last one was signed
by an honest authority before, since there are only n − q others. All this rests on two things: that what
honest authorities send arrives within a round, and that no more than n − q are not honest.

    ballot of an author                            here       actions
    signed by fewer than the round asks for        open       -
    signed enough, without the ballot              open       AskBallot to who sent it, once each
    signed enough, with the ballot                 taken      Echo to all that did not sign
    a second one, as above                         taken      the same, and evidence
    a third one                                    ignored    -

An author with one ballot taken counts; with two it counts for nothing. Each authority may show two ballots
of an author, since no honest one shows more; so nobody can fill the room that another needs.

Whether a ballot is one follows from its bytes alone, never from what is held here: who was away, or began
with the set of now, knows less than others. So the head in it is checked by the set that it names itself;
whether that one was in charge is for the tally (`tally.newest_shown`), by the ballots that all have.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hushcast_protocol.authorities.actions import Accuse, AuthorityActions, SendFrame
from hushcast_protocol.authorities.authority_set import Authorities
from hushcast_protocol.authorities.ballots import Ballot, Cast, ballot_digest, read_ballot
from hushcast_protocol.authorities.evidence import Evidence
from hushcast_protocol.authorities.frames import AskBallot, Echo
from hushcast_protocol.authorities.heads import IndexedSignature, check_shown
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.crypto.signatures import SignaturePurpose, Signed, check, signature
from hushcast_protocol.base.errors import AuthenticationError, DecodeError
from hushcast_protocol.base.wire import PublicKey, encode

MAX_SHOWN = 2  # ballots of one author that one authority may show: two are evidence, more say nothing new
MAX_ANSWERS = 2  # times that one ballot is given to one authority: a link may break once


@dataclass(slots=True)
class _Held:
    """A ballot as far as it is known."""

    cast: Cast
    marks: dict[int, bytes] = field(default_factory=dict)
    body: bytes | None = None
    ballot: Ballot | None = None
    asked: set[PublicKey] = field(default_factory=set)
    is_taken: bool = False


class Rounds:
    """The ballots of one epoch, at one authority."""

    def __init__(self, network: bytes, epoch: int, authorities: Authorities, seed: Seed) -> None:
        self.epoch = epoch
        self.authorities = authorities
        self._network = network
        self._seed = seed
        self._own = seed.public()
        self._place = authorities.keys.index(self._own)
        self._held: dict[PublicKey, dict[bytes, _Held]] = {key: {} for key in authorities.keys}
        self._shown: dict[tuple[PublicKey, PublicKey], set[bytes]] = {}
        self._answers: dict[tuple[PublicKey, bytes], int] = {}
        self._accused: set[PublicKey] = set()

    def cast(self, ballot: Ballot) -> AuthorityActions:
        """Cast the own ballot of this epoch."""
        body = encode(ballot)
        held = _Held(Cast(self._network, self.epoch, self._own, ballot_digest(body)), body=body)
        held.ballot = ballot
        self._held[self._own][held.cast.ballot] = held
        self._sign(held)
        return self._echo(held, self._others(), with_body=True)

    def take(self, sender: PublicKey, echo: Echo, number: int) -> AuthorityActions:
        """Take an echo in round `number`, from 1 on; raise a `PeerError` for what no honest one sends."""
        if echo.author not in self._held:
            raise DecodeError("a ballot is by nobody of the authorities")
        if echo.author == self._own:
            return []  # its own it knows; nobody else can cast one
        known = self._held[echo.author].get(echo.ballot)
        held = known or _Held(Cast(self._network, self.epoch, echo.author, echo.ballot))
        if held.is_taken:
            return []
        self._check_room(sender, echo)
        fresh = self._check_marks(held, echo)
        if echo.body is not None and held.body is None:
            ballot = read_ballot(echo.body, held.cast)
            if (
                ballot.previous is not None
                and check_shown(ballot.previous, self._network).epoch >= self.epoch
            ):
                raise DecodeError("a ballot goes on from a head that is not before it")
            held.body, held.ballot = echo.body, ballot
        held.marks.update(fresh)
        self._held[echo.author][echo.ballot] = held
        self._shown.setdefault((sender, echo.author), set()).add(echo.ballot)
        return self._evidence(echo.author) + self._advance(sender, held, number)

    def answer(self, sender: PublicKey, question: AskBallot) -> AuthorityActions:
        """Give a ballot to who asks for it; nothing if it is not here, or was given often enough."""
        for ballots in self._held.values():
            held = ballots.get(question.ballot)
            if held is None or not held.is_taken:
                continue
            given = self._answers.get((sender, question.ballot), 0)
            if given < MAX_ANSWERS:
                self._answers[sender, question.ballot] = given + 1
                return self._echo(held, (sender,), with_body=True)
        return []

    def counted(self) -> tuple[dict[PublicKey, Ballot], list[PublicKey]]:
        """Return, after the last round, the ballots that count, by author, and who cast two."""
        taken = {
            author: [one.ballot for one in ballots.values() if one.is_taken and one.ballot is not None]
            for author, ballots in self._held.items()
        }
        counting = {author: ballots[0] for author, ballots in taken.items() if len(ballots) == 1}
        return counting, [author for author, ballots in taken.items() if len(ballots) > 1]

    def _check_room(self, sender: PublicKey, echo: Echo) -> None:
        shown = self._shown.get((sender, echo.author), ())
        if echo.ballot not in shown and len(shown) >= MAX_SHOWN:
            raise DecodeError("a third ballot of one author is shown")

    def _check_marks(self, held: _Held, echo: Echo) -> dict[int, bytes]:
        """Return those signatures that are new; raise if one does not hold, or the author's is missing."""
        keys = self.authorities.keys
        body = encode(held.cast)
        fresh = {}
        for mark in echo.marks:
            if mark.place >= len(keys):
                raise DecodeError("a ballot is signed by nobody of the authorities")
            if mark.place not in held.marks:
                check(keys[mark.place], SignaturePurpose.BALLOT, body, mark.signature)
                fresh[mark.place] = mark.signature
        if keys.index(echo.author) not in held.marks.keys() | fresh.keys():
            raise AuthenticationError("a ballot is not signed by its author")
        return fresh

    def _advance(self, sender: PublicKey, held: _Held, number: int) -> AuthorityActions:
        taken = [one for one in self._held[held.cast.author].values() if one.is_taken]
        if len(held.marks) < number or number > self.authorities.rounds or len(taken) >= MAX_SHOWN:
            return []
        if held.body is None:
            if sender in held.asked:
                return []
            held.asked.add(sender)
            return [SendFrame((sender,), AskBallot(self.epoch, held.cast.ballot))]
        signed = {self.authorities.keys[place] for place in held.marks}
        self._sign(held)
        return self._echo(held, tuple(key for key in self._others() if key not in signed), with_body=False)

    def _evidence(self, author: PublicKey) -> AuthorityActions:
        """Accuse an author, once, whose signature is on two statements; with or without the ballots."""
        if author in self._accused or len(self._held[author]) < 2:
            return []
        self._accused.add(author)
        place = self.authorities.keys.index(author)
        first, second = [
            Signed(encode(held.cast), held.marks[place]) for held in list(self._held[author].values())[:2]
        ]
        return [Accuse(Evidence(author, first, second))]

    def _sign(self, held: _Held) -> None:
        held.is_taken = True
        held.marks[self._place] = signature(self._seed, SignaturePurpose.BALLOT, encode(held.cast))

    def _echo(self, held: _Held, to: tuple[PublicKey, ...], with_body: bool) -> AuthorityActions:
        marks = tuple(IndexedSignature(place, given) for place, given in sorted(held.marks.items()))
        body = held.body if with_body else None
        return (
            [SendFrame(to, Echo(self.epoch, held.cast.author, held.cast.ballot, marks, body))] if to else []
        )

    def _others(self) -> tuple[PublicKey, ...]:
        return tuple(key for key in self.authorities.keys if key != self._own)
