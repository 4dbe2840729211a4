"""What a faulty directory answers daemons: old heads, made-up ones, half a truth, or nothing."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from enum import Enum
from random import Random

import msgspec

from hushcast_protocol.authorities.heads import Certified, decode_head
from hushcast_protocol.authorities.requests import (
    Agreed,
    DirectoryAnswer,
    DirectoryRequest,
    Fetch,
    Refused,
    Register,
    Registered,
    Rosters,
)
from hushcast_protocol.base.roster import Network, RosterBody, sign_roster
from hushcast_protocol.base.secrets import Seed
from hushcast_protocol.shards.requests import AskPiece, NotShown, ShardAnswer, ShardRequest

REMEMBERED = 6  # answers of the past that it shows again

Honest = Callable[[Fetch | ShardRequest], Agreed | Refused | ShardAnswer]
"""Returns what an honest authority answers."""
MadeUp = Callable[[int], Certified]
"""Returns a head of an epoch that only faulty authorities signed."""


class Answer(Enum):
    """Ways to answer a daemon."""

    SILENT = "says nothing, and keeps the connection"
    OLD = "repeats an answer of before"
    MADE_UP = "shows a head that only faulty authorities signed"
    LESS = "shows a true head without one of its relays"
    ALONE = "shows a roster of its own, as a single directory would"
    NOTHING = "knows of no head"
    TAKEN = "takes a descriptor, and tells nobody"
    REFUSED = "refuses"
    LACKING = "does not show a part of a network in shards"
    OTHER = "shows another part than was asked for"


FETCHED = (Answer.SILENT, Answer.OLD, Answer.MADE_UP, Answer.LESS, Answer.ALONE, Answer.NOTHING)
ASKED = (Answer.SILENT, Answer.LACKING, Answer.OTHER)
REGISTERED = (Answer.SILENT, Answer.TAKEN, Answer.REFUSED)


class Desk:
    """Answers daemons for all faulty directories; each question draws one of the ways."""

    def __init__(self, network: Network, honest: Honest, made_up: MadeUp, random: Random) -> None:
        self._network = network
        self._honest = honest
        self._made_up = made_up
        self._random = random
        self._old: deque[Agreed] = deque(maxlen=REMEMBERED)
        self.given: Counter[Answer] = Counter()

    def answer(self, seed: Seed, request: DirectoryRequest) -> DirectoryAnswer | None:
        """Return what one of them answers, `None` for silence."""
        shown: DirectoryAnswer | None = None
        if isinstance(request, ShardRequest):
            way = self._random.choice(ASKED)
            if way is not Answer.SILENT:
                shown = self._honest(_beside(request)) if way is Answer.OTHER else NotShown()
            self.given[way] += 1
            return shown
        way = self._random.choice(REGISTERED if isinstance(request, Register) else FETCHED)
        if isinstance(request, Fetch):
            shown = self._shown(seed, request, way)
            if shown is None and way is not Answer.SILENT:
                way, shown = Answer.NOTHING, Agreed((), (), (), False, None)
        elif way is not Answer.SILENT:
            shown = Registered() if way is Answer.TAKEN else Refused("not today")
        self.given[way] += 1
        return shown

    def _shown(self, seed: Seed, request: Fetch, way: Answer) -> DirectoryAnswer | None:
        """Return something untrue, or nothing if there is nothing to make it of."""
        true = self._honest(request)
        if isinstance(true, Agreed) and true.heads:
            self._old.append(true)
        if not self._old or way in (Answer.SILENT, Answer.NOTHING):
            return None
        if way is Answer.OLD:
            return self._random.choice(self._old)
        newest = self._old[-1]
        epoch = decode_head(newest.heads[-1].head).epoch
        if way is Answer.MADE_UP:
            return msgspec.structs.replace(newest, heads=(self._made_up(epoch + self._random.randrange(2)),))
        if way is Answer.LESS:
            return msgspec.structs.replace(newest, seats=newest.seats[1:])
        body = RosterBody(self._network, epoch, bytes(32), newest.seats[:1])
        return Rosters(sign_roster(seed, body), False)


def _beside(request: ShardRequest) -> ShardRequest:
    """Ask for another shard, or for another piece of the guide."""
    if isinstance(request, AskPiece):
        return msgspec.structs.replace(request, number=request.number ^ 1)
    return msgspec.structs.replace(request, shard=request.shard ^ 1)
