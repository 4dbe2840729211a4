"""The candidate lists of one daemon: who may be a keeper on each day, as heads tell it; in memory, on disk.

It has those of days that are open as soon as it has a head of the day, whenever it came: of a day that is cut
a relay that of its own shard. Those of other shards, and of days before it came, a relay gets when it asks
keepers as a host, and whoever publishes on a day that is cut those of its topics' shards. Authorities hear
that somebody asks for a list, and not who: each question has a circuit of its own.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection
from typing import NamedTuple

import msgspec

from hushcast_overlay.cut_rosters import count
from hushcast_overlay.rosters import RosterKeeper
from hushcast_overlay.shards.shard_keeper import FAILURES, FIRST_PAUSE, LONGEST_PAUSE
from hushcast_overlay.shards.shards import Shards
from hushcast_protocol.base.addresses import Address
from hushcast_protocol.base.backoff import Backoff
from hushcast_protocol.base.candidate_root import CandidateRoot
from hushcast_protocol.base.epochs import EPOCHS_A_DAY
from hushcast_protocol.base.errors import DecodeError
from hushcast_protocol.base.keeping_rule import MAX_DAYS_KEPT, KeepingRule
from hushcast_protocol.base.record_kinds import RecordKind, StateOwner
from hushcast_protocol.base.wire import RelayId, encode
from hushcast_protocol.overlay.keepers import RELAYS_FOR_A_KEEPER, KeeperDraws
from hushcast_protocol.shards.assignment import shard_of_topic
from hushcast_protocol.shards.candidates import CandidateList
from hushcast_runtime.context import Context
from hushcast_runtime.few_at_once import FewAtOnce
from hushcast_runtime.logs import log
from hushcast_runtime.retry import retry
from hushcast_runtime.storage.changes import Change
from hushcast_runtime.storage.recovery import number, restore, sized
from hushcast_runtime.storage.store import record_reader

# Lists of a daemon: 15 where no day is cut, of 2,000 relays at most; else some 50 kB each on disk, and 0.2 MB
# in memory. A host that seeks in more shards and days asks for some of them again.
MAX_LISTS = 128

_KIND = RecordKind(
    "candidates",
    StateOwner.OVERLAY_DAEMON,
    holds="the relays from which the keepers of a day are drawn, by shard",
    lifetime=f"as long as what is published on the day is kept, {MAX_DAYS_KEPT} days after it at most",
    bound=f"{MAX_LISTS}",
)


class _StoredList(msgspec.Struct, frozen=True, array_like=True):
    told: CandidateRoot
    candidates: CandidateList


_decode = record_reader(_StoredList, "candidate list")


class _Held(NamedTuple):
    told: CandidateRoot
    draws: KeeperDraws


class CandidateLists:
    """The lists that one daemon has."""

    def __init__(self, shards: Shards, rosters: RosterKeeper, context: Context) -> None:
        self._shards = shards
        self._rosters = rosters
        self._calendar = shards.calendar
        self._env = context.env
        self._store = context.store
        self._spawn = context.spawn
        self._held: OrderedDict[tuple[int, int], _Held] = OrderedDict()
        self._published: OrderedDict[tuple[int, int], _Held] = OrderedDict()  # of cut days, in memory alone
        self._fetched: dict[tuple[int, int], FewAtOnce] = {}
        self._begun: frozenset[CandidateRoot] = frozenset()

    async def load(self) -> None:
        """Read back what was known before a restart."""
        await restore(self._store, _KIND, self._take_up)

    def _take_up(self, key: bytes, value: bytes) -> None:
        stored = _decode(value)
        day, shard = number(sized(key, 10)[:8]), int.from_bytes(key[8:], "big")
        if {stored.told.day, stored.candidates.day} != {day} or stored.candidates.shard != shard:
            raise DecodeError("candidates are kept under another day or shard")
        self._held[day, shard] = _Held(stored.told, KeeperDraws(stored.candidates))

    def __len__(self) -> int:
        """Return how many lists are held."""
        return len(self._held)

    @property
    def keeping(self) -> KeepingRule:
        """The network's rule by the newest roster."""
        return self._rosters.keeping

    def is_kept(self, day: int) -> bool:
        """Tell whether relays keep what is published on a day: of one to come, by the rule of now."""
        if (newest := self._rosters.newest) is None:
            return False
        if newest.epoch < day * EPOCHS_A_DAY:
            return self.keeping.keepers > 0 and count(newest) >= RELAYS_FOR_A_KEEPER
        own = self._own(day)
        draws = None if own is None else self._of(*own)
        return self._rosters.candidates(day) is not None and (draws is None or len(draws) > 0)

    def keepers(self, day: int, trunk: bytes) -> Collection[RelayId]:
        """Return who keeps a trunk of an open day, of this daemon's own shard, as far as that is known."""
        if day not in self._calendar.open_days(self._env.now()):
            return ()
        own = self._own(day)
        draws = None if own is None else self._of(*own)
        return () if draws is None else draws.of(trunk)

    def held_places(self, day: int, trunk: bytes) -> dict[RelayId, Address]:
        """Return the keepers of a trunk that are there, and where: none where that is not known at once.

        It is by the lists that this daemon has whatever it subscribes to and publishes. So on a day that is
        whole nothing shows an authority when a publisher asks, or an owner.
        """
        if (own := self._own(day)) is None or shard_of_topic(trunk, 0, own[0].bits) != own[1]:
            return {}
        draws = self._of(*own)
        return {} if draws is None else self._located(draws, trunk)

    def can_place(self, day: int, trunk: bytes) -> bool:
        """Tell whether a publisher can find out who keeps a trunk of an open day."""
        if self._cut(day) is None:
            return len(self.held_places(day, trunk)) > 0
        return self.keeping.keepers > 0

    def published_places(self, day: int, trunk: bytes) -> dict[RelayId, Address] | None:
        """Return the keepers of a trunk on an open day, and where, for a publisher, as far as it is known.

        `None` on a day that is cut where `fetch_published` has not brought the list yet.
        """
        if (told := self._cut(day)) is None:
            return self.held_places(day, trunk)
        held = self._published.get((day, shard_of_topic(trunk, 0, told.bits)))
        return self._located(held.draws, trunk) if held is not None and held.told == told else None

    async def fetch_published(self, day: int, trunk: bytes) -> None:
        """Have the list of the shard of a trunk on a day that is cut, for a publisher.

        Each daemon that publishes fetches it, whatever it holds, and has it in memory until the day is over:
        so nobody is told whether it is at home there. Raises as `places`.
        """
        if (told := self._cut(day)) is None:
            return
        one = day, shard_of_topic(trunk, 0, told.bits)
        async with self._lock(one):
            held = self._published.get(one)
            if held is None or held.told != told:
                found = KeeperDraws(await self._shards.candidates(told, one[1]))
                self._published[one] = _Held(told, found)
                if len(self._published) > MAX_LISTS:
                    self._published.popitem(last=False)

    async def audited_places(self, day: int, trunk: bytes) -> dict[RelayId, Address]:
        """Return the keepers of a trunk on a day gone by, and where, for an owner; none if it is not known.

        Of a day that was cut each owner fetches the list of the topic's shard, whatever it holds, and keeps
        it for nothing: so nobody is told whether it was at home there, or was there on that day. Of one that
        was whole who was not there asks nothing, as the others need no list. Raises as `places`.
        """
        if (told := self._cut(day)) is None:
            return self.held_places(day, trunk)
        found = await self._shards.candidates(told, shard_of_topic(trunk, 0, told.bits))
        return self._located(KeeperDraws(found), trunk)

    async def places(self, day: int, trunk: bytes) -> dict[RelayId, Address] | None:
        """Return all keepers of a trunk on a day that are there, whatever shard they are in, and where.

        `None` where it is not known who they are. Those that no roster lists any more are left out where this
        relay's rosters list all. Raises `Refusal`, `TransportError` or a `PeerError`.
        """
        if (told := self._rosters.candidates(day)) is None:
            newest = self._rosters.newest
            return {} if newest is not None and newest.epoch // EPOCHS_A_DAY >= day else None
        return self._located(await self._fetch(told, shard_of_topic(trunk, 0, told.bits)), trunk)

    def _cut(self, day: int) -> CandidateRoot | None:
        """Return what heads tell of a day, if it is one that is cut."""
        told = self._rosters.candidates(day)
        return told if told is not None and told.bits else None

    def _located(self, draws: KeeperDraws, trunk: bytes) -> dict[RelayId, Address]:
        is_cut = self._shards.is_cut(self._calendar.day(self._env.now()))
        places = {}
        for keeper in draws.of(trunk):
            if (listed := self._shards.relay(keeper)) is not None:
                places[keeper] = listed.address
            elif is_cut:
                places[keeper] = draws.address(keeper)
        return places

    def _own(self, day: int) -> tuple[CandidateRoot, int] | None:
        """Return which list of a day is had unasked, if any is: its root, and its shard."""
        told = self._rosters.candidates(day)
        shard = None if told is None else self._own_shard(told)
        return None if told is None or shard is None else (told, shard)

    def _own_shard(self, told: CandidateRoot) -> int | None:
        """Return of which shard the list of a day is had unasked; `None` for a client where it is cut."""
        return 0 if told.bits == 0 else self._shards.own_number(told.day)

    def are_needed(self) -> bool:
        """Tell whether relays keep what is published, or did."""
        return bool(self.keeping.keepers or self._held)

    def begin(self) -> None:
        """Have the own lists of days that are open, and forget those of days gone by, from now on."""
        self._rosters.each(self._look)

    def _look(self) -> None:
        if self._env.is_certain():
            self._lapse()
        for day in self._calendar.open_days(self._env.now()):
            told = self._rosters.candidates(day)
            if told is not None and told not in self._begun:
                self._begun |= {told}
                self._spawn(self._have_own, day)

    async def _have_own(self, day: int) -> None:
        longest = min(LONGEST_PAUSE, self._calendar.lead)
        backoff = Backoff(FIRST_PAUSE, longest, self._env.randomness)

        async def have() -> None:
            own = self._own(day)
            if own is not None and day in self._calendar.open_days(self._env.now()):
                await self._fetch(*own)

        await retry(
            have,
            FAILURES,
            backoff,
            lambda why, pause: log.warning("it is not known who keeps", reason=why, again_in=pause),
        )

    async def _fetch(self, told: CandidateRoot, shard: int) -> KeeperDraws:
        async with self._lock((told.day, shard)):
            if (held := self._of(told, shard)) is not None:
                return held
            found = await self._shards.candidates(told, shard)
            held = self._hold(told, KeeperDraws(found), shard)
            await self._store.write(Change(_KIND, _key(told.day, shard), encode(_StoredList(told, found))))
        return held

    def _lock(self, one: tuple[int, int]) -> FewAtOnce:
        return self._fetched.setdefault(one, FewAtOnce())  # whoever wants the same waits

    def _of(self, told: CandidateRoot, shard: int) -> KeeperDraws | None:
        held = self._held.get((told.day, shard))
        if held is None or held.told != told:
            return None
        self._held.move_to_end((told.day, shard))
        return held.draws

    def _hold(self, told: CandidateRoot, draws: KeeperDraws, shard: int) -> KeeperDraws:
        self._held[told.day, shard] = _Held(told, draws)
        self._held.move_to_end((told.day, shard))
        # Whoever has this relay seek in many shards does not take from it by what it hands in and keeps.
        others = [one for one, held in self._held.items() if one[1] != self._own_shard(held.told)]
        for one in others[: max(0, len(self._held) - MAX_LISTS)]:
            self._drop(one)
        return draws

    def _lapse(self) -> None:
        """Forget those of days of which nothing is kept any more."""
        open_from = self._calendar.open_days(self._env.now()).start
        first = open_from - self.keeping.days
        for one in [one for one in self._held if one[0] < first]:
            self._drop(one)
        for one in [one for one in self._published if one[0] < open_from]:
            del self._published[one]
        self._fetched = {one: lock for one, lock in self._fetched.items() if one[0] >= first}
        self._begun = frozenset(told for told in self._begun if told.day >= first)

    def _drop(self, one: tuple[int, int]) -> None:
        del self._held[one]
        self._store.write_soon(Change(_KIND, _key(*one), None))


def _key(day: int, shard: int) -> bytes:
    return day.to_bytes(8, "big") + shard.to_bytes(2, "big")
