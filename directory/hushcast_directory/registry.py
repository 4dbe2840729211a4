"""The directory's state: descriptors of relays, the rosters published, and when the next is due."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection

from hushcast_directory.descriptors import Descriptors
from hushcast_protocol.base.handovers import check_roster_by
from hushcast_protocol.base.roster import (
    GENESIS,
    MAX_RELAYS,
    Descriptor,
    Entry,
    Network,
    RosterBody,
    SignedRoster,
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
CATCH_UP = 3  # epochs after an absence of the directory in which relays may renew and none falls out

_ROSTER = "roster"
_decode_signed = record_reader(Signed, "roster")


class Registry(Descriptors):
    """Descriptors and rosters, in memory and in a store; times are arguments."""

    def __init__(self, network: Network, seed: Seed, store: Store, first_roster: int) -> None:
        """Publish the first roster once `first_roster` relays have registered."""
        super().__init__(network, seed, store)
        self._first_roster = first_roster
        self._rosters: dict[int, SignedRoster] = {}

    async def load(self) -> None:
        """Read back what was kept before a restart."""
        await super().load()
        for _, value in await self.store.scan(_ROSTER):
            key, past = self.seed.public(), self.succession.past
            roster = check_roster_by(key, past, _decode_signed(value), self.network, check_roster)
            # With the key of now, as newcomers know no other; the chain is of bodies, and stays what it is.
            signed = sign_again(self.seed, roster.signed)
            self._rosters[roster.epoch] = dataclasses.replace(roster, signed=signed)

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

    def listed(self) -> Collection[RelayId]:
        """Return whom the newest roster lists."""
        return () if self.newest is None else self.newest.relays

    def coming(self, now: float) -> int:
        """Return the epoch of the next roster."""
        return self._calendar.epoch(now) if self.newest is None else self._coming(now, self.newest)

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
        expelled = self.expelled(epoch)
        entries = tuple(
            Entry(signed, self._since(relay, epoch, last))
            for relay, (_, signed) in sorted(self._listed(epoch, last).items())
            if relay not in expelled
        )
        body = RosterBody(self.network, epoch, last.digest if last else GENESIS, entries)
        signed = sign_roster(self.seed, body)
        roster = check_roster(signed, self.seed.public(), self.network)
        # By number, not by age: if this one is for the future, its predecessors must still be there.
        old = sorted(self._rosters)[: max(0, len(self._rosters) + 1 - ROSTERS_KEPT)]
        await self.store.write(
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
        if not ahead and not self.has_early(now):
            return []
        for epoch in ahead:
            del self._rosters[epoch]
        changes = [Change(_ROSTER, _key(epoch), None) for epoch in ahead]
        known = () if self.newest is None else listed_descriptors(self.newest)
        await self.store.write(*changes, *self._forget_early(now, latest, known))
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


def _key(epoch: int) -> bytes:
    return epoch.to_bytes(8, "big")
