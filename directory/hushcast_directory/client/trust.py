"""Trust: the key by which a daemon knows the directory, pinned in its configuration, and what followed it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hushcast_protocol.base.crypto.signatures import Signed
from hushcast_protocol.base.errors import PeerError
from hushcast_protocol.base.key_handovers import (
    MAX_HANDOVERS,
    CheckRoster,
    KeyHandover,
    check_handover,
    check_roster_by,
    following,
)
from hushcast_protocol.base.record_kinds import RecordKind, StateOwner
from hushcast_protocol.base.roster import Network, SignedRoster
from hushcast_protocol.base.wire import PublicKey, encode
from hushcast_runtime.logs import log
from hushcast_runtime.storage.changes import Change
from hushcast_runtime.storage.store import Store, damaged, record_reader

_KIND = RecordKind(
    "handover",
    StateOwner.OVERLAY_DAEMON,
    holds="how the directory handed over from key to key",
    lifetime="for ever",
    bound=f"the last {MAX_HANDOVERS}",
)
_WITHOUT = "without it this daemon might follow a key that the directory gave up; "
_decode_signed = record_reader(Signed, "hand-over", _WITHOUT)
Also = Callable[[Sequence[KeyHandover]], Sequence[Change]]
"""What is to be written with hand-overs that are followed."""


class DirectoryKeyChanged(PeerError):
    """The one directory that is known has another key by now."""

    def __init__(self, handovers: Sequence[Signed]) -> None:
        super().__init__("the directory has another key")
        self.handovers = handovers


class Trust:
    """The directory's key of now, and the hand-overs that led to it."""

    def __init__(self, network: Network, pinned: PublicKey) -> None:
        self._network = network
        self._pinned = pinned
        self._signed: list[Signed] = []
        self._past: list[KeyHandover] = []
        self.key = pinned
        """Which the directory proves, and signs rosters with."""

    async def load(self, store: Store) -> None:
        """Read back the hand-overs that were seen; those that lead from or to the pinned key count.

        Raises `StoreError` where they are damaged: the pinned key may be one that was given up.
        """
        signed = [_decode_signed(value) for _, value in await store.scan(_KIND)]
        if not signed:
            return
        try:
            past = following(check_handover(signed[0], self._network).old, signed, self._network)
        except PeerError:
            raise damaged("hand-over", _WITHOUT) from None
        if self._pinned in {past[0].old, *(handover.new for handover in past)}:
            self._signed, self._past, self.key = signed, past, past[-1].new

    async def take(self, signed: Sequence[Signed], store: Store, also: Also = lambda _: ()) -> None:
        """Follow hand-overs from the key of now, durably on return; raise a `PeerError` if any is not one.

        What `also` makes of them is written with them.
        """
        handovers = following(self.key, signed, self._network)
        others = also(handovers)
        stored = await store.scan(_KIND)
        self._signed = [*self._signed, *signed][-MAX_HANDOVERS:]
        self._past = [*self._past, *handovers][-MAX_HANDOVERS:]
        fresh = {number.to_bytes(8, "big"): encode(one) for number, one in enumerate(self._signed)}
        await store.write(
            *(Change(_KIND, key, None) for key, _ in stored if key not in fresh),
            *(Change(_KIND, key, value) for key, value in fresh.items()),
            *others,
        )
        self.key = handovers[-1].new
        log.info("the directory handed over to a new key", count=len(self._past))

    def check(self, signed: Signed, check: CheckRoster) -> SignedRoster:
        """Return a checked roster of this directory; raises as `check_roster` does."""
        return check_roster_by(self.key, self._past, signed, self._network, check)
