"""What relays and daemons ask a directory, and its answers: one of a single directory, or one of several.

Of a network that is cut into shards they ask parts as they ask relays (`shards/shard_requests.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import msgspec

from hushcast_protocol.authorities.chain import MAX_TURNS
from hushcast_protocol.authorities.heads import MAX_CERTIFIED, CertifiedHead
from hushcast_protocol.authorities.listing import MAX_WAITING, WaitingRelay
from hushcast_protocol.authorities.name_work import NameWork
from hushcast_protocol.base.crypto.signatures import Signed
from hushcast_protocol.base.key_handovers import MAX_HANDOVERS
from hushcast_protocol.base.roster import MAX_RELAYS, MAX_ROSTER, RosterEntry
from hushcast_protocol.base.wire import Bytes32, Counter, Wire, decoder
from hushcast_protocol.shards.candidates import MAX_CANDIDATES
from hushcast_protocol.shards.shard_requests import (
    MAX_SHARD_ANSWER,
    MAX_SHARD_REQUEST,
    PartAnswer,
    PartRequest,
)

WAITING = 44  # bytes of a relay that waits
MAX_DIRECTORY_REQUEST = 1024  # bytes; a descriptor has about 300, work about 70
# bytes: what a roster has, those that wait, the heads by which the newest is followed, and 4 KiB
MAX_DIRECTORY_ANSWER = MAX_ROSTER + MAX_WAITING * WAITING + (MAX_TURNS + 2) * MAX_CERTIFIED + 4096
assert MAX_SHARD_REQUEST <= MAX_DIRECTORY_REQUEST
assert max(MAX_SHARD_ANSWER, MAX_CANDIDATES + 1024) <= MAX_DIRECTORY_ANSWER


class RegisterRelay(Wire, frozen=True, tag="register"):
    """A relay's signed descriptor, for the rosters to come."""

    descriptor: Signed
    work: NameWork | None = None
    """Where newcomers are asked for it; a relay shows it each time."""


class RelayRegistered(Wire, frozen=True, tag="registered"):
    """The directory has reached the relay at its address, and holds its descriptor."""


class Fetch(Wire, frozen=True, tag="fetch"):
    """Ask for the first roster after an epoch, or for the newest."""

    after: Counter | None


class Rosters(Wire, frozen=True, tag="rosters"):
    """Answer of a directory of an earlier version, which signs rosters itself: the one asked for, or none.

    `more` tells that later ones exist. Daemons read it; a directory of now answers with heads.
    """

    roster: Signed | None
    more: bool


class KeySuccession(Wire, frozen=True, tag="handed-over"):
    """Instead of a roster, for who knows a former key of the directory: how it came to the one of now."""

    handovers: Annotated[tuple[Signed, ...], msgspec.Meta(min_length=1, max_length=MAX_HANDOVERS)]


class HeadAnswer(Wire, frozen=True, tag="agreed/2"):
    """An authority's answer: a head and the relays that it stands for, or nothing if there is none."""

    heads: Annotated[tuple[CertifiedHead, ...], msgspec.Meta(max_length=MAX_TURNS + 2)]
    """The last is the head; before it those that announced other authorities since what was asked.

    If the last two are of one epoch, they show a fork, and no relays come with them.
    """
    seats: Annotated[tuple[RosterEntry, ...], msgspec.Meta(max_length=MAX_RELAYS)]
    """In ascending order of relays, as in the listing that the head stands for; none on a day of shards."""
    waiting: Annotated[tuple[WaitingRelay, ...], msgspec.Meta(max_length=MAX_WAITING)]
    """Relays without a seat, as in that listing; none on a day of shards."""
    more: bool
    """Later heads exist."""
    shards: Bytes32 | None
    """`Listing.shards_digest`, without which the relays do not lead to the head's root; `None`: no shards."""


class DirectoryRefusal(Wire, frozen=True, tag="refused"):
    """The directory declines, and why."""

    reason: Annotated[str, msgspec.Meta(max_length=256, pattern=r"^[ -~]*\Z")]


DirectoryRequest = RegisterRelay | Fetch | PartRequest
DirectoryAnswer = RelayRegistered | Rosters | KeySuccession | HeadAnswer | DirectoryRefusal | PartAnswer

decode_directory_request: Callable[[bytes], DirectoryRequest] = decoder(
    DirectoryRequest, "request", MAX_DIRECTORY_REQUEST
)
decode_directory_answer: Callable[[bytes], DirectoryAnswer] = decoder(
    DirectoryAnswer, "answer", MAX_DIRECTORY_ANSWER
)
