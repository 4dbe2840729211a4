"""The roll: the relays that one of several directories reached, and whom it lists on its ballots."""

from __future__ import annotations

import copy
import math
from bisect import bisect_left, insort
from collections.abc import Collection, Container, Iterable, Mapping
from typing import NamedTuple

import trio

from hushcast_directory.server.descriptors import DESCRIPTOR, FORGOTTEN_AT_ONCE, Descriptors, Known
from hushcast_protocol.authorities.authority_set import Authorities
from hushcast_protocol.authorities.ballots import MAX_LISTED
from hushcast_protocol.authorities.descriptor_exchange import HeldDescriptor
from hushcast_protocol.authorities.heads import AuthorityChange
from hushcast_protocol.authorities.listing import AGED, MAX_WAITING, ListedRelay, Listing
from hushcast_protocol.authorities.tally import share_of_line
from hushcast_protocol.base.crypto.hashes import Domain, digest
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.crypto.signatures import Signed
from hushcast_protocol.base.epochs import EPOCHS_A_DAY
from hushcast_protocol.base.errors import Refusal
from hushcast_protocol.base.roster import MAX_RELAYS, Descriptor, Network, descriptor_digest
from hushcast_protocol.base.versions import wires
from hushcast_protocol.base.wire import PublicKey, RelayId, encode
from hushcast_runtime.storage.changes import Change
from hushcast_runtime.storage.store import Store

LOOK_AGAIN = 60.0  # seconds between looks for expired ones where too many are held: each goes through all

_FULL = "too many relays wait for a seat: who waits is drawn anew each day, try again then"
_Place = tuple[bool, bytes, RelayId]
_DRAWN_AT_ONCE = 4096  # newcomers whose places are drawn in one step: some 5 ms
_LET_GO_AT_ONCE = 4096  # descriptors: 4 ms


class _Draw(NamedTuple):
    """How newcomers are drawn: each day by a secret, so that no name can be looked for.

    Those that may be drawn when the next day begins stay until then, whoever comes.
    """

    aged: frozenset[RelayId]
    """Who waits, and may be drawn when the next day begins."""
    secret: bytes

    def place(self, relay: RelayId) -> _Place:
        """Return where a newcomer stands."""
        return relay not in self.aged, digest(Domain.OWN_LINE, relay, key=self.secret), relay


