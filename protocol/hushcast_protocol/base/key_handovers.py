"""Hand-overs: a directory's old key signs the next one, for the daemons that know the old one alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress

from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.crypto.signatures import SignaturePurpose, Signed, check, sign
from hushcast_protocol.base.errors import AuthenticationError, DecodeError
from hushcast_protocol.base.roster import Network, SignedRoster
from hushcast_protocol.base.wire import Bytes32, Counter, PublicKey, Wire, decoder

MAX_HANDOVERS = 16  # that a directory keeps: one a year for longer than keys should be pinned
MAX_HANDOVER = 256  # bytes; ours have some 130

CheckRoster = Callable[[Signed, PublicKey, Network], SignedRoster]


class KeyHandover(Wire, frozen=True, tag="handover/1"):
    """What the old key signs: rosters from `epoch` on are signed with the new key alone."""

    network: Bytes32
    old: PublicKey
    new: PublicKey
    epoch: Counter


_decode: Callable[[bytes], KeyHandover] = decoder(KeyHandover, "hand-over", MAX_HANDOVER)


def sign_handover(seed: Seed, handover: KeyHandover) -> Signed:
    """Sign a hand-over with the directory's old seed."""
    return sign(seed, SignaturePurpose.HANDOVER, handover)


def check_handover(signed: Signed, network: Network) -> KeyHandover:
    """Return a hand-over of this network if its old key signed it; `DecodeError`, `AuthenticationError`."""
    handover = _decode(signed.body)
    if handover.network != network.id:
        raise DecodeError("a hand-over is of another network")
    check(handover.old, SignaturePurpose.HANDOVER, signed.body, signed.signature)
    return handover


def following(key: PublicKey, signed: Sequence[Signed], network: Network) -> list[KeyHandover]:
    """Return the hand-overs that lead on from a key; raise a `PeerError` if any does not follow."""
    handovers = []
    for one in signed:
        handover = check_handover(one, network)
        if handover.old != key:
            raise AuthenticationError("a hand-over is not from the key that is known")
        handovers.append(handover)
        key = handover.new
    return handovers


def check_roster_by(
    key: PublicKey, past: Sequence[KeyHandover], signed: Signed, network: Network, check: CheckRoster
) -> SignedRoster:
    """Return a roster signed with the key of now, or with an earlier one for an epoch that was its own.

    Raises as `check_roster` does.
    """
    try:
        return check(signed, key, network)
    except AuthenticationError:
        for handover in reversed(past):
            with suppress(AuthenticationError):
                roster = check(signed, handover.old, network)
                if roster.epoch < handover.epoch:
                    return roster
        raise
