"""Next hops: a relay, a host, a box or a keeper, as one byte of kind before its Ed25519 key.

The kinds are kept apart because a relay that is a tree's next relay is gone around, where a host is waited
for, and so that nobody gets at another's box by calling it a relay. `m` was a mailbox: no other kind has it.
"""

from __future__ import annotations

from collections.abc import Iterable

from hushcast_protocol.content.hops import Hop

_RELAY, _HOST, _BOX, _KEEPER = b"r", b"h", b"b", b"k"


def relay_hop(relay: bytes) -> Hop:
    """Return the hop that is a relay of the roster."""
    return Hop(_RELAY + relay)


def host_hop(relay: bytes) -> Hop:
    """Return the hop that is a relay of the roster, as the host of a box."""
    return Hop(_HOST + relay)


def box_hop(box: bytes) -> Hop:
    """Return the hop that is a box of this relay's own, which is a host: its owner opens the links."""
    return Hop(_BOX + box)


def keeper_hop(relay: bytes) -> Hop:
    """Return the hop that is a relay of the roster, as a keeper: what waits for it is handed in there."""
    return Hop(_KEEPER + relay)


def is_host(hop: Hop) -> bool:
    """Tell whether a hop is a host."""
    return hop[:1] == _HOST


def is_keeper(hop: Hop) -> bool:
    """Tell whether a hop is a keeper."""
    return hop[:1] == _KEEPER


def waits(hop: Hop) -> bool:
    """Tell whether messages wait for a hop however long it is away: nobody else has what it is for."""
    return hop[:1] in (_HOST, _KEEPER)


def is_box(hop: Hop) -> bool:
    """Tell whether a hop is a box."""
    return hop[:1] == _BOX


def boxes_among(hops: Iterable[Hop]) -> tuple[Hop, ...]:
    """Return those of some hops that are boxes."""
    return tuple([hop for hop in hops if hop[:1] == _BOX])


def key_of(hop: Hop) -> bytes:
    """Return the key (32 bytes) that the other end of a link must prove."""
    return hop[1:]
