"""A stranger looks each day for names that stand first in the day's line, so that nobody else gets a seat.

The beacon that draws is known 12 to 18 epochs before its day, and a name costs nothing. Of five directories
two are the stranger's: they bring its names, as many as each may, and list no newcomer but these.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from random import Random

import pytest

from hushcast_directory.server import roll
from hushcast_directory.server.roll import Roll
from hushcast_protocol.authorities import listing, tally
from hushcast_protocol.authorities.authority_set import Authorities, AuthorityContact
from hushcast_protocol.authorities.ballots import Ballot
from hushcast_protocol.authorities.listing import Listing, place_in_line, settle
from hushcast_protocol.authorities.seat_admission import SeatAdmission
from hushcast_protocol.authorities.tally import listed_by, share_of_line
from hushcast_protocol.base.addresses import memory_address
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.crypto.signatures import Signed
from hushcast_protocol.base.errors import Refusal
from hushcast_protocol.base.roster import Descriptor, Network, sign_descriptor
from hushcast_runtime.storage.store import MemoryStore

pytestmark = pytest.mark.slow

NETWORK = Network("a line", "hardened", 3600)
FIRST = 20_000 * 24
RULES = SeatAdmission(newcomers=2, age=True)
ROOM = 20  # that may wait, in place of `MAX_WAITING`
HONEST = 6
DAYS = 12


def authorities(count: int, quorum: int) -> Authorities:
    keys = [Seed(bytes([200 + number]) * 32).public() for number in range(count)]
    return Authorities.of([AuthorityContact(key, memory_address(key)) for key in keys], quorum, RULES)


def describe(seed: Seed, now: int) -> Signed:
    key = seed.public()
    body = Descriptor(NETWORK.id, key, memory_address(key), Seed(bytes(32)).public(), now, now + 4 * 3600, 0)
    return sign_descriptor(seed, body)


def seeds(chance: Random) -> Iterator[Seed]:
    while True:
        yield Seed(chance.randbytes(32))


class Line:
    """The directories of a network, and who asks them for a seat."""

    def __init__(self, count: int, quorum: int) -> None:
        self.chance = Random(count)
        self.authorities = authorities(count, quorum)
        own = sorted((Seed(bytes([200 + number]) * 32) for number in range(count)), key=Seed.public)
        self.rolls = {seed.public(): Roll(NETWORK, seed, MemoryStore()) for seed in own[:quorum]}
        self.liars = [seed.public() for seed in own[quorum:]]
        fresh = seeds(self.chance)
        self.seated = [next(fresh) for _ in range(12)]
        self.honest = [next(fresh) for _ in range(HONEST)]
        self.names: list[Seed] = []
        self.last: Listing | None = None

    def beacon(self, day: int) -> bytes:
        return bytes([day % 251]) * 32

    def look_for_names(self, day: int) -> None:
        first = min(place_in_line(self.beacon(day), seed.public()) for seed in self.honest)
        self.names = []
        for seed in seeds(self.chance):
            if place_in_line(self.beacon(day), seed.public()) < first:
                self.names.append(seed)
            if len(self.names) == ROOM:
                return

    async def hand_in(self, to: Roll, signed: Signed, now: float, by: bytes | None = None) -> None:
        with suppress(Refusal):
            await to.admit(to.examine(signed, now, by), signed, by)

    async def epoch(self, epoch: int) -> None:
        """Some register, the stranger's names first; directories tell each other; then they vote."""
        now = int(NETWORK.calendar.epoch_start(epoch) - 3000)
        ours = [describe(seed, now) for seed in (*self.seated, *self.honest)]
        theirs = [describe(seed, now) for seed in self.names]
        for one in self.rolls.values():
            await one.forget(now)
            for signed in (*theirs, *ours):
                await self.hand_in(one, signed, now)
        for key, one in self.rolls.items():
            for liar in self.liars:
                for signed in self.chance.sample(theirs, len(theirs)):
                    await self.hand_in(one, signed, now, liar)
            for relay, known, issued in one.held(now):
                for other, its in self.rolls.items():
                    if other != key and (its.issued(relay) or 0) < issued:
                        signed = one.find(known)
                        assert signed is not None
                        await self.hand_in(its, signed, now, key)
        ballots = [
            self.ballot(epoch, key, one.ballot(epoch, now + 1, False)) for key, one in self.rolls.items()
        ]
        lies = {one for ballot in ballots for one in ballot.listed} - {
            one for one in ballots[0].listed if one[0] in {seed.public() for seed in self.honest}
        }
        ballots += [self.ballot(epoch, key, tuple(sorted(lies))) for key in self.liars]
        listed = listed_by(self.authorities, ballots)
        beacon = self.beacon(epoch // 24)
        self.last = settle(listed, self.last, epoch, RULES, beacon)
        for one in self.rolls.values():
            await one.follow(self.last, self.authorities)

    def ballot(self, epoch: int, key: bytes, listed: tuple[listing.ListedRelay, ...]) -> Ballot:
        return Ballot(NETWORK.id, epoch, key, None, listed, None, None, None)

    def honest_seats(self) -> int:
        assert self.last is not None
        seated = {relay for relay, *_ in self.last.seats}
        return sum(seed.public() in seated for seed in self.honest)


@pytest.mark.parametrize(("count", "quorum", "least"), [(1, 1, 3), (5, 3, 2)])
async def test_who_looks_for_names_is_drawn_as_everybody_is(
    monkeypatch: pytest.MonkeyPatch, count: int, quorum: int, least: int
) -> None:
    """Two seats a day, and twenty names of the stranger's to six honest newcomers."""
    for module in (roll, listing, tally):
        monkeypatch.setattr(module, "MAX_WAITING", ROOM)
    line = Line(count, quorum)
    for day in range(FIRST // 24, FIRST // 24 + DAYS):
        line.look_for_names(day)
        for epoch in (day * 24, day * 24 + listing.AGED):
            await line.epoch(epoch)
            assert line.last is not None
            assert len(line.last.waiting) <= ROOM
    assert line.honest_seats() >= least


async def test_a_share_is_so_small_that_all_of_them_find_room() -> None:
    for count, quorum in ((1, 1), (3, 2), (5, 3), (5, 4), (7, 5), (9, 5)):
        share, others = share_of_line(authorities(count, quorum)), count - quorum
        assert quorum * share * (1 + others) <= listing.MAX_WAITING
        assert share >= 80
