"""Cost: the bytes that a client fetches for one topic and day, counted by encoding what it would fetch."""

from __future__ import annotations

from dataclasses import dataclass

from hushcast_protocol.base.addresses import onion_address
from hushcast_protocol.base.crypto.signatures import Signed
from hushcast_protocol.base.epochs import EPOCHS_A_DAY
from hushcast_protocol.base.roster import Descriptor, RosterEntry
from hushcast_protocol.base.wire import encode
from hushcast_protocol.shards.guides import GUIDES, PIECE_BITS, Guide, Piece, piece_bits
from hushcast_protocol.shards.slices import Leaf, Slice

_KEY, _TIME, _PATH = bytes(range(1, 33)), 1_800_000_000, 34  # bytes of a hash as msgpack has it


@dataclass(frozen=True)
class TopicDay:
    """What one topic costs a client on one day: `fixed` and, for each relay of its shard, `a_relay` bytes."""

    fixed: int
    a_relay: int

    def bytes(self, relays: float) -> float:
        """Return the bytes with a shard of so many relays."""
        return self.fixed + self.a_relay * relays


def topic_day(bits: int) -> TopicDay:
    """Return the cost with 2^`bits` shards: a slice, 24 leaves, a piece of the guide, and their paths."""
    empty = len(encode(Slice(_KEY, _TIME, 0, ()))) + EPOCHS_A_DAY * len(encode(Leaf(_TIME, 0, _KEY, b"")))
    guide = Guide(_KEY, onion_address(_KEY), _KEY[:16])
    guides = ((guide,) * GUIDES,) * min(2**PIECE_BITS, 2**bits)
    piece = len(encode(Piece(_TIME, 0, guides)))
    paths = _PATH * (EPOCHS_A_DAY * bits + piece_bits(bits))
    return TopicDay(empty + piece + paths, len(encode(_entry())) + EPOCHS_A_DAY)


def _entry() -> RosterEntry:
    address = onion_address(_KEY)
    descriptor = Descriptor(_KEY, _KEY, address, _KEY, _TIME, _TIME, 0)
    return RosterEntry(Signed(encode(descriptor), bytes(64)), _TIME)
