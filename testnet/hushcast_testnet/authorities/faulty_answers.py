"""What a faulty directory answers daemons: old heads, made-up ones, half a truth, or nothing."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from enum import Enum
from random import Random

import msgspec

from hushcast_protocol.authorities.directory_requests import (
    DirectoryAnswer,
    DirectoryRefusal,
    DirectoryRequest,
    Fetch,
    HeadAnswer,
    RegisterRelay,
    RelayRegistered,
    Rosters,
)
from hushcast_protocol.authorities.heads import CertifiedHead, decode_head
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.roster import Network, RosterBody, sign_roster
from hushcast_protocol.shards.shard_requests import AskPiece, PartAnswer, PartRequest, ShardUnavailable

REMEMBERED = 6  # answers of the past that it shows again

Honest = Callable[[Fetch | PartRequest], HeadAnswer | DirectoryRefusal | PartAnswer]
"""Returns what an honest authority answers."""
MadeUp = Callable[[int], CertifiedHead]
"""Returns a head of an epoch that only faulty authorities signed."""


class FaultyAnswer(Enum):
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


FETCHED = (
    FaultyAnswer.SILENT,
    FaultyAnswer.OLD,
    FaultyAnswer.MADE_UP,
    FaultyAnswer.LESS,
    FaultyAnswer.ALONE,
    FaultyAnswer.NOTHING,
)
ASKED = (FaultyAnswer.SILENT, FaultyAnswer.LACKING, FaultyAnswer.OTHER)
REGISTERED = (FaultyAnswer.SILENT, FaultyAnswer.TAKEN, FaultyAnswer.REFUSED)


class FaultyAnswers:
    """Answers daemons for all faulty directories; each question draws one of the ways."""

    def __init__(self, network: Network, honest: Honest, made_up: MadeUp, random: Random) -> None:
        self._network = network
        self._honest = honest
        self._made_up = made_up
        self._random = random
        self._old: deque[HeadAnswer] = deque(maxlen=REMEMBERED)
        self.given: Counter[FaultyAnswer] = Counter()

    def answer(self, seed: Seed, request: DirectoryRequest) -> DirectoryAnswer | None:
        """Return what one of them answers, `None` for silence."""
        shown: DirectoryAnswer | None = None
        if isinstance(request, PartRequest):
            way = self._random.choice(ASKED)
            if way is not FaultyAnswer.SILENT:
                shown = self._honest(_beside(request)) if way is FaultyAnswer.OTHER else ShardUnavailable()
            self.given[way] += 1
            return shown
        way = self._random.choice(REGISTERED if isinstance(request, RegisterRelay) else FETCHED)
        if isinstance(request, Fetch):
            shown = self._shown(seed, request, way)
            if shown is None and way is not FaultyAnswer.SILENT:
                way, shown = FaultyAnswer.NOTHING, HeadAnswer((), (), (), False, None)
        elif way is not FaultyAnswer.SILENT:
            shown = RelayRegistered() if way is FaultyAnswer.TAKEN else DirectoryRefusal("not today")
        self.given[way] += 1
        return shown

    def _shown(self, seed: Seed, request: Fetch, way: FaultyAnswer) -> DirectoryAnswer | None:
        """Return something untrue, or nothing if there is nothing to make it of."""
        true = self._honest(request)
        if isinstance(true, HeadAnswer) and true.heads:
            self._old.append(true)
        if not self._old or way in (FaultyAnswer.SILENT, FaultyAnswer.NOTHING):
            return None
        if way is FaultyAnswer.OLD:
            return self._random.choice(self._old)
        newest = self._old[-1]
        epoch = decode_head(newest.heads[-1].head).epoch
        if way is FaultyAnswer.MADE_UP:
            return msgspec.structs.replace(newest, heads=(self._made_up(epoch + self._random.randrange(2)),))
        if way is FaultyAnswer.LESS:
            return msgspec.structs.replace(newest, seats=newest.seats[1:])
        body = RosterBody(self._network, epoch, bytes(32), newest.seats[:1])
        return Rosters(sign_roster(seed, body), False)


def _beside(request: PartRequest) -> PartRequest:
    """Ask for another shard, or for another piece of the guide."""
    if isinstance(request, AskPiece):
        return msgspec.structs.replace(request, number=request.number ^ 1)
    return msgspec.structs.replace(request, shard=request.shard ^ 1)
