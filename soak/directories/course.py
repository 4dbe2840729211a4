"""What two faulty directories of five do in each epoch of a day: every kind, and one withholds its secret."""

from __future__ import annotations

from hushcast_protocol.authorities.beacon import DRAWN, REVEALING
from hushcast_protocol.base.epochs import EPOCHS_A_DAY
from hushcast_testnet.authorities.adversary import AuthorityFault

_DAY = (
    # Commitments: the first one's is to count once, so that it can be missed later.
    (AuthorityFault.EQUIVOCATE, AuthorityFault.SELECTIVE),
    (AuthorityFault.TWO_HEADS, AuthorityFault.WITHHOLD),
    (AuthorityFault.LATE, AuthorityFault.EQUIVOCATE),
    (AuthorityFault.TWO_HEADS, AuthorityFault.STALE),
    (AuthorityFault.SELECTIVE, AuthorityFault.CRASH),
    (AuthorityFault.INVENT, AuthorityFault.TWO_HEADS),
    # Secrets: what the first one shows never fits.
    *(
        (AuthorityFault.BAD_SHARE, other)
        for other in (AuthorityFault.EQUIVOCATE, AuthorityFault.TWO_HEADS, AuthorityFault.SILENT)
    ),
    *(
        (AuthorityFault.BAD_SHARE, other)
        for other in (AuthorityFault.WITHHOLD, AuthorityFault.INVENT, AuthorityFault.BAD_SHARE)
    ),
    # The beacon is drawn, and they go on together.
    (AuthorityFault.EQUIVOCATE, AuthorityFault.EQUIVOCATE),
    (AuthorityFault.WITHHOLD, AuthorityFault.WITHHOLD),
    (AuthorityFault.SILENT, AuthorityFault.SILENT),
    (AuthorityFault.TWO_HEADS, AuthorityFault.TWO_HEADS),
    (AuthorityFault.CRASH, AuthorityFault.CRASH),
    (AuthorityFault.STALE, AuthorityFault.INVENT),
    (AuthorityFault.SELECTIVE, AuthorityFault.SELECTIVE),
    (AuthorityFault.LATE, AuthorityFault.LATE),
    (AuthorityFault.INVENT, AuthorityFault.INVENT),
    (AuthorityFault.EQUIVOCATE, AuthorityFault.WITHHOLD),
    (AuthorityFault.STALE, AuthorityFault.STALE),
    (AuthorityFault.SILENT, AuthorityFault.EQUIVOCATE),
)
assert len(_DAY) == EPOCHS_A_DAY
assert all(first is AuthorityFault.BAD_SHARE for first, _ in _DAY[REVEALING:DRAWN])


def kinds(epoch: int) -> tuple[AuthorityFault, AuthorityFault]:
    """Return what both do in an epoch."""
    return _DAY[epoch % EPOCHS_A_DAY]
