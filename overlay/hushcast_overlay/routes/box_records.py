"""A route's box as it lies in the store."""

from __future__ import annotations

import msgspec

from hushcast_overlay.routes.route_box import AtHost, RouteBox
from hushcast_protocol.base.addresses import parse_address
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.errors import DecodeError
from hushcast_protocol.base.record_kinds import RecordKind, StateOwner
from hushcast_protocol.base.wire import Bytes32, Counter, RelayId, encode
from hushcast_protocol.overlay.host_list import GONE_AFTER, HOSTS, HostList, KnownHost
from hushcast_runtime.storage.changes import Change
from hushcast_runtime.storage.recovery import restore, sized
from hushcast_runtime.storage.store import Store, record_reader

_KEPT_BOX = RecordKind(
    "owned-box",
    StateOwner.OVERLAY_DAEMON,
    holds="boxes that relays keep for this daemon: the key, the hosts in order, since when the first is "
    "away, where each is reached, what it may hold and has confirmed, when the daemon was there last, from "
    "when on it is asked for what came late, how many messages gave way there, from which day on and "
    "up to which it asks keepers, from which day on it was found to lack messages, from which day on all "
    "was asked for, and whether it is to be forgotten",
    lifetime="until unsubscribed and its hosts have heard, or the last day for which it was used has lapsed",
)
_RENEWAL = 0.375  # of every box: moments are drawn anew each day, and the place in the record stays
_NAME = 16  # bytes of the name of what is wanted


class _StoredHost(msgspec.Struct, frozen=True, array_like=True):
    relay: RelayId
    looked: Counter
    lacking: Counter


class _StoredStanding(msgspec.Struct, frozen=True, array_like=True):
    relay: RelayId
    held: int
    gave_way: Counter
    has_forgotten: bool
    address: str | None = None
    confirmed: int = -1
    due: float = 0.0
    seen: int = -1
    sought: int = -1
    since: int = -1
    lacking: int = -1


class _StoredBox(msgspec.Struct, frozen=True, array_like=True):
    seed: Bytes32
    renewal: float  # shares of a day before its end at which versions before install the next one
    hosts: list[_StoredHost]
    in_use: Counter
    away_since: float | None
    at: list[_StoredStanding]
    is_ended: bool
    whole_from: Counter | None = None


_decode_box = record_reader(_StoredBox, "box of a route")


def kept_box(name: bytes, box: RouteBox) -> Change:
    """Return the record of a box, for what is wanted under a name."""
    hosts = box.hosts
    stored = _StoredBox(
        box.seed.reveal(),
        _RENEWAL,
        [_StoredHost(host.relay, host.looked, host.lacking) for host in hosts.hosts],
        hosts.in_use,
        hosts.away_since,
        [_stored_standing(relay, known) for relay, known in box.at.items()],
        box.is_ended,
        box.whole_from,
    )
    return Change(_KEPT_BOX, name + box.key, encode(stored))


def _stored_standing(relay: RelayId, known: AtHost) -> _StoredStanding:
    told = (known.held, known.gave_way, known.has_forgotten, known.address, known.confirmed, known.due)
    return _StoredStanding(relay, *told, known.seen, known.sought, known.since, known.lacking)


def deleted_box(name: bytes, box: RouteBox) -> Change:
    """Return what deletes the record of a box."""
    return Change(_KEPT_BOX, name + box.key, None)


async def load_boxes(store: Store) -> list[tuple[bytes, RouteBox]]:
    """Return the boxes kept, each with the name of what is wanted, or was."""
    found: list[tuple[bytes, RouteBox]] = []

    def take(key: bytes, value: bytes) -> None:
        stored = _decode_box(value)
        if not 1 <= len(stored.hosts) <= HOSTS or stored.in_use >= len(stored.hosts):
            raise DecodeError("a box has no hosts, or too many")
        if any(host.lacking > GONE_AFTER for host in stored.hosts):
            raise DecodeError("a box has a host that should be gone")
        hosts = tuple([KnownHost(host.relay, host.looked, host.lacking) for host in stored.hosts])
        box = RouteBox(Seed(stored.seed), HostList(hosts, stored.in_use, stored.away_since))
        box.is_ended, box.whole_from = stored.is_ended, stored.whole_from
        for one in stored.at:
            address = parse_address(one.address) if one.address is not None else None
            known = AtHost(one.held, one.confirmed, one.seen, one.gave_way)
            known.has_forgotten, known.address, known.due = one.has_forgotten, address, one.due
            known.sought, known.since, known.lacking = one.sought, one.since, one.lacking
            box.at[one.relay] = known
        name = sized(key, _NAME + len(box.key))[:_NAME]
        if key != name + box.key:
            raise DecodeError("a box is kept under another's name")
        found.append((name, box))

    await restore(store, _KEPT_BOX, take)
    return found
