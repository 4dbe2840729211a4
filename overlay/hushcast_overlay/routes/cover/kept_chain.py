"""A daemon's porter, second and third as it keeps them, on disk before anybody hears of them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import msgspec

from hushcast_protocol.base.errors import DecodeError, Refusal
from hushcast_protocol.base.record_kinds import RecordKind, StateOwner
from hushcast_protocol.base.roster import Roster
from hushcast_protocol.base.wire import Bytes32, Counter, RelayId, encode
from hushcast_protocol.cover.cover_chain import CoverChain, CoverLoss
from hushcast_protocol.cover.cover_rules import RECEIPT_ROUNDS, CoverRules
from hushcast_protocol.cover.letter_contents import kept_number
from hushcast_protocol.cover.letters import LetterRelays
from hushcast_protocol.cover.loss_judge import LossRecord
from hushcast_protocol.cover.network_cover import NetworkCover
from hushcast_protocol.cover.porter_queue import SERVED_DAYS
from hushcast_protocol.cover.waybills import WAYBILL, Waybill, WaybillKey
from hushcast_runtime.context import Context
from hushcast_runtime.logs import log
from hushcast_runtime.storage.changes import Change
from hushcast_runtime.storage.recovery import restore, sized
from hushcast_runtime.storage.store import record_reader

_PLACE = 32  # bytes
_RECORD = b"chain"
_KIND = RecordKind(
    "cover-chain",
    StateOwner.OVERLAY_DAEMON,
    holds="the three relays of a daemon under cover, since when it has them, its place at the first, its "
    "waybill with the key, the round in which letters begin, the first whose blocks it lacks, since when "
    "the first is away, how many rounds had no list, when relays were left for a loss, how many rounds "
    "were lost, and the numbers of letters that are to be listed",
    lifetime="until others are drawn",
    bound="one",
)


class _StoredLosses(msgspec.Struct, frozen=True, array_like=True):
    score: float = 0.0
    is_alarmed: bool = False
    lost: Counter = 0
    outage: Counter = 0
    forgiven: Counter = 0
    under_way: tuple[tuple[bytes, Counter], ...] = ()
    rounds: tuple[tuple[Counter, Counter, Counter], ...] = ()
    long: tuple[Counter, ...] = ()
    first: Counter = 0
    is_long: bool = False
    to_be_done: tuple[tuple[bytes, Counter], ...] = ()
    hours: tuple[tuple[Counter, Counter, Counter], ...] = ()

    @classmethod
    def of(cls, record: LossRecord) -> _StoredLosses:
        rounds, hours = (
            tuple((due, *counts) for due, counts in kept.items()) for kept in (record.rounds, record.hours)
        )
        under_way, to_be_done = tuple(record.under_way.items()), tuple(record.to_be_done.items())
        numbers = record.lost, record.outage, record.forgiven
        run = record.first, record.is_long
        losses = cls(record.score, record.is_alarmed, *numbers, under_way, rounds, record.long, *run)
        return msgspec.structs.replace(losses, to_be_done=to_be_done, hours=hours)

    def __repr__(self) -> str:
        """Show nothing of it."""
        return "_StoredLosses(...)"

    def record(self) -> LossRecord:
        under_way, to_be_done = (
            {kept_number(number): due for number, due in kept} for kept in (self.under_way, self.to_be_done)
        )
        rounds, hours = (
            {due: (came, lost) for due, came, lost in kept} for kept in (self.rounds, self.hours)
        )
        numbers = self.lost, self.outage, self.forgiven
        run = self.first, self.is_long
        losses = LossRecord(self.score, self.is_alarmed, *numbers, self.long, under_way, rounds, *run)
        return replace(losses, to_be_done=to_be_done, hours=hours)


class _StoredChain(msgspec.Struct, frozen=True, array_like=True):
    porter: RelayId
    second: RelayId
    third: RelayId
    quarter: Counter
    porter_since: float
    pair_since: float
    place: Bytes32
    waybill: bytes
    key: Bytes32
    begins: int
    since: Counter
    away_since: float | None
    handed_in: Counter
    without_list: Counter
    porter_lost: float = 0.0
    pair_lost: float = 0.0
    losses: _StoredLosses = _StoredLosses()

    def __repr__(self) -> str:
        """Show nothing of it."""
        return "_StoredChain(...)"

    @property
    def chain(self) -> CoverChain:
        since, lost = (self.porter_since, self.pair_since), (self.porter_lost, self.pair_lost)
        return CoverChain(self.porter, self.second, self.third, self.quarter, *since, *lost)


_decode = record_reader(_StoredChain, "chain of a daemon under cover")


@dataclass(repr=False)
class _Held:
    """A chain, and how far its daemon has come with it."""

    chain: CoverChain
    place: bytes
    waybill: Waybill
    begins: int | None = None
    """The first round whose letters the porter passes; `None`: it has not taken the daemon."""
    since: int = 0
    """The first round whose blocks are lacking."""
    handed_in: int = 0
    """The last round whose letters were handed in: it has no second set, though the daemon start anew."""
    without_list: int = 0
    """Rounds whose letters were handed in since a list came last."""
    losses: LossRecord = field(default_factory=LossRecord)
    """What it lost, for its judge."""


class KeptChain:
    """The chain of one daemon."""

    def __init__(self, context: Context) -> None:
        self._env = context.env
        self._store = context.store
        self._counters = context.counters
        self._held: _Held | None = None
        self._away_since: float | None = None

    async def load(self) -> None:
        """Read back the chain of before a restart."""
        await restore(self._store, _KIND, self._take)

    def _take(self, key: bytes, value: bytes) -> None:
        one = _decode(value)
        if key != _RECORD:
            raise DecodeError("a daemon has one chain")
        waybill = Waybill(sized(one.waybill, WAYBILL), one.third, WaybillKey(one.key))
        begins = None if one.begins < 0 else one.begins
        place = sized(one.place, _PLACE)
        rounds = begins, one.since, one.handed_in, one.without_list
        self._held = _Held(one.chain, place, waybill, *rounds, one.losses.record())
        self._away_since = one.away_since

    @property
    def held(self) -> _Held:
        """What is held; there is something once `follow` has returned."""
        assert self._held is not None
        return self._held

    @property
    def handed_in(self) -> int:
        """The last round whose letters were handed in; 0: none yet."""
        return 0 if self._held is None else self._held.handed_in

    def note_handed_in(self, number: int) -> None:
        """Take notice of a round's letters; on disk with the next commit."""
        self.held.handed_in = number
        self.held.without_list += 1
        self._store.write_soon(self._record())

    def note_judged(self) -> None:
        """Take notice of a round that was judged; on disk with the next commit."""
        self._store.write_soon(self._record())

    def note_listed(self) -> None:
        """Take notice of a list of receipts."""
        self.held.without_list = 0

    def has_no_lists(self, rules: CoverRules) -> bool:
        """Tell whether no list came for a day of rounds that were handed in, and as long as a receipt takes.

        Not by what the porter says of when letters begin: it could put that off again and again. An honest
        one begins within a day.
        """
        held = self._held
        return held is not None and held.without_list > rules.held_rounds + RECEIPT_ROUNDS

    @property
    def losses(self) -> LossRecord:
        """What is known of the chain's losses, for its judge to go on with."""
        return LossRecord() if self._held is None else self._held.losses

    @property
    def begins(self) -> int | None:
        """The first round whose letters are passed; `None` until the porter has taken the daemon."""
        return None if self._held is None else self._held.begins

    async def follow(self, cover: NetworkCover, roster: Roster, loss: CoverLoss) -> bool:
        """Draw a first chain, or another where the rules say so; return whether it did. Durable on return.

        Until they do it stays, whether or not its relays are there.
        """
        now, draw, held = self._env.now(), self._env.randomness, self._held
        if held is None:
            # Who has not taken the daemon yet is no porter that was changed: the month counts from then.
            drawn = CoverChain.drawn(roster.relays, cover.lists, cover.quarter, now, draw)
            chain = replace(drawn, porter_since=0.0)
        else:
            chain = held.chain.with_lists(cover.lists, cover.quarter, now, loss, draw)
            # No second: it may be that of a lane, and know its host and its daemon.
            able = roster.relays.keys() - cover.lists.seconds
            chain = chain.with_porter(able or roster.relays, self._away_since, now, loss, draw)
            if chain == held.chain:
                return False
            self._counters.add("cover_chains_changed")
            log.info("another porter, second or third is drawn for cover")
        if held is None or chain.porter != held.chain.porter:
            chain, self._away_since = replace(chain, porter_since=0.0), None
        waybill = Waybill.drawn(cover.rules, roster.relays[chain.second], chain.third, draw)
        self._held = _Held(chain, draw(_PLACE), waybill, handed_in=self.handed_in)
        await self._store.write(self._record())
        return True

    def relays(self, roster: Roster) -> LetterRelays:
        """Return the relays with their keys; raise `Refusal` where one is not listed."""
        chain = self.held.chain
        found = [roster.relays.get(one) for one in (chain.porter, chain.second, chain.third)]
        porter, second, third = found
        if porter is None:
            self.note_away()
            raise Refusal("its porter is not listed: another is drawn in time")
        if second is None or third is None:
            raise Refusal("its second or third is not listed: others are drawn in time")
        return LetterRelays(porter, second, third, self.held.waybill)

    def is_passed(self, number: int) -> bool:
        """Tell whether the porter passes the letters of a round."""
        return self.held.begins is not None and number >= self.held.begins

    def note_placed(self, begins: int, number: int, rules: CoverRules) -> int:
        """Take notice that the porter has the daemon, whose next round has this number.

        Returns the first round whose letters it passes. One that passed letters has said so before, and is
        held to it until the daemon was away for days: if it puts letters off, it loses those of the rounds
        between, and is judged for it.
        """
        held = self.held
        if held.begins is not None and held.begins <= number <= held.handed_in + rules.rounds_in(SERVED_DAYS):
            return held.begins
        if held.begins is None:
            held.since = number
            if not held.chain.porter_since:
                held.chain = replace(held.chain, porter_since=self._env.now())
        held.begins = begins
        return begins

    def note_read(self, number: int) -> None:
        """Take notice of the blocks of a round, and of a porter that is there."""
        self.held.since = number + 1
        self._away_since = None

    def note_away(self) -> None:
        """Take notice that the porter does not answer, or refuses the daemon."""
        if self._away_since is None:
            self._away_since = self._env.now()

    def forgive(self) -> None:
        """Take notice that nobody answers: it is not the porter's doing."""
        self._away_since = None

    @property
    def is_away(self) -> bool:
        """Whether the porter did not answer, or refused, when it was last asked."""
        return self._away_since is not None

    def _record(self) -> Change:
        held = self.held
        chain = held.chain
        stored = _StoredChain(
            chain.porter,
            chain.second,
            chain.third,
            chain.quarter,
            chain.porter_since,
            chain.pair_since,
            held.place,
            held.waybill.sealed,
            held.waybill.key.reveal(),
            -1 if held.begins is None else held.begins,
            held.since,
            self._away_since,
            held.handed_in,
            held.without_list,
            chain.porter_lost,
            chain.pair_lost,
            _StoredLosses.of(held.losses),
        )
        return Change(_KIND, _RECORD, encode(stored))
