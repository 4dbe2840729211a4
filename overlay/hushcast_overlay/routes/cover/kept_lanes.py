"""A daemon's three lanes as it keeps them on disk: which box at which host, by which second, which keys.

There are always three, in use or not, or their number would say how much the daemon reads. A lane changes
when its second does, which follows from the lists alone, or when its host is gone for good.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import msgspec

from hushcast_protocol.base.cover_terms import QUARTER
from hushcast_protocol.base.crypto.secrets import Seed, sample
from hushcast_protocol.base.epochs import EPOCHS_A_DAY
from hushcast_protocol.base.errors import AuthenticationError, DecodeError
from hushcast_protocol.base.record_kinds import RecordKind, StateOwner
from hushcast_protocol.base.roster import Roster
from hushcast_protocol.base.wire import Bytes16, Bytes32, Counter, RelayId, encode
from hushcast_protocol.cover.cover_chain import CoverChain
from hushcast_protocol.cover.cover_frames import CoverBlocks
from hushcast_protocol.cover.cover_rules import CoverRules
from hushcast_protocol.cover.lane_box import lane_items
from hushcast_protocol.cover.lane_papers import HELD_FOR, LANE_NAME, LANE_PAPER, LaneBill, LaneErrand
from hushcast_protocol.cover.lane_seals import LaneKey, LaneKeys
from hushcast_protocol.cover.lane_seconds import LANES, LaneSeconds
from hushcast_protocol.cover.network_cover import NetworkCover
from hushcast_protocol.overlay.host_list import GONE_AFTER, KnownHost
from hushcast_runtime.context import Context
from hushcast_runtime.storage.changes import Change
from hushcast_runtime.storage.recovery import restore, sized
from hushcast_runtime.storage.store import record_reader

_KEPT_DAYS = 2  # of 24 epochs, for which lanes stay that were drawn
_BEGINS_WITHIN = 4  # rounds beyond a day, until a lane that was drawn brings blocks
_RECORD = b"lanes"
_KIND = RecordKind(
    "covered-lanes",
    StateOwner.OVERLAY_DAEMON,
    holds="the three lanes of a daemon under cover: of each the box, its host and since when no roster lists "
    "that, the second, name, keys and bill, until when they hold, whether the host was told, and of one "
    "before, and of which round a block was opened last; in which round one was drawn last, and for which "
    "porter bills are",
    lifetime="until others are drawn",
    bound="one",
)


class _StoredLane(msgspec.Struct, frozen=True, array_like=True):
    box: Bytes32
    host: RelayId
    looked: Counter
    lacking: Counter
    second: RelayId
    name: Bytes16
    host_key: Bytes32
    second_key: Bytes32
    bill: bytes
    until: Counter
    is_told: bool
    heard: Counter
    longer: Counter
    known_until: Counter = 0

    def __repr__(self) -> str:
        """Show nothing of it."""
        return "_StoredLane(...)"


class _StoredLanes(msgspec.Struct, frozen=True, array_like=True):
    quarter: Counter
    drawn: Counter
    porter: RelayId
    lanes: tuple[_StoredLane, ...]


_decode = record_reader(_StoredLanes, "lanes of a daemon under cover")


@dataclass(frozen=True, repr=False)
class Lane:
    """One lane."""

    box: Seed
    host: KnownHost
    second: RelayId
    name: bytes
    keys: LaneKeys
    bill: bytes
    """As the porter shows it to the second."""
    until: int
    """The last round for which errand and bill hold."""
    is_told: bool = False
    """Whether a letter brought the host its errand."""
    heard: int = 0
    """The last round of which a block was opened; 0: none was."""
    longer: int = 0
    """Rounds for which the bill holds longer: one for each porter that was left."""
    known_until: int = 0
    """The last round for which the host has one of before for the box; 0: it has none."""

    def is_to_be_told(self, due: int | None) -> bool:
        """Tell whether a letter to the host is to bring the errand; `due` is the round of a tree's.

        That one goes at once. If it brought the errand while the lane before is there, lanes in use would
        begin before all others in each quarter, and their seconds would know them.
        """
        return not self.is_told and (due is None or due > self.known_until)

    @property
    def errand(self) -> LaneErrand:
        """What the host is told."""
        return LaneErrand(self.second, self.name, self.keys.host, self.until)


def _until(rules: CoverRules, quarter: int) -> int:
    """Return until when lanes of a quarter hold: alike for all, so it does not tell when one was drawn.

    That is two days into the next, as long as lanes stay that were drawn at the quarter's end.
    """
    end = quarter * QUARTER + HELD_FOR
    return rules.round_at(end * EPOCHS_A_DAY * rules.epoch_seconds) - 1


class KeptLanes:
    """The lanes of one daemon."""

    def __init__(self, rules: CoverRules, context: Context) -> None:
        self.rules = rules
        """The network's."""
        self._day = rules.held_rounds
        self._env = context.env
        self._store = context.store
        self._counters = context.counters
        self._quarter = 0
        self._porter: RelayId = b""  # to whom bills were made for
        self._drawn_in = 0  # the last round in which one was drawn
        self._taken = 0  # the last round whose blocks came, in this life of the daemon
        self.lanes: list[Lane] = []
        """Three, once `follow` has returned."""

    async def load(self) -> None:
        """Read back the lanes of before a restart."""
        await restore(self._store, _KIND, self._take)

    def _take(self, key: bytes, value: bytes) -> None:
        one = _decode(value)
        if key != _RECORD or len(one.lanes) != LANES:
            raise DecodeError("a daemon has three lanes")
        self.lanes = [
            Lane(
                Seed(lane.box),
                KnownHost(lane.host, lane.looked, lane.lacking),
                lane.second,
                lane.name,
                LaneKeys(LaneKey(lane.host_key), LaneKey(lane.second_key)),
                sized(lane.bill, LANE_PAPER),
                lane.until,
                lane.is_told,
                lane.heard,
                lane.longer,
                lane.known_until,
            )
            for lane in one.lanes
        ]
        self._quarter, self._drawn_in, self._porter = one.quarter, one.drawn, one.porter

    @property
    def bills(self) -> tuple[tuple[RelayId, bytes], ...]:
        """What the porter shows to whom, in the order of the lanes."""
        return tuple((lane.second, lane.bill) for lane in self.lanes)

    async def follow(self, cover: NetworkCover, roster: Roster, chain: CoverChain) -> bool:
        """Draw lanes, or others where lists or hosts changed; return whether any is new. Durable on return.

        Nothing else changes them, and no loss does. They stay for two days at least: a porter takes new bills
        once a day, and hears of them within a day.
        """
        before, now = self.lanes, cover.rules.round_at(self._env.now())
        seconds = self._seconds(cover, chain).seconds
        hosts = self._hosts(roster, seconds, chain)
        lanes = [
            self._drawn(cover, roster, second, host, before[number] if before else None)
            for number, (second, host) in enumerate(zip(seconds, hosts, strict=True))
        ]
        if before and self._porter != chain.porter:
            lanes = [self._billed_anew(cover, roster, lane) for lane in lanes]
        is_new = [one.name for one in lanes] != [one.name for one in before]
        if lanes == before or (is_new and before and now - self._drawn_in <= _KEPT_DAYS * self._day):
            return False
        if is_new:
            self._quarter, self._drawn_in = cover.quarter, now
        self.lanes, self._porter = lanes, chain.porter
        await self._store.write(self._record())
        return is_new

    def _seconds(self, cover: NetworkCover, chain: CoverChain) -> LaneSeconds:
        draw = self._env.randomness
        if not self.lanes:
            return LaneSeconds.drawn(cover.lists, chain, cover.quarter, draw)
        kept = LaneSeconds(tuple(lane.second for lane in self.lanes), self._quarter)
        return kept.with_lists(cover.lists, chain, cover.quarter, draw)

    def _hosts(self, roster: Roster, seconds: tuple[RelayId, ...], chain: CoverChain) -> list[KnownHost]:
        """Return the hosts by a roster: another for one that rosters lack for long, or that is the second.

        None that is drawn is the porter or a lane's second, nor, where there are enough relays, has it the
        daemon's letters.
        """
        day = roster.epoch // EPOCHS_A_DAY
        looked = [lane.host.look(lane.host.relay in roster.relays, day) for lane in self.lanes]
        able = roster.relays.keys() - {chain.porter, *seconds, *(host.relay for host in looked)}
        others = able - {chain.second, chain.third}
        free = sorted(others if len(others) >= LANES else able)
        drawn = [KnownHost(relay, day) for relay in sample(self._env.randomness, free, LANES)]
        if not looked:
            return drawn
        return [
            host if host.lacking < GONE_AFTER and host.relay != second else another
            for host, second, another in zip(looked, seconds, drawn, strict=True)
        ]

    def _drawn(
        self, cover: NetworkCover, roster: Roster, second: RelayId, host: KnownHost, before: Lane | None
    ) -> Lane:
        """Return a lane, the one of before if second and host are the same and the quarter is not over."""
        is_same_host = before is not None and before.host.relay == host.relay
        if before is not None and is_same_host and before.second == second and cover.quarter == self._quarter:
            return replace(before, host=host)
        rules, draw = cover.rules, self._env.randomness
        box = before.box if before is not None and is_same_host else Seed.draw(draw)
        until = _until(rules, cover.quarter)
        keys, name = LaneKeys.drawn(draw), draw(LANE_NAME)
        errand = LaneErrand(second, name, keys.host, until)
        bill = LaneBill.drawn(rules, roster.relays[second], errand, keys.second, host.relay, draw)
        known_until = before.until if before is not None and is_same_host and before.is_told else 0
        return Lane(box, host, second, name, keys, bill.sealed, until, known_until=known_until)

    def _billed_anew(self, cover: NetworkCover, roster: Roster, lane: Lane) -> Lane:
        """Return a lane with a bill for another porter: the second takes it, as it holds for longer.

        The host hears nothing of it.
        """
        rules, second, longer = cover.rules, roster.relays[lane.second], lane.longer + 1
        errand, draw = replace(lane.errand, until=lane.until + longer), self._env.randomness
        bill = LaneBill.drawn(rules, second, errand, lane.keys.second, lane.host.relay, draw)
        return replace(lane, bill=bill.sealed, longer=longer)

    def note_told(self, name: bytes) -> None:
        """Take notice that a letter brought a host its errand; on disk with the next commit."""
        self.lanes = [replace(lane, is_told=True) if lane.name == name else lane for lane in self.lanes]
        self._store.write_soon(self._record())

    def silent_for(self, number: int) -> int | None:
        """Return for how many rounds a lane brought nothing that opens; `None`: it never brought anything."""
        heard = self.lanes[number].heard
        return max(0, self._taken - heard) if heard else None

    def heard_until(self, number: int) -> int:
        """Return the last round of which a lane's block opened; of one that is new, that it begins in."""
        heard = self.lanes[number].heard if self.lanes else 0
        return heard or self._drawn_in + self._day + _BEGINS_WITHIN

    def outlook(self, number: int) -> str:
        """Say for people what else is to be known of a lane; nothing where it brings blocks."""
        silent = self.silent_for(number) if self.lanes else None
        if silent is None:
            return "; its lane begins within a day"
        if silent > self.rules.held_rounds:
            return "; nothing came by its lane for a day: its host, or a relay between, is away or loses all"
        return ""

    def opened(self, blocks: CoverBlocks) -> list[list[bytes]]:
        """Return the items of each lane in what came for a round: its blocks are of the one before."""
        self._taken = max(self._taken, blocks.round - 1)
        found = [self._items(lane, blocks) for lane in range(len(self.lanes))]
        if any(lane.heard == blocks.round - 1 for lane in self.lanes):
            self._store.write_soon(self._record())
        return found

    def _items(self, number: int, blocks: CoverBlocks) -> list[bytes]:
        lane = self.lanes[number]
        try:
            filled = lane.keys.opened(blocks.round - 1, blocks.blocks[number])
        except AuthenticationError:
            return []  # none came in that round, or the lane is not there yet
        self.lanes[number] = replace(lane, heard=max(lane.heard, blocks.round - 1))
        self._counters.add("lane_blocks")
        try:
            return lane_items(filled)
        except DecodeError:
            return []

    def _record(self) -> Change:
        stored: Sequence[_StoredLane] = [
            _StoredLane(
                lane.box.reveal(),
                lane.host.relay,
                lane.host.looked,
                lane.host.lacking,
                lane.second,
                lane.name,
                lane.keys.host.reveal(),
                lane.keys.second.reveal(),
                lane.bill,
                lane.until,
                lane.is_told,
                lane.heard,
                lane.longer,
                lane.known_until,
            )
            for lane in self.lanes
        ]
        held = _StoredLanes(self._quarter, self._drawn_in, self._porter, tuple(stored))
        return Change(_KIND, _RECORD, encode(held))
