"""Admission control: prices and limits what strangers hand in at a relay, before any other work for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from hushcast_overlay.shards.shards import Shards
from hushcast_protocol.base.buckets import TokenBucket
from hushcast_protocol.base.crypto.proof_of_work import Load, ProofOfWorkCheck, difficulty_of, next_difficulty
from hushcast_protocol.base.errors import Refusal
from hushcast_protocol.base.wire import RelayId
from hushcast_protocol.cover.cover_frames import PLACE_DIFFICULTY, CoverPlace, placed_in
from hushcast_protocol.overlay.box_frames import Hold, Seek, held_out
from hushcast_protocol.overlay.frames import Drop, ParcelFrame, RefusalReason, handed_in
from hushcast_runtime.counters import Counters
from hushcast_runtime.environment import Environment

# Five times what a relay serves at ease (`CAPACITY`), and more than a tor on one core lets in: who is
# within the cap was let in at a price, and a burst after a quiet time is ten seconds of it.
MAX_DROPS_A_SECOND, MAX_DROPS_AT_ONCE = 100.0, 1000.0
# A parcel fans out to other relays; a hold, or a day that is sought, is as a lease in one. A subscription
# drops one at a relay, or a few, in a day.
MAX_PARCELS_A_SECOND, MAX_PARCELS_AT_ONCE = 20.0, 500.0

Declined = Literal["stamp", "quota"]
"""Why a frame is not taken."""


def counted_refusal(refusal: Refusal, counters: Counters) -> RefusalReason:
    """Count a refusal of what was to be installed; return what is said of it."""
    counters.add(f"refused_{refusal.reason}" if refusal.reason in ("day", "quota") else "refused_other")
    return refusal.reason if refusal.reason in ("day", "withdrawn") else "quota"  # type: ignore[return-value]


class AdmissionControl:
    """Admission control of one relay."""

    def __init__(
        self, relay: RelayId, shards: Shards, env: Environment, fullness: Callable[[], float]
    ) -> None:
        """`fullness` tells which share (0 to 1) of the room that lasts is taken."""
        now = env.elapsed()
        self._relay = relay
        self._shards = shards
        self._env = env
        self._fullness = fullness
        self._stamps = ProofOfWorkCheck(relay)
        self._load = Load(now)
        self._drops = TokenBucket(MAX_DROPS_A_SECOND, MAX_DROPS_AT_ONCE, now)
        self._parcels = TokenBucket(MAX_PARCELS_A_SECOND, MAX_PARCELS_AT_ONCE, now)
        self._advertised: int | None = None

    def refusal(self, frame: Drop | ParcelFrame | Hold | Seek | CoverPlace) -> Declined | None:
        """Tell why a frame is not taken, `None` if it is; one without its stamp takes no room of others.

        A place under cover costs the same whatever the load, and more than anything else.
        """
        now = self._env.elapsed()
        difficulty = self._shards.least_difficulty(self._relay)
        epoch = self._shards.calendar.epoch(self._env.now())
        if isinstance(frame, CoverPlace):
            content, difficulty = placed_in(frame), PLACE_DIFFICULTY
        else:
            content = held_out(frame) if isinstance(frame, Hold | Seek) else handed_in(frame)
        if difficulty and not self._stamps.spend(frame.stamp, content, epoch, difficulty):
            return "stamp"
        bucket = self._drops if isinstance(frame, Drop) else self._parcels
        if not bucket.take(now):
            return "quota"
        self._load.note(now)
        return None

    def difficulty(self) -> int:
        """Return the difficulty to advertise next, by the load since this was last asked, and by the room."""
        if self._advertised is None:
            listed = self._shards.relay(self._relay)
            self._advertised = listed.difficulty if listed is not None else 0
        by_load = next_difficulty(self._load.peak(self._env.elapsed()), self._advertised)
        self._advertised = max(by_load, difficulty_of(self._fullness()))
        return self._advertised
