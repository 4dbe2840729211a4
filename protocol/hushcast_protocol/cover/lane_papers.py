"""What an owner writes to set up a lane: an errand for the host, a bill for the second.

The host learns the second and the lane's name, not the porter. The second learns the host and the same name;
the porter shows it the bill and cannot read it, and knows the lane by the bill alone. A lane has no word of
its daemon's other two.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import cached_property

from hushcast_protocol.base.cover_terms import QUARTER
from hushcast_protocol.base.crypto.hashes import DIGEST, LABEL, Domain, digest
from hushcast_protocol.base.crypto.sealed_box import SEALED_BOX, open_box, seal_box
from hushcast_protocol.base.crypto.secrets import ParcelKey, Randomness
from hushcast_protocol.base.errors import AuthenticationError
from hushcast_protocol.base.roster import Relay
from hushcast_protocol.base.wire import RelayId
from hushcast_protocol.cover.cover_rules import CoverRules
from hushcast_protocol.cover.lane_seals import LaneKey

LANE_NAME = LABEL  # random bytes
# Days for which errands and bills hold at most: into the next quarter, until the lanes of that have begun.
HELD_FOR = QUARTER + 2
_PAPER = struct.Struct(f">{DIGEST}s32s{LANE_NAME}s32sQ")  # what binds it, a relay, the name, a key, a round
LANE_PAPER = SEALED_BOX + _PAPER.size  # bytes of an errand or bill
_ERRAND, _BILL = b"errand", b"bill"


@dataclass(frozen=True, slots=True)
class LaneErrand:
    """Owner to host, in a letter: give a block each round to this second, under this name."""

    second: RelayId
    lane: bytes
    key: LaneKey
    until: int
    """The last round for which it holds."""

    def sealed(self, rules: CoverRules, host: Relay, randomness: Randomness) -> bytes:
        """Seal it to a host's parcel key: the third that hands it over learns the host alone."""
        inside = _PAPER.pack(
            _bond(rules, _ERRAND, host.id), self.second, self.lane, self.key.reveal(), self.until
        )
        return seal_box(host.parcel_key, inside, randomness)

    @classmethod
    def opened(cls, rules: CoverRules, host: RelayId, key: ParcelKey, sealed: bytes) -> LaneErrand:
        """Read one; raise `AuthenticationError` where it is not for this host, or no errand."""
        return cls(*_opened(_bond(rules, _ERRAND, host), key, sealed))


@dataclass(frozen=True)
class LaneBill:
    """Owner to second, shown by the porter: what this host gives under this name comes down by me."""

    sealed: bytes
    host: RelayId
    lane: bytes
    key: LaneKey
    until: int
    """The last round for which it holds."""

    @classmethod
    def drawn(
        cls,
        rules: CoverRules,
        second: Relay,
        errand: LaneErrand,
        key: LaneKey,
        host: RelayId,
        draw: Randomness,
    ) -> LaneBill:
        """Seal the bill that belongs to a host's errand to the second; `key` is the second's."""
        bond = _bond(rules, _BILL, second.id)
        inside = _PAPER.pack(bond, host, errand.lane, key.reveal(), errand.until)
        return cls(seal_box(second.parcel_key, inside, draw), host, errand.lane, key, errand.until)

    @classmethod
    def opened(cls, rules: CoverRules, second: RelayId, key: ParcelKey, sealed: bytes) -> LaneBill:
        """Read one that a porter shows; raise `AuthenticationError` where it is not for this relay."""
        return cls(sealed, *_opened(_bond(rules, _BILL, second), key, sealed))

    @cached_property
    def name(self) -> bytes:
        """16 bytes by which porter and second name it; the host does not know them."""
        return bill_name(self.sealed)


def bill_name(sealed: bytes) -> bytes:
    """Return the name of a bill, as whoever cannot read it knows it."""
    return digest(Domain.LANE, sealed, size=LABEL)


def _opened(bond: bytes, key: ParcelKey, sealed: bytes) -> tuple[RelayId, bytes, LaneKey, int]:
    plain = open_box(key.private_key(), sealed)
    if len(plain) != _PAPER.size:
        raise AuthenticationError("a paper of a lane is of another size")
    found, relay, lane, shared, until = _PAPER.unpack(plain)
    if found != bond:
        raise AuthenticationError("a paper of a lane is meant for another network, relay or use")
    return relay, lane, LaneKey(shared), until


def _bond(rules: CoverRules, use: bytes, relay: RelayId) -> bytes:
    return digest(Domain.LANE, rules.network + use, relay)
