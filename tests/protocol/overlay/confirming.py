"""Trees whose relays answer parcels, some silent, some lying: what a subscriber counts, and what was done."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from core_examples import EPOCH, NETWORK, descriptor_of, parcel_key, relay_id, stream

from hushcast_protocol.base.crypto.hashes import Domain, digest
from hushcast_protocol.base.roster import GENESIS, Relay, Roster
from hushcast_protocol.base.wire import RelayId
from hushcast_protocol.overlay.confirmations import confirm, heard, room
from hushcast_protocol.overlay.installations import SealedBranch, seal_down
from hushcast_protocol.overlay.leases import Withdraw
from hushcast_protocol.overlay.parcels import Parcel, open_parcel
from hushcast_protocol.overlay.tree import plan

RELAYS = [relay_id(number) for number in range(14)]
NUMBERS = {relay: number for number, relay in enumerate(RELAYS)}
TREE = plan(RELAYS, 3, b"s" * 32)
HONEST, SILENT, LYING = range(3)
Pick = Callable[[int], int]
"""Returns a number below the one it is given."""


@cache
def sealed(number: int) -> dict[RelayId, SealedBranch]:
    """The branches of one telling of the tree; another number is another installation, day or attempt."""
    relays = {}
    for relay, place in NUMBERS.items():
        listed = descriptor_of(place)
        relays[relay] = Relay(relay, listed.address, listed.parcel_key, EPOCH)
    roster = Roster(NETWORK, EPOCH, GENESIS, bytes(32), relays)
    instructions = dict.fromkeys(RELAYS, Withdraw(bytes([number]) * 16))
    return seal_down(TREE, instructions, roster, EPOCH, stream(number))


@cache
def opened(relay: RelayId, sealed: bytes) -> Parcel:
    """What a relay finds in its parcel, which is the same each time."""
    return open_parcel(sealed, parcel_key(NUMBERS[relay]), NETWORK.id, relay, EPOCH)


class Telling:
    """One telling of the tree, from the parcels at the top to what the subscriber counts."""

    def __init__(
        self,
        number: int,
        manner: dict[RelayId, int],
        pick: Pick,
        known: tuple[bytes, ...] = (),
        begin: Callable[[], object] = lambda: None,
    ) -> None:
        """`manner` says how relays behave that are not honest, `known` what liars know from before.

        `begin` is called before each lie.
        """
        self.opened: dict[RelayId, Parcel] = {}
        self.said: dict[RelayId, tuple[bytes, ...]] = {}
        self.known = [bytes(16), *known]  # to liars, who tell each other
        self._manner = manner
        self._pick = pick
        self._begin = begin
        self._draw = stream(1000 + number)
        self.confirmed = set[RelayId]()
        for top, branch in sealed(number).items():
            self.confirmed |= branch.confirmed(self._answer(top, branch.sealed))

    def _answer(self, relay: RelayId, sealed: bytes) -> tuple[bytes, ...]:
        manner = self._manner.get(relay, HONEST)
        if manner == SILENT:
            return ()
        parcel = opened(relay, sealed)
        self.opened[relay] = parcel
        below: list[bytes] = []
        for onward in parcel.onward:
            if manner == HONEST or self._pick(4):
                below += heard(self._answer(onward.relay, onward.sealed), len(onward.sealed))
        honest = confirm(parcel.word, below, len(sealed), self._draw)
        if manner == HONEST:
            assert len(honest) == room(len(sealed)), "the number of confirmations tells something"
            assert list(honest) == sorted(set(honest))
            self.said[relay] = honest
            return honest
        self._begin()
        self.known += [parcel.word, digest(Domain.CONFIRMATION, key=parcel.word, size=16), *below, *honest]
        said = [self.known[self._pick(len(self.known))] for _ in range(self._pick(room(len(sealed)) + 3))]
        said += [digest(Domain.CONFIRMATION, one, key=parcel.word, size=16) for one in said if self._pick(2)]
        self.said[relay] = tuple(said)
        return self.said[relay]


def play(pick: Pick, begin: Callable[[], object] = lambda: None) -> None:
    """Tell a tree twice, with liars who remember; check what the subscriber counts each time."""
    manner = {relay: (HONEST, HONEST, SILENT, LYING)[pick(4)] for relay in RELAYS}
    known: tuple[bytes, ...] = ()
    for number in range(2):
        telling = Telling(number, manner, pick, known, begin)
        known = tuple(telling.known)
        assert telling.confirmed <= telling.opened.keys(), "a relay that never got its parcel is counted"
        for relay in RELAYS:
            if all(manner[above] == HONEST for above in TREE.way(relay)):
                assert relay in telling.confirmed, "an honest relay is not counted"
