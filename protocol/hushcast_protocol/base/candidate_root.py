"""Candidate roots: what a head says of who may be a keeper on a day."""

from __future__ import annotations

from typing import Annotated

import msgspec

from hushcast_protocol.base.keeping_rule import MAX_DAYS_KEPT
from hushcast_protocol.base.shard_count import MAX_BITS
from hushcast_protocol.base.wire import Bytes32, Counter, Wire

MAX_ROOTS = MAX_DAYS_KEPT + 1  # days of which a head tells: its own, and those of which something is kept


class CandidateRoot(Wire, frozen=True, tag="candidate-root"):
    """Stands for the candidate lists of a day, one of each shard."""

    day: Counter
    bits: Annotated[int, msgspec.Meta(ge=0, le=MAX_BITS)]
    """k for 2^k lists; 0: one, of all relays."""
    root: Bytes32
    """Of the tree over the digests of the lists; of one list its digest."""


CandidateRoots = Annotated[tuple[CandidateRoot, ...], msgspec.Meta(max_length=MAX_ROOTS)]
"""In ascending order of days. A day on which by the network's rule nobody keeps is missing."""
