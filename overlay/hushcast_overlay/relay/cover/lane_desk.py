"""A second's lanes: it takes bills of porters and blocks of hosts, and hands a block down for each bill."""

from __future__ import annotations

from collections import Counter
from typing import Annotated

import msgspec
import trio

from hushcast_overlay.relay.boxes.box_lanes import MAX_BOX_LANES
from hushcast_overlay.relay.cover.cover_means import CoverMeans
from hushcast_protocol.base.crypto.hashes import LABEL
from hushcast_protocol.base.crypto.proof_of_work import ProofOfWorkCheck, inside
from hushcast_protocol.base.errors import DecodeError, PeerError, Refusal
from hushcast_protocol.base.record_kinds import RecordKind, StateOwner
from hushcast_protocol.base.wire import RelayId, encode
from hushcast_protocol.cover.cover_frames import CoverBill, CoverGiven, CoverHanded, placed_in
from hushcast_protocol.cover.cover_rules import CoverRules
from hushcast_protocol.cover.lane_papers import LANE_PAPER, bill_name
from hushcast_protocol.cover.lane_second import MAX_BILLS, MAX_BILLS_OF_PORTER, LaneSecond
from hushcast_protocol.overlay.frame_directions import BetweenCover
from hushcast_runtime.storage.recovery import restore, sized
from hushcast_runtime.storage.store import Change, record_reader

_SEALED_AT_ONCE = 256  # blocks of 4 KiB that one step seals, some 5 ms
_READ_AT_ONCE = 64  # bills that one step of a start opens, some 10 ms
# Bills of one porter in a round: each once, and again after a restart. Those that do not open cost, too.
_SHOWN_A_ROUND = 2 * MAX_BILLS_OF_PORTER
# Blocks of one host in a round: each of its lanes may have this second, and so may those of the next round.
_GIVEN_A_ROUND = 2 * MAX_BOX_LANES

_BILL = RecordKind(
    "cover-bill",
    StateOwner.RELAY,
    holds="bills of lanes that porters have shown it as a second, sealed as they came, and by which porter",
    lifetime="until its last round, within 93 days, or nobody has shown it for two days",
    bound=f"{MAX_BILLS:,}, 2.6 MB",
)


class _KeptBill(msgspec.Struct, frozen=True, array_like=True):
    porter: RelayId
    sealed: Annotated[bytes, msgspec.Meta(min_length=LANE_PAPER, max_length=LANE_PAPER)]


_decode = record_reader(_KeptBill, "bill")


class LaneDesk:
    """One relay as a second of lanes."""

    def __init__(self, rules: CoverRules, means: CoverMeans) -> None:
        self._means = means
        self._rules = rules
        self._env = means.context.env
        self._store = means.context.store
        self._counters = means.context.counters
        self._stamps = ProofOfWorkCheck(means.relay)
        self._machine = LaneSecond(rules, means.relay, means.identity.parcel_key, self._now + 1)
        self._kept: set[bytes] = set()  # names of the bills on disk
        self._shows: Counter[RelayId] = Counter()  # of each porter since the last round
        self._came: Counter[RelayId] = Counter()  # blocks of each host since the last round

    @property
    def _now(self) -> int:
        return self._rules.round_at(self._env.now())

    async def load(self) -> None:
        """Read back bills, judged as when they came."""
        await restore(self._store, _BILL, self._take_up, at_once=_READ_AT_ONCE)

    def _take_up(self, key: bytes, value: bytes) -> None:
        kept = _decode(value)
        if bill_name(kept.sealed) != sized(key, LABEL):
            raise DecodeError("a bill is kept under another's name")
        try:
            self._machine.show(kept.sealed, self._now, kept.porter)
        except Refusal:  # it holds no more
            self._store.write_soon(Change(_BILL, key, None))
        else:
            self._kept.add(key)

    def show(self, frame: CoverBill, porter: RelayId) -> None:
        """Take a porter's bill; a new one is paid for where this relay asks for stamps. Durable soon.

        Raises `DecodeError` where a porter shows more than its daemons have lanes.
        """
        self._shows[porter] += 1
        if self._shows[porter] > _SHOWN_A_ROUND:
            raise DecodeError("a porter shows more bills than its daemons have lanes")
        name = bill_name(frame.bill)
        asked = inside(self._means.shards.least_price(self._means.relay), 1)
        epoch = self._means.shards.calendar.epoch(self._env.now())
        if name not in self._kept and not self._stamps.spend(frame.stamp, placed_in(frame), epoch, asked):
            self._counters.add("refused_stamp")
            return
        try:
            is_new = self._machine.show(frame.bill, self._now, porter)
        except Refusal:
            self._counters.add("refused_quota")
        except PeerError:  # its daemon's doing: the porter cannot read it
            self._counters.add("blocks_refused")
        else:
            if is_new:
                self._kept.add(name)
                self._store.write_soon(Change(_BILL, name, encode(_KeptBill(porter, frame.bill))))

    def take(self, frame: CoverGiven, host: RelayId) -> None:
        """Take the block of a host's lane and round.

        Raises `DecodeError` where a host gives more than it has lanes. That nobody has shown a bill for it,
        that it is late, or an owner has two boxes given by one lane, is no fault of a host.
        """
        self._came[host] += 1
        if self._came[host] > _GIVEN_A_ROUND:
            raise DecodeError("a host gives more blocks than it has lanes")
        try:
            self._machine.take(frame.lane, frame.round, frame.block, host)
        except (PeerError, Refusal):
            self._counters.add("blocks_refused")

    async def hand_down(self, now: int) -> dict[RelayId, list[BetweenCover]]:
        """Return what each porter is handed in a round: a block for each bill, its host there or not."""
        self._shows.clear()
        self._came.clear()
        frames: dict[RelayId, list[BetweenCover]] = {}
        count = 0
        for count, one in enumerate(self._machine.end_round(now, self._env.randomness), 1):
            if count % _SEALED_AT_ONCE == 0:
                await trio.lowlevel.checkpoint()
            frames.setdefault(one.porter, []).append(CoverHanded(now, one.bill, one.block))
        self._counters.add("blocks_handed", count)
        gone = self._kept.difference(self._machine.names())
        self._kept -= gone
        self._store.write_soon(*[Change(_BILL, name, None) for name in gone])
        return frames
