"""The directory's state: descriptors of relays, the rosters published, and when the next is due."""

from __future__ import annotations

import dataclasses

from hushcast_directory.succession import Succession, load_succession
from hushcast_protocol.base.epochs import Calendar
from hushcast_protocol.base.errors import Refusal
from hushcast_protocol.base.handovers import check_roster_by
from hushcast_protocol.base.roster import (
    GENESIS,
    MAX_RELAYS,
    Descriptor,
    Entry,
    Network,
    RosterBody,
    SignedRoster,
    check_descriptor,
    check_roster,
    listed_descriptors,
    sign_again,
    sign_roster,
)
from hushcast_protocol.base.secrets import Seed
from hushcast_protocol.base.signatures import Signed
from hushcast_protocol.base.wire import RelayId, encode
from hushcast_runtime.store import Change, Store, record_reader

ROSTERS_KEPT = 48  # two days of them: a daemon away for longer starts with the newest
MAX_VALIDITY = 4  # epochs that a descriptor may hold; relays sign a new one each epoch
CATCH_UP = 3  # epochs after an absence of the directory in which relays may renew and none falls out
MAX_AHEAD = 300  # seconds that a relay's clock may be ahead of ours

_DESCRIPTOR, _ROSTER = "descriptor", "roster"
_decode_signed = record_reader(Signed, "descriptor or roster")


