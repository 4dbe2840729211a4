"""What two faulty directories of five do in each epoch of a day: every kind, and one withholds its secret."""

from __future__ import annotations

from hushcast_protocol.authorities.beacon import DRAWN, REVEALING
from hushcast_protocol.base.epochs import EPOCHS_A_DAY
from hushcast_testnet.authorities.adversary import Fault

_DAY = (
    # Commitments: the first one's is to count once, so that it can be missed later.
    (Fault.EQUIVOCATE, Fault.SELECTIVE),
    (Fault.TWO_HEADS, Fault.WITHHOLD),
    (Fault.LATE, Fault.EQUIVOCATE),
    (Fault.TWO_HEADS, Fault.STALE),
    (Fault.SELECTIVE, Fault.CRASH),
    (Fault.INVENT, Fault.TWO_HEADS),
    # Secrets: what the first one shows never fits.
    *((Fault.BAD_SHARE, other) for other in (Fault.EQUIVOCATE, Fault.TWO_HEADS, Fault.SILENT)),
    *((Fault.BAD_SHARE, other) for other in (Fault.WITHHOLD, Fault.INVENT, Fault.BAD_SHARE)),
    # The beacon is drawn, and they go on together.
    (Fault.EQUIVOCATE, Fault.EQUIVOCATE),
    (Fault.WITHHOLD, Fault.WITHHOLD),
    (Fault.SILENT, Fault.SILENT),
    (Fault.TWO_HEADS, Fault.TWO_HEADS),
    (Fault.CRASH, Fault.CRASH),
    (Fault.STALE, Fault.INVENT),
    (Fault.SELECTIVE, Fault.SELECTIVE),
    (Fault.LATE, Fault.LATE),
    (Fault.INVENT, Fault.INVENT),
    (Fault.EQUIVOCATE, Fault.WITHHOLD),
    (Fault.STALE, Fault.STALE),
    (Fault.SILENT, Fault.EQUIVOCATE),
)
assert len(_DAY) == EPOCHS_A_DAY
assert all(first is Fault.BAD_SHARE for first, _ in _DAY[REVEALING:DRAWN])


def kinds(epoch: int) -> tuple[Fault, Fault]:
    """Return what both do in an epoch."""
    return _DAY[epoch % EPOCHS_A_DAY]
