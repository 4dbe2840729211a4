"""Frames of cover: letters up from a daemon to its porter, second and third; lists and lanes' blocks down.

A daemon speaks to its porter over a link that does not name it; relays to each other under their names. The
sizes of what comes once a round are fixed: they say nothing of what is in it.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from hushcast_protocol.base.crypto.hashes import LABEL, Domain, digest
from hushcast_protocol.base.crypto.proof_of_work import FIRST_DIFFICULTY, ProofOfWork
from hushcast_protocol.base.wire import Bytes16, Bytes32, Counter, RelayId, Wire
from hushcast_protocol.cover.cover_rules import LETTERS_A_ROUND, PASSED_A_ROUND
from hushcast_protocol.cover.lane_papers import LANE_PAPER
from hushcast_protocol.cover.lane_seals import HOST_BLOCK
from hushcast_protocol.cover.lane_seconds import LANES
from hushcast_protocol.cover.letter_contents import CONTENT
from hushcast_protocol.cover.letters import LETTER, Stage, size_at
from hushcast_protocol.cover.receipt_list import BLOCK, LIST
from hushcast_protocol.cover.waybills import WAYBILL

BLOCKS_A_ROUND = LANES + 1  # that a daemon is handed; the last is its third's list, the others its lanes'
BLOCK_DAYS = 3  # days of 24 epochs for which a porter keeps the blocks of a daemon that is away
# Bits of a place's stamp: a place is kept for two days at least, of 576 letters each, and each letter may
# have a message dropped, which would cost its author `FIRST_DIFFICULTY` bits at a relay under load.
PLACE_DIFFICULTY = FIRST_DIFFICULTY + 11
MARKED_AT_ONCE = 64  # letters that a third opens in one step, some 10 ms

SealedWaybill = Annotated[bytes, msgspec.Meta(min_length=WAYBILL, max_length=WAYBILL)]
PorterLetter = Annotated[bytes, msgspec.Meta(min_length=LETTER, max_length=LETTER)]
_PASSED = size_at(Stage.SECOND)
PassedLetter = Annotated[bytes, msgspec.Meta(min_length=_PASSED, max_length=_PASSED)]
LetterContent = Annotated[bytes, msgspec.Meta(min_length=CONTENT, max_length=CONTENT)]
Block = Annotated[bytes, msgspec.Meta(min_length=BLOCK, max_length=BLOCK)]
LanePaper = Annotated[bytes, msgspec.Meta(min_length=LANE_PAPER, max_length=LANE_PAPER)]
HostBlock = Annotated[bytes, msgspec.Meta(min_length=HOST_BLOCK, max_length=HOST_BLOCK)]

PlaceRefusal = Literal["cover", "list", "quota", "stamp"]
"""It has no cover; the second is on no list; no place is free; the stamp is missing or does not hold."""


class CoverPlace(Wire, frozen=True, tag="cover-place"):
    """Daemon to porter, first on a link that does not name it: take me, or know me again by my place.

    The place is random, drawn with the porter, and known to these two alone. For a place that the porter
    knows the rest is passed over, and needs no stamp; a new one costs `PLACE_DIFFICULTY` bits.
    """

    place: Bytes32
    second: RelayId
    waybill: SealedWaybill
    stamp: ProofOfWork | None


class CoverPlaced(Wire, frozen=True, tag="cover-placed"):
    """The answer; nothing more is said over a link where it was `refused`."""

    refused: PlaceRefusal | None
    begins: Counter
    """The first round whose letters are passed; those that come before are thrown away."""


class CoverLetters(Wire, frozen=True, tag="cover-letters"):
    """Daemon to porter, once a round: its four letters, and from which round on it lacks blocks."""

    round: Counter
    since: Counter
    letters: Annotated[
        tuple[PorterLetter, ...], msgspec.Meta(min_length=LETTERS_A_ROUND, max_length=LETTERS_A_ROUND)
    ]


class CoverBlocks(Wire, frozen=True, tag="cover-blocks"):
    """The answer: one for each round from `since` to the one before, as far back as blocks are kept.

    The last block holds a list of the third, sealed under the waybill's key by the second in the round
    `listed`; where none came it is random, and if the second was away `listed` is the round itself. The
    others are those of the daemon's lanes, of the round before, in the order of its bills; random where
    none came, or there are no bills.
    """

    round: Counter
    listed: Counter
    blocks: Annotated[tuple[Block, ...], msgspec.Meta(min_length=BLOCKS_A_ROUND, max_length=BLOCKS_A_ROUND)]


class LanesBill(Wire, frozen=True, tag="lane"):
    """A bill, and the second to which it is shown."""

    second: RelayId
    bill: LanePaper


class CoverBills(Wire, frozen=True, tag="cover-bills"):
    """Daemon to porter, beside its letters, at most once a round: the bills of all its lanes, in use or not.

    They take the place of those of before.
    """

    bills: Annotated[tuple[LanesBill, ...], msgspec.Meta(min_length=LANES, max_length=LANES)]


class CoverWaybill(Wire, frozen=True, tag="cover-waybill"):
    """Porter to second, each day before letters name it: a daemon's waybill."""

    waybill: SealedWaybill
    stamp: ProofOfWork | None