class Registry:
    """Descriptors and rosters, in memory and in a store; times are arguments."""

    def __init__(self, network: Network, seed: Seed, store: Store, first_roster: int) -> None:
        """Publish the first roster once `first_roster` relays have registered."""
        self._network = network
        self._calendar = network.calendar
        self._seed = seed
        self._store = store
        self._first_roster = first_roster
        self._descriptors: dict[RelayId, tuple[Descriptor, Signed]] = {}
        self._rosters: dict[int, SignedRoster] = {}
        self._answers_until: dict[RelayId, float] = {}
        self._allowed: frozenset[RelayId] | None = None
        self.succession = Succession()
        """The keys that the directory had before."""

    async def load(self) -> None:
        """Read back what was kept before a restart."""
        self.succession = await load_succession(self._store, self._network, self._seed.public())
        for _, value in await self._store.scan(_DESCRIPTOR):
            signed = _decode_signed(value)
            descriptor = check_descriptor(signed, self._network)
            self._descriptors[descriptor.relay] = (descriptor, signed)
        for _, value in await self._store.scan(_ROSTER):
            key, past = self._seed.public(), self.succession.past
            roster = check_roster_by(key, past, _decode_signed(value), self._network, check_roster)
            # With the key of now, as newcomers know no other; the chain is of bodies, and stays what it is.
            signed = sign_again(self._seed, roster.signed)
            self._rosters[roster.epoch] = dataclasses.replace(roster, signed=signed)

    @property
    def calendar(self) -> Calendar:
        """The network's epochs."""
        return self._calendar

    def confine(self, names: frozenset[RelayId] | None) -> None:
        """List none but these relays from the next roster on; `None`: all that are reached."""
        self._allowed = names

    @property
    def newest(self) -> SignedRoster | None:
        """The roster published last."""
        return self._rosters[max(self._rosters)] if self._rosters else None

    def after(self, epoch: int | None) -> tuple[SignedRoster | None, bool]:
        """Return the first roster after an epoch, or the newest; and whether there are later ones."""
        newest = self.newest
        if epoch is None or newest is None:
            return newest, False
        later = sorted(known for known in self._rosters if known > epoch)
        return (self._rosters[later[0]], len(later) > 1) if later else (None, False)

    def examine(self, signed: Signed, now: float) -> Descriptor:
        """Check a descriptor that a relay hands in; raise a `PeerError`, or `Refusal` with the reason."""
        descriptor = check_descriptor(signed, self._network)
        if self._allowed is not None and descriptor.relay not in self._allowed:
            raise Refusal("the network is closed: have whoever runs its directory list this relay's name")
        if descriptor.expires <= now:
            raise Refusal("the descriptor has expired: check the relay's clock")
        if descriptor.issued > now + MAX_AHEAD:
            raise Refusal("the descriptor was issued in the future: check the relay's clock")
        if descriptor.expires - now > MAX_VALIDITY * self._network.epoch_seconds + MAX_AHEAD:
            raise Refusal("the descriptor holds for too long")
        known = self._descriptors.get(descriptor.relay)
        if known is not None and known[0].issued > descriptor.issued:
            raise Refusal("a newer descriptor of this relay is known")
        live = self._live(now)
        if descriptor.relay not in live and len(live) >= MAX_RELAYS:
            raise Refusal(f"the network is full: it has {MAX_RELAYS} relays")
        return descriptor

    def lists(self, relay: RelayId) -> bool:
        """Tell whether the newest roster lists a relay."""
        return self.newest is not None and relay in self.newest.relays

    def holds(self, relay: RelayId, signed: Signed) -> bool:
        """Tell whether a descriptor is just the one held of its relay."""
        return relay in self._descriptors and self._descriptors[relay][1] == signed

    async def admit(self, descriptor: Descriptor, signed: Signed) -> None:
        """Keep a descriptor whose relay was reached; durable on return.

        Whoever was at its address before is not there any more: one address is one relay.
        """
        gone = [
            relay
            for relay, (held, _) in self._descriptors.items()
            if held.address == descriptor.address and relay != descriptor.relay
        ]
        for relay in gone:
            del self._descriptors[relay]
        self._descriptors[descriptor.relay] = (descriptor, signed)
        await self._store.write(
            Change(_DESCRIPTOR, descriptor.relay, encode(signed)),
            *(Change(_DESCRIPTOR, relay, None) for relay in gone),
        )

    def lapsing(self, now: float) -> list[Descriptor]:
        """Return the descriptors of listed relays that the roster due next would leave out as lapsed."""
        last = self.newest
        if last is None:
            return []
        live = self._live(self._calendar.epoch_start(self._coming(now, last)))
        known = self._descriptors
        return [known[relay][0] for relay in last.relays if relay in known and relay not in live]

    def carry(self, relay: RelayId, now: float) -> None:
        """List a relay in the next roster as well: it could not renew, but answers at its address."""
        assert self.newest is not None
        self._answers_until[relay] = self._calendar.epoch_start(self._coming(now, self.newest)) + 1

    def _coming(self, now: float, last: SignedRoster) -> int:
        # After a time away the roster of the running epoch, else of the coming one.
        return max(last.epoch + 1, self._calendar.epoch(now + self._calendar.lead))

    def due(self, now: float) -> float | None:
        """Return when the next roster is to be published (perhaps now), `None` while too few registered."""
        newest = self.newest
        if newest is not None:
            return self._calendar.epoch_start(newest.epoch + 1) - self._calendar.lead
        return now if len(self._live(now)) >= self._first_roster else None

    async def publish(self, now: float) -> SignedRoster:
        """Sign the roster of the epoch that follows, or, the first time, of this one; durable on return."""
        last = self.newest
        epoch = self._calendar.epoch(now) if last is None else self._coming(now, last)
        entries = tuple(
            Entry(signed, self._since(relay, epoch, last))
            for relay, (_, signed) in sorted(self._listed(epoch, last).items())
        )
        body = RosterBody(self._network, epoch, last.digest if last else GENESIS, entries)
        signed = sign_roster(self._seed, body)
        roster = check_roster(signed, self._seed.public(), self._network)
        # By number, not by age: if this one is for the future, its predecessors must still be there.
        old = sorted(self._rosters)[: max(0, len(self._rosters) + 1 - ROSTERS_KEPT)]
        await self._store.write(
            Change(_ROSTER, _key(epoch), encode(signed)), *(Change(_ROSTER, _key(e), None) for e in old)
        )
        self._rosters[epoch] = roster
        for known in old:
            del self._rosters[known]
        self._forget_expired(now)
        return roster

    def has_leapt(self, now: float) -> bool:
        """Tell whether there are rosters for the past and the future, but none for about now."""
        epoch = self._calendar.epoch(now + self._calendar.lead)
        held = self._rosters
        return any(known < epoch for known in held) and {epoch, epoch + 1}.isdisjoint(held)

    async def take_back(self, now: float) -> list[int]:
        """Revoke rosters for the future, signed while the clock was wrong; return their epochs.

        No daemon whose clock is right has taken one. The chain goes on after the last remaining roster, with
        the relays of that one. Descriptors for the future are deleted as well: they would stay valid until
        then, and their relays could not renew. Call it only if `now` is certain: otherwise the chain forks.
        """
        latest = self._calendar.epoch(now + self._calendar.lead) + 1
        ahead = [epoch for epoch in self._rosters if epoch > latest]
        early = [relay for relay, (held, _) in self._descriptors.items() if held.issued > now + MAX_AHEAD]
        if not ahead and not early:
            return []
        for epoch in ahead:
            del self._rosters[epoch]
        for relay in early:
            del self._descriptors[relay]
        end = self._calendar.epoch_start(latest + 1)
        self._answers_until = {relay: until for relay, until in self._answers_until.items() if until < end}
        changes = [Change(_ROSTER, _key(epoch), None) for epoch in ahead]
        changes += [Change(_DESCRIPTOR, relay, None) for relay in early]
        for signed in listed_descriptors(self.newest) if self.newest is not None else ():
            descriptor = check_descriptor(signed, self._network)
            if descriptor.relay not in self._descriptors:
                self._descriptors[descriptor.relay] = (descriptor, signed)
                changes.append(Change(_DESCRIPTOR, descriptor.relay, encode(signed)))
        await self._store.write(*changes)
        return ahead

    @staticmethod
    def _since(relay: RelayId, epoch: int, last: SignedRoster | None) -> int:
        if last is None or relay not in last.relays:
            return epoch
        return last.relays[relay].since

    def _listed(self, epoch: int, last: SignedRoster | None) -> dict[RelayId, tuple[Descriptor, Signed]]:
        start = self._calendar.epoch_start(epoch)
        # More can be live than a roster holds: several may have taken the last place at once.
        latest = sorted(self._live(start).items(), key=lambda item: item[1][0].expires)[-MAX_RELAYS:]
        listed = dict(latest)
        if last is None:
            return listed
        # So many relays do not fall silent at once: the directory was cut off. Or it knows that it was away.
        # In both cases relays could not renew, and stay listed until they had time to.
        if self._was_away(epoch) or 2 * len(listed.keys() & last.relays.keys()) < len(last.relays):
            carried = self._live(start - self._calendar.day_seconds)
            for relay in last.relays:
                if relay in carried and len(listed) < MAX_RELAYS:
                    listed[relay] = carried[relay]
        return listed

    def _was_away(self, epoch: int) -> bool:
        """Tell whether one of the rosters just before an epoch was never published."""
        first = max(min(self._rosters), epoch - CATCH_UP)
        return any(known not in self._rosters for known in range(first, epoch))

    def _live(self, now: float) -> dict[RelayId, tuple[Descriptor, Signed]]:
        until, allowed = self._answers_until, self._allowed
        return {
            relay: held
            for relay, held in self._descriptors.items()
            if max(held[0].expires, until.get(relay, 0)) > now and (allowed is None or relay in allowed)
        }

    def _forget_expired(self, now: float) -> None:
        self._answers_until = {relay: end for relay, end in self._answers_until.items() if end > now}
        expired = self._descriptors.keys() - self._live(now).keys()
        if self.newest is not None:  # whom it lists may have to be carried on for a day
            expired -= self._live(now - self._calendar.day_seconds).keys() & self.newest.relays.keys()
        for relay in sorted(expired):
            del self._descriptors[relay]
        self._store.write_soon(*(Change(_DESCRIPTOR, relay, None) for relay in sorted(expired)))


def _key(epoch: int) -> bytes:
    return epoch.to_bytes(8, "big")
