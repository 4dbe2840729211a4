"""The candidate lists of one daemon: of each day of which something is kept, by whom, on disk.

Who was not there when a day began does not know whom the others draw from, and takes no part in it.
"""

from __future__ import annotations

from collections.abc import Collection

from hushcast_overlay.rosters import RosterKeeper
from hushcast_overlay.shards.shards import Shards
from hushcast_protocol.base.epochs import EPOCHS_A_DAY
from hushcast_protocol.base.errors import DecodeError
from hushcast_protocol.base.keeping_rule import MAX_DAYS_KEPT, KeepingRule
from hushcast_protocol.base.record_kinds import RecordKind, StateOwner
from hushcast_protocol.base.wire import RelayId, decoder, encode
from hushcast_protocol.overlay.keepers import MAX_CANDIDATES, Candidates, KeeperDraws, of_shard, of_whole_day
from hushcast_runtime.context import Context
from hushcast_runtime.storage.recovery import number, restore
from hushcast_runtime.storage.store import Change

_KIND = RecordKind(
    "candidates",
    StateOwner.OVERLAY_DAEMON,
    holds="the relays from which the keepers of a day are drawn",
    lifetime=f"as long as what is published on the day is kept, {MAX_DAYS_KEPT} days after it at most",
)
_decode = decoder(Candidates, "candidate list", MAX_CANDIDATES)


class CandidateLists:
    """The candidates of days that are open, or kept, as far as this daemon knows them."""

    def __init__(self, shards: Shards, rosters: RosterKeeper, context: Context) -> None:
        self._shards = shards
        self._rosters = rosters
        self._calendar = shards.calendar
        self._env = context.env
        self._store = context.store
        self._draws: dict[int, KeeperDraws] = {}

    async def load(self) -> None:
        """Read back what was known before a restart."""
        await restore(self._store, _KIND, self._take_up)

    def _take_up(self, key: bytes, value: bytes) -> None:
        candidates = _decode(value)
        if candidates.day != number(key):
            raise DecodeError("candidates are kept under another day")
        self._draws[candidates.day] = KeeperDraws(candidates)

    def __len__(self) -> int:
        """Return of how many days they are known."""
        return len(self._draws)

    @property
    def keeping(self) -> KeepingRule:
        """The network's rule by the newest roster."""
        return self._rosters.keeping

    def keepers(self, day: int, trunk: bytes) -> Collection[RelayId]:
        """Return the keepers of a trunk on a day: none by the rule, or where nothing is known."""
        draws = self._of(day)
        return () if draws is None else draws.of(trunk)

    def shown_by(self, day: int, trunk: bytes) -> Collection[RelayId]:
        """Return the keepers that a host asks: on a day that is cut, those of its own shard."""
        if self._shards.is_cut(day) and self._shards.of(day, trunk) is not self._shards.own(day):
            return ()
        return self.keepers(day, trunk)

    def look(self) -> None:
        """Learn who the candidates of open days are while rosters show it."""
        for day in self._calendar.open_days(self._env.now()):
            self._of(day)

    def lapse(self) -> None:
        """Forget those of days of which nothing is kept any more; whoever calls is certain that they are."""
        first = self._calendar.open_days(self._env.now()).start - self.keeping.days
        for day in [day for day in self._draws if day < first]:
            del self._draws[day]
            self._store.write_soon(Change(_KIND, _key(day), None))

    def _of(self, day: int) -> KeeperDraws | None:
        if (draws := self._draws.get(day)) is not None:
            return draws
        if day not in self._calendar.open_days(self._env.now()):
            return None
        if (candidates := self._found(day)) is None:
            return None
        draws = self._draws[day] = KeeperDraws(candidates)
        self._store.write_soon(Change(_KIND, _key(day), encode(candidates)))
        return draws

    def _found(self, day: int) -> Candidates | None:
        if not self._shards.is_cut(day):
            return of_whole_day(day, self._rosters.rosters())
        roster, home = self._rosters.of_day(day), self._shards.home(day)
        if roster is None or roster.epoch < day * EPOCHS_A_DAY or home is None:
            return None  # the rule may be another one from the day's first roster on
        if not roster.keeping.keepers:
            return None
        sharding, shard, seated = home
        return of_shard(day, sharding, shard, seated, roster.keeping)


def _key(day: int) -> bytes:
    return day.to_bytes(8, "big")