class CoverPassed(Wire, frozen=True, tag="cover-passed"):
    """Porter to second at the end of a round: the five letters of a waybill, once each round."""

    round: Counter
    waybill: Bytes16
    letters: Annotated[
        tuple[PassedLetter, ...], msgspec.Meta(min_length=PASSED_A_ROUND, max_length=PASSED_A_ROUND)
    ]


class MarkedContent(Wire, frozen=True, tag="marked"):
    """What is in a letter, and the mark that opens it."""

    mark: Bytes32
    content: LetterContent


class CoverMarked(Wire, frozen=True, tag="cover-marked"):
    """Second to third, a while after a round: letters of all its waybills that are due in `round`."""

    round: Counter
    letters: Annotated[tuple[MarkedContent, ...], msgspec.Meta(min_length=1, max_length=MARKED_AT_ONCE)]


class CoverList(Wire, frozen=True, tag="cover-list"):
    """Third to second, once a round: its list, of this second's letters alone."""

    round: Counter
    listed: Annotated[bytes, msgspec.Meta(min_length=LIST, max_length=LIST)]


class CoverListed(Wire, frozen=True, tag="cover-listed"):
    """Second to porter, once a round for each waybill: its third's list, sealed for the daemon.

    Random bytes where none came: else a porter would see which of its daemons have a third that is away.
    """

    round: Counter
    waybill: Bytes16
    sealed: Block


class CoverBill(Wire, frozen=True, tag="cover-bill"):
    """Porter to second, once a day, each at a round of its own: a bill of one of its daemons' lanes."""

    bill: LanePaper
    stamp: ProofOfWork | None


class CoverGiven(Wire, frozen=True, tag="cover-given"):
    """Host to second, once a round for each lane, at a moment of the lane's: its block."""

    round: Counter
    lane: Bytes16
    block: HostBlock


class CoverHanded(Wire, frozen=True, tag="cover-handed"):
    """Second to porter, once a round for each bill, with its lists: the host's block, sealed once more.

    Random bytes where the host gave none.
    """

    round: Counter
    bill: Bytes16
    block: Block


assert LABEL == 16  # a waybill's name, a bill's and a lane's


def placed_in(frame: CoverPlace | CoverWaybill | CoverBill) -> bytes:
    """Return the digest (32 bytes) of what a place, waybill or bill is asked by: its stamp is bound to it."""
    if isinstance(frame, CoverBill):
        return digest(Domain.STAMP, b"cover-bill", frame.bill)
    place = frame.place + frame.second if isinstance(frame, CoverPlace) else b""
    return digest(Domain.STAMP, b"cover", place, frame.waybill)
