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

REMEMBERED = 6  # answers of the past that it shows again

Honest = Callable[[Fetch], Agreed | Refused]
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


FETCHED = (Answer.SILENT, Answer.OLD, Answer.MADE_UP, Answer.LESS, Answer.ALONE, Answer.NOTHING)
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
        way = self._random.choice(REGISTERED if isinstance(request, Register) else FETCHED)
        self.given[way] += 1
        if isinstance(request, Fetch):
            return self._show(seed, request, way)
        return {Answer.TAKEN: Registered(), Answer.REFUSED: Refused("not today")}.get(way)

    def _show(self, seed: Seed, request: Fetch, way: Answer) -> DirectoryAnswer | None:
        true = self._honest(request)
        if not isinstance(true, Agreed) or not true.heads or way is Answer.NOTHING:
            return None if way is Answer.SILENT else Agreed((), (), (), False)
        if way is Answer.OLD:
            self._old.append(true)
            return self._random.choice(self._old)
        epoch = decode_head(true.heads[-1].head).epoch
        if way is Answer.MADE_UP:
            return msgspec.structs.replace(true, heads=(self._made_up(epoch),))
        if way is Answer.LESS:
            return msgspec.structs.replace(true, seats=true.seats[1:])
        if way is Answer.ALONE:
            body = RosterBody(self._network, epoch, bytes(32), true.seats[:1])
            return Rosters(sign_roster(seed, body), False)
        return None
