"""The exchange: before an epoch authorities tell each other which descriptors they hold, and give some.

A relay registers with all of them; this is for whoever was away, or was not reached. What comes is no more
than a hint: an authority checks each descriptor and reaches the relay itself before it lists it. All that one
authority can make another hold or send is counted by sender, so that none takes what the others need.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Annotated

import msgspec

from hushcast_protocol.authorities.ballots import MAX_LISTED
from hushcast_protocol.authorities.frames import MAX_PEER_FRAME, AuthorityFrame
from hushcast_protocol.base.crypto.signatures import Signed
from hushcast_protocol.base.roster import MAX_DESCRIPTOR, descriptor_digest
from hushcast_protocol.base.wire import Bytes16, Counter, PublicKey, RelayId, Wire, decoder

MAX_HAVE = 1000  # descriptors named in one frame: 62 kB; all of them take 19 frames
MAX_BATCH = 256  # descriptors asked for, and given, in one frame: 150 kB
MAX_GATHERED = MAX_LISTED  # descriptors an epoch that are asked of one authority
MAX_GIVEN = 2 * MAX_LISTED  # descriptors an epoch that one authority is given: a link may break once

HeldDescriptor = tuple[RelayId, Bytes16, Counter]
"""A relay, the digest of its newest descriptor, and when that was issued (Unix seconds)."""


class HaveDescriptors(Wire, frozen=True, tag="have"):
    """Which descriptors one holds: all of them when the exchange begins, later those that came since."""

    held: Annotated[tuple[HeldDescriptor, ...], msgspec.Meta(max_length=MAX_HAVE)]


class AskDescriptors(Wire, frozen=True, tag="ask-descriptors"):
    """Ask for descriptors by their digests."""

    digests: Annotated[tuple[Bytes16, ...], msgspec.Meta(min_length=1, max_length=MAX_BATCH)]


class DescriptorBatch(Wire, frozen=True, tag="descriptors"):
    """Those that were asked for and are held, as their relays signed them."""

    descriptors: Annotated[tuple[Signed, ...], msgspec.Meta(max_length=MAX_BATCH)]


ExchangeFrame = HaveDescriptors | AskDescriptors | DescriptorBatch
PeerFrame = AuthorityFrame | ExchangeFrame
"""All that authorities say to each other."""

decode_peer_frame: Callable[[bytes], PeerFrame] = decoder(
    PeerFrame, "frame between authorities", MAX_PEER_FRAME
)
assert max(MAX_HAVE * 64, MAX_BATCH * (MAX_DESCRIPTOR + 80)) < MAX_PEER_FRAME


class DescriptorExchange:
    """What was asked of whom, and given to whom, since the last exchange began."""

    def __init__(self) -> None:
        self._asked: dict[PublicKey, set[bytes]] = {}
        self._counts: dict[PublicKey, int] = {}
        self._given: dict[PublicKey, int] = {}

    def begin(self) -> None:
        """Begin another exchange."""
        self._asked, self._counts, self._given = {}, {}, {}

    def heard(
        self, sender: PublicKey, have: HaveDescriptors, issued: Callable[[RelayId], int | None]
    ) -> list[AskDescriptors]:
        """Return what to ask whoever has newer descriptors; `issued` tells when the own of a relay was."""
        newer = [known for relay, known, when in have.held if (own := issued(relay)) is None or own < when]
        return self.ask(sender, newer)

    def ask(self, whom: PublicKey, digests: Iterable[bytes]) -> list[AskDescriptors]:
        """Return what to ask an authority, each digest once while it is not given, and so many in all."""
        waiting = self._asked.setdefault(whom, set())
        room = MAX_GATHERED - self._counts.get(whom, 0)
        fresh = [known for known in dict.fromkeys(digests) if known not in waiting][: max(0, room)]
        self._counts[whom] = self._counts.get(whom, 0) + len(fresh)
        waiting.update(fresh)
        return [
            AskDescriptors(tuple(fresh[first : first + MAX_BATCH]))
            for first in range(0, len(fresh), MAX_BATCH)
        ]

    def asked(
        self, sender: PublicKey, question: AskDescriptors, find: Callable[[bytes], Signed | None]
    ) -> DescriptorBatch | None:
        """Return what one gives to who asks; `None` if nothing is held, or it was given often enough."""
        found = [signed for known in question.digests if (signed := find(known)) is not None]
        given = self._given.get(sender, 0)
        if not found or given + len(found) > MAX_GIVEN:
            return None
        self._given[sender] = given + len(found)
        return DescriptorBatch(tuple(found))

    def given(self, sender: PublicKey, frame: DescriptorBatch) -> list[tuple[bytes, Signed]]:
        """Return what this authority was asked for in this exchange, each with its digest, and once.

        `DecodeError` where something is no descriptor.
        """
        waiting = self._asked.get(sender, set())
        fresh = {descriptor_digest(signed.body): signed for signed in frame.descriptors}
        wanted = [(known, signed) for known, signed in fresh.items() if known in waiting]
        waiting.difference_update(known for known, _ in wanted)
        return wanted


def shown(held: Iterable[HeldDescriptor]) -> list[HaveDescriptors]:
    """Return the frames that tell which descriptors one holds."""
    all_held = tuple(held)
    return [
        HaveDescriptors(all_held[first : first + MAX_HAVE]) for first in range(0, len(all_held), MAX_HAVE)
    ]