class Roll(Descriptors):
    """Descriptors of relays with a seat and of newcomers; times are arguments."""

    most = MAX_LISTED

    def __init__(self, network: Network, seed: Seed, store: Store) -> None:
        super().__init__(network, seed, store)
        self._seats: Mapping[RelayId, int] = {}
        self.waiting = 0
        """How many relays wait for a seat, by the newest head."""
        self._epoch = self._day = -1  # of the newest head
        self._wire = wires.spoken().highest
        self._change: AuthorityChange | None = None
        self._draw = _Draw(frozenset(), bytes(32))
        self._replaced: dict[RelayId, tuple[bytes, Known]] = {}  # before their newest, with its digest
        self._by_digest: dict[bytes, Signed] = {}
        self._digests: dict[RelayId, bytes] = {}  # of the newest descriptors: to make all takes too long
        self._line: list[_Place] = []  # of newcomers that are held as they registered here, in order
        self._brought: dict[RelayId, PublicKey] = {}  # those that are held as another authority brought them
        self._room = MAX_LISTED
        self._looked = -math.inf

    async def follow(
        self,
        listing: Listing,
        authorities: Authorities | None = None,
        change: AuthorityChange | None = None,
    ) -> None:
        """Go on from a head: who has a seat, and by which rules of which set newcomers are listed.

        All newcomers are drawn first, in steps between which others have their turn.
        """
        seats = {relay: since for relay, *_, since in listing.seats}
        day, phase = divmod(listing.epoch, EPOCHS_A_DAY)
        before = day * EPOCHS_A_DAY + AGED
        aged = frozenset(relay for relay, since in listing.waiting if phase >= AGED and since <= before)
        draw = _Draw(aged, digest(Domain.OWN_LINE, self.network.id, encode(day), key=self.seed.reveal()))
        drawn = await self._drawn(draw, seats)
        self._seats, self._draw = seats, draw
        self.waiting = len(listing.waiting)
        self._epoch = listing.epoch
        is_drawn_anew, self._day = day != self._day, day
        self._brought = {
            relay: by
            for relay, by in self._brought.items()
            if relay in self._descriptors and relay not in seats and not is_drawn_anew
        }
        newcomers = self._descriptors.keys() - seats.keys() - self._brought.keys()
        self._line = [place for place in drawn if place[-1] in newcomers]
        for relay in newcomers - {place[-1] for place in self._line}:
            insort(self._line, self._place(relay))  # it came meanwhile
        # More than these could neither be seated nor wait by the next head.
        share, bringers = MAX_WAITING, 1
        if authorities is not None:
            self._wire, self._change = authorities.wire, change
            share, bringers = share_of_line(authorities), len(authorities.members)
        waits = authorities is not None and (authorities.admission.newcomers or authorities.admission.age)
        free = 0 if waits else max(0, MAX_RELAYS - len(seats))
        self._room = share + free
        self.most = min(Roll.most, len(seats) + bringers * share + free)
        self.store.write_soon(*(Change(DESCRIPTOR, relay, None) for relay in self._make_room()))

    def listed(self) -> Collection[RelayId]:
        """Return who has a seat."""
        return self._seats

    def coming(self, now: float) -> int:
        """Return the epoch of the next head."""
        return max(self._epoch + 1, self._calendar.epoch(now + self._calendar.lead))

    def issued(self, relay: RelayId) -> int | None:
        """Return when a relay's newest descriptor was issued (Unix seconds), `None` if there is none."""
        known = self._descriptors.get(relay)
        return None if known is None else known[0].issued

    def find(self, known: bytes) -> Signed | None:
        """Return a descriptor that is held by its digest."""
        return self._by_digest.get(known)

    def examine(self, signed: Signed, now: float, by: PublicKey | None = None) -> Descriptor:
        """Check a descriptor that a relay hands in, or another authority brings; raises as below."""
        descriptor = super().examine(signed, now)
        if self._wire not in descriptor.speaks:
            raise Refusal(f"this network speaks wire {self._wire}, and the relay {descriptor.speaks}")
        if not self._has_room(descriptor.relay, by):
            self._look_again(now)
            if not self._has_room(descriptor.relay, by):
                raise Refusal(_FULL)
        return descriptor

    def held(self, now: float) -> list[HeldDescriptor]:
        """Return all descriptors that hold, as authorities name them to each other.

        Each brings the others its own share of newcomers alone: else one could fill that of another.
        """
        return [
            (relay, self._digests[relay], descriptor.issued)
            for relay, (descriptor, _) in self._live(now).items()
            if relay not in self._brought
        ]

    def ballot(self, epoch: int, agreed: float, was_away: bool) -> tuple[ListedRelay, ...]:
        """Return whom to list in an epoch, in ascending order.

        Of a relay whose newest descriptor was issued after `agreed`, when the exchange began, the one before
        it is named if it still holds: not everybody has the newest yet. `was_away` tells that there were no
        heads of late: relays that could not renew stay, as they do at a single directory. Who is expelled,
        or does not speak what is spoken then, is not named.
        """
        start = self._calendar.epoch_start(epoch)
        chosen = self._newest(start)
        for relay, (_, (descriptor, _)) in chosen.items():
            before = self._replaced.get(relay)
            if descriptor.issued > agreed and before is not None and before[1][0].expires > start:
                chosen[relay] = before
        if was_away or 2 * len(chosen.keys() & self._seats.keys()) < len(self._seats):
            carried = self._newest(start - self._calendar.day_seconds)
            chosen |= {
                relay: carried[relay] for relay in self._seats if relay in carried and relay not in chosen
            }
        wire = self._spoken_in(epoch)
        mute = {relay for relay, (_, (known, _)) in chosen.items() if wire not in known.speaks}
        for relay in (self.expelled(epoch) | mute) & chosen.keys():
            del chosen[relay]
        named = [(relay, *chosen[relay]) for relay in sorted(self._first_in_line(chosen))]
        # Who asks for other stamps signs another descriptor.
        return tuple((relay, known, descriptor.difficulty) for relay, known, (descriptor, _) in named)

    def _spoken_in(self, epoch: int) -> int:
        change = self._change
        return self._wire if change is None or epoch < change.epoch else change.authorities.wire

    def as_now(self) -> Roll:
        """Return it as it is now, for a `ballot` in another thread, which takes 60 ms for 18,384 relays."""
        found = copy.copy(self)
        for name in ("_descriptors", "_answers_until", "_replaced", "_digests"):
            setattr(found, name, dict(getattr(self, name)))
        return found

    async def admit(self, descriptor: Descriptor, signed: Signed, by: PublicKey | None = None) -> None:
        """Keep a descriptor as `Descriptors.admit` does; where there are too many, the last in line goes.

        `by` is the authority that brought it, if it was not the relay. Raises `Refusal` where a newer one
        came while the relay was reached, or so many that it is the last.
        """
        self._refuse_older(descriptor)
        before = self._descriptors.get(descriptor.relay)
        if before is not None and before[1] != signed:  # the relay and another directory may bring the same
            self._replaced[descriptor.relay] = self._digests[descriptor.relay], before
        if not self._has_room(descriptor.relay, by):
            raise Refusal(_FULL)
        if by is not None and before is None and descriptor.relay not in self._seats:
            self._brought[descriptor.relay] = by
        await super().admit(descriptor, signed)
        gone = self._make_room()
        if gone:
            await self.store.write(*(Change(DESCRIPTOR, relay, None) for relay in gone))
        await self._tidy()
        if descriptor.relay in gone:
            raise Refusal(_FULL)

    async def forget(self, now: float) -> None:
        """Forget descriptors that have expired, but those with a seat for a day, and who has no place.

        Of many some at a time, between which others have their turn.
        """
        more = True
        while more:
            await trio.lowlevel.checkpoint()
            more = self._forget_expired(now)
        while gone := self._make_room():
            self.store.write_soon(*(Change(DESCRIPTOR, relay, None) for relay in gone))
            await trio.lowlevel.checkpoint()
        replaced = self._replaced.items()
        self._replaced = {relay: held for relay, held in replaced if held[1][0].expires > now}
        await trio.lowlevel.checkpoint()
        await self._tidy()

    def take_back(self, now: float, latest: int, known: Iterable[Known]) -> list[Change]:
        """Forget descriptors from a time to come; return what is to be written (`_forget_early`)."""
        self._replaced.clear()
        kept = list(known)
        changes = self._forget_early(now, latest, kept)
        self._by_digest |= {descriptor_digest(signed.body): signed for _, signed in kept}
        return changes

    def _refuse_if_full(self, relay: RelayId, now: float) -> None:
        """Raise `Refusal` if so many are before a newcomer; cheap, as in a flood each asks."""
        if relay in self._seats or relay in self._descriptors:
            return
        if self._line and self._place(relay) < self._line[-1]:
            return
        self._look_again(now)
        if len(self._descriptors) >= self.most:
            raise Refusal(_FULL)

    def _look_again(self, now: float) -> None:
        if not 0 <= now - self._looked < LOOK_AGAIN:
            self._looked = now
            self._forget_expired(now)

    def _has_room(self, relay: RelayId, by: PublicKey | None) -> bool:
        """Tell whether a relay is no newcomer, is before another in line, or in its bringer's share."""
        if relay in self._seats or relay in self._descriptors:
            return True
        if by is not None:
            return list(self._brought.values()).count(by) < self._room
        return len(self._line) < self._room or self._place(relay) < self._line[-1]

    def _make_room(self) -> list[RelayId]:
        """Drop the last in line of too many, so many as one step has time for; return them, for the store."""
        gone: list[RelayId] = []
        while (
            self._line
            and len(gone) < FORGOTTEN_AT_ONCE
            and (len(self._line) > self._room or len(self._descriptors) > self.most)
        ):
            gone.append(self._line[-1][-1])
            self._drop(gone[-1])
        return gone

    def _hold(self, descriptor: Descriptor, signed: Signed) -> None:
        by = self._brought.get(descriptor.relay)
        super()._hold(descriptor, signed)
        if by is not None:
            self._brought[descriptor.relay] = by
        known = self._digests[descriptor.relay] = descriptor_digest(signed.body)
        self._by_digest[known] = signed
        if descriptor.relay not in self._seats and by is None:
            insort(self._line, self._place(descriptor.relay))

    def _drop(self, relay: RelayId) -> None:
        super()._drop(relay)
        del self._digests[relay]
        if self._brought.pop(relay, None) is None and relay not in self._seats:
            del self._line[bisect_left(self._line, self._place(relay))]

    def _place(self, relay: RelayId) -> _Place:
        """Return where a newcomer stands here."""
        return self._draw.place(relay)

    async def _drawn(self, draw: _Draw, seats: Container[RelayId]) -> list[_Place]:
        """Return the places of all that are held and have no seat, in order; of many some at a time."""
        places = []
        for number, relay in enumerate(list(self._descriptors)):
            if number % _DRAWN_AT_ONCE == 0:
                await trio.lowlevel.checkpoint()
            if relay not in seats:
                places.append(draw.place(relay))
        await trio.lowlevel.checkpoint()
        places.sort()
        await trio.lowlevel.checkpoint()
        return places

    def _newest(self, now: float) -> dict[RelayId, tuple[bytes, Known]]:
        """Return the newest descriptors that hold, each with its digest."""
        return {relay: (self._digests[relay], known) for relay, known in self._live(now).items()}

    def _first_in_line(self, relays: Collection[RelayId]) -> list[RelayId]:
        """Return those with a seat, and as many newcomers as a ballot has room for."""
        if len(relays) <= self.most:
            return list(relays)
        seated = [relay for relay in relays if relay in self._seats]
        others = [relay for relay in relays if relay not in self._seats]
        others.sort(key=self._place)
        return [*seated, *others][: self.most]

    async def _tidy(self) -> None:
        """Forget digests of what is held no more, now and then; what they name is let go some at a time."""
        if len(self._by_digest) > 2 * (len(self._descriptors) + len(self._replaced)) + 64:
            self._replaced = {
                relay: held for relay, held in self._replaced.items() if relay in self._descriptors
            }
            newest = {self._digests[relay]: signed for relay, (_, signed) in self._descriptors.items()}
            before, self._by_digest = self._by_digest, newest
            self._by_digest |= {known: signed for known, (_, signed) in self._replaced.values()}
            while before:
                for _ in range(min(len(before), _LET_GO_AT_ONCE)):
                    before.popitem()
                await trio.lowlevel.checkpoint()
