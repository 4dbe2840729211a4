"""A second's lanes: it takes bills of porters and blocks of hosts, and hands a block down for each bill."""

from __future__ import annotations

from collections import Counter

import trio

from hushcast_overlay.relay.boxes.box_lanes import MAX_BOX_LANES
from hushcast_overlay.relay.cover.cover_means import CoverMeans
from hushcast_overlay.relay.cover.shown_papers import PaperForm, ShownPapers
from hushcast_protocol.base.errors import DecodeError, PeerError, Refusal
from hushcast_protocol.base.record_kinds import RecordKind, StateOwner
from hushcast_protocol.base.wire import RelayId
from hushcast_protocol.cover.cover_frames import CoverBill, CoverGiven, CoverHanded
from hushcast_protocol.cover.cover_rules import CoverRules
from hushcast_protocol.cover.lane_papers import LANE_PAPER, bill_name
from hushcast_protocol.cover.lane_second import MAX_BILLS, MAX_BILLS_OF_PORTER, LaneSecond
from hushcast_protocol.overlay.frame_directions import BetweenCover

_SEALED_AT_ONCE = 256  # blocks of 4 KiB that one step seals, some 5 ms
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


class LaneDesk:
    """One relay as a second of lanes."""

    def __init__(self, rules: CoverRules, means: CoverMeans) -> None:
        self._env = means.context.env
        self._counters = means.context.counters
        first = rules.round_at(self._env.now()) + 1
        self._machine = LaneSecond(rules, means.relay, means.identity.parcel_key, first)
        form = PaperForm(_BILL, LANE_PAPER, bill_name, "blocks_refused")
        self._bills = ShownPapers(form, self._machine, rules, means)
        self._came: Counter[RelayId] = Counter()  # blocks of each host since the last round

    async def load(self) -> None:
        """Read back bills, judged as when they came."""
        await self._bills.load()

    def show(self, frame: CoverBill, porter: RelayId) -> None:
        """Take a porter's bill; raises `DecodeError` where it shows more than its daemons have lanes."""
        self._bills.show(frame, frame.bill, porter, _SHOWN_A_ROUND)

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
        self._came.clear()
        frames: dict[RelayId, list[BetweenCover]] = {}
        count = 0
        for count, one in enumerate(self._machine.end_round(now, self._env.randomness), 1):
            if count % _SEALED_AT_ONCE == 0:
                await trio.lowlevel.checkpoint()
            frames.setdefault(one.porter, []).append(CoverHanded(now, one.bill, one.block))
        self._counters.add("blocks_handed", count)
        self._bills.end_round()
        return frames
