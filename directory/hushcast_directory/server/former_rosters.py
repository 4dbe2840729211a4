"""Former rosters: those that a single directory signed before it agreed with itself, and goes on from.

They are deleted once as many heads came as are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hushcast_directory.server.restoration import SIGNS_TWICE
from hushcast_protocol.base.crypto.signatures import Signed
from hushcast_protocol.base.key_handovers import KeyHandover, check_roster_by
from hushcast_protocol.base.record_kinds import RecordKind, StateOwner
from hushcast_protocol.base.roster import Network, SignedRoster, check_roster
from hushcast_protocol.base.wire import PublicKey
from hushcast_runtime.storage.changes import Change
from hushcast_runtime.storage.store import Store, record_reader

ROSTER = RecordKind(
    "roster",
    StateOwner.DIRECTORY,
    holds="rosters that it signed before it agreed with itself",
    lifetime="until as many heads came as are kept",
)
"""Their kind of record, each by its epoch."""
_decode: Callable[[bytes], Signed] = record_reader(Signed, "roster", SIGNS_TWICE)


async def last_signed(
    store: Store, network: Network, key: PublicKey, past: Sequence[KeyHandover]
) -> SignedRoster | None:
    """Return the last roster that a directory signed, `None` if there is none.

    It has this `key` now, and by `past` had others. Raises a `PeerError` for a roster that is not its own.
    """
    records = await store.scan(ROSTER)
    if not records:
        return None
    return check_roster_by(key, past, _decode(records[-1][1]), network, check_roster)


async def forgotten(store: Store) -> list[Change]:
    """Return what deletes them all."""
    return [Change(ROSTER, key, None) for key, _ in await store.scan(ROSTER)]
