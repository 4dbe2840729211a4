"""The source of a daemon's rosters, whether one directory signs them or several agree on them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

from hushcast_protocol.authorities.head_inside import Beacon
from hushcast_protocol.authorities.name_work import NameWork
from hushcast_protocol.authorities.seat_admission import SeatAdmission
from hushcast_protocol.base.crypto.signatures import Signed
from hushcast_protocol.base.roster import Roster
from hushcast_protocol.base.versions.network_wire import NetworkWire
from hushcast_protocol.base.wire import RelayId
from hushcast_protocol.shards.shard_requests import PartAnswer, PartRequest
from hushcast_runtime.storage.changes import Change


class FetchedRoster(NamedTuple):
    """A roster whose signatures were checked, if there is one as asked for."""

    roster: Roster | None
    record: bytes
    """As it is kept."""
    more: bool
    """Later ones exist."""


NOTHING = FetchedRoster(None, b"", False)


class DirectoryStatus(NamedTuple):
    """How a daemon stands with the directories of its network."""

    directories: int
    answered: int
    """Of these, who answered when they were last asked; whoever was not asked yet is among them."""
    fork: int | None = None
    """The epoch that they agreed on two rosters for: nothing of theirs is taken any more."""


class SeatTerms(NamedTuple):
    """What the newest head says to relays that want a seat."""

    epoch: int
    admission: SeatAdmission
    beacon: Beacon
    """Of work that is begun now."""
    waiting: Mapping[RelayId, int]
    """Who waits for a seat, and since which epoch."""


CheckPart = Callable[[PartAnswer], object]
"""Raises a `PeerError` unless an answer is what the authorities agreed on; it may run in another thread."""


class RosterSource(Protocol):
    """What gives a daemon rosters, and what it trusts there, which is kept in the store."""

    @property
    def awaits_first(self) -> bool:
        """Whether there is no roster yet, and the first can only come when one is published for an epoch."""

    async def load(self) -> None:
        """Go on with what was trusted before a restart."""

    def restored(self, record: bytes) -> Roster:
        """Return a roster that was kept, checked again; raise a `PeerError` if it is trusted no more."""

    def wire(self, epoch: int) -> NetworkWire | None:
        """Return what the network speaks in an epoch of about now, `None` while no head was seen."""

    async def fetch(self, after: int | None, held: Roster | None) -> FetchedRoster:
        """Return the first roster after an epoch, or the newest (`None`); none that is `held` already.

        If `after` is the epoch of `held`, it was checked that it follows it. Raises `TransportError`, a
        `PeerError` or `Refusal`; `OtherWire` where no roster can be read here, and then its heads were
        followed all the same.
        """

    def following(self, roster: Roster) -> Sequence[Change]:
        """Trust what led to the roster fetched last, which is taken; return what is to be kept with it."""

    async def ask(self, request: PartRequest, check: CheckPart | None = None) -> PartAnswer:
        """Return a part of a network in shards, of the kind that was asked for: never `ShardUnavailable`.

        Where one directory does not show it, or shows what `check` refuses, another is asked. Raises as
        `fetch` does where none is left.
        """

    async def register(self, descriptor: Signed, work: NameWork | None = None) -> None:
        """Hand in a relay's descriptor, with its work if it has any; raises as `fetch`.

        Returns once it was reached at its address.
        """

    def terms(self) -> SeatTerms | None:
        """Return what newcomers meet, `None` where there are no several directories, or no head yet."""

    async def compare(self, epoch: int) -> None:
        """Look whether the directories agreed on two rosters for an epoch: a peer shows another than ours.

        Proof of it is kept. Raises what `fetch` does where there is proof.
        """

    def reached(self) -> DirectoryStatus:
        """Tell how many there are, and answer."""
