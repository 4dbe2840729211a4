"""Next hops: a relay or a mailbox, as one byte of kind before its Ed25519 key.

The kinds are kept apart so that nobody can have messages sent to a mailbox by calling it a relay, without its
consent.
"""

from __future__ import annotations

from hushcast_protocol.content.hops import Hop

_RELAY, _MAILBOX = b"r", b"m"


def relay_hop(relay: bytes) -> Hop:
    """Return the hop that is a relay of the roster."""
    return Hop(_RELAY + relay)


def mailbox_hop(mailbox: bytes) -> Hop:
    """Return the hop that is a mailbox, whose consent was checked."""
    return Hop(_MAILBOX + mailbox)


def is_mailbox(hop: Hop) -> bool:
    """Tell whether a hop is a mailbox."""
    return hop[:1] == _MAILBOX


def key_of(hop: Hop) -> bytes:
    """Return the key (32 bytes) that the other end of a link must prove."""
    return hop[1:]
