"""A single directory as the source of rosters, known by its key: it agrees with itself, or with others too.

A directory of before signs each roster alone, which names the one before. From the first head that it answers
with on nothing but heads counts, of those that this directory agrees with.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hushcast_directory.client.directory_client import DirectoryClient
from hushcast_directory.client.roster_source import (
    NOTHING,
    CheckPart,
    DirectoryStatus,
    FetchedRoster,
    SeatTerms,
)
from hushcast_directory.client.several_directories import SeveralDirectories
from hushcast_directory.client.trust import DirectoryKeyChanged, Trust
from hushcast_protocol.authorities.directory_requests import HeadAnswer, KeySuccession, Rosters
from hushcast_protocol.authorities.name_work import NameWork
from hushcast_protocol.base.crypto.signatures import Signed
from hushcast_protocol.base.errors import AuthenticationError, PeerError, Refusal
from hushcast_protocol.base.key_handovers import CheckRoster
from hushcast_protocol.base.roster import Roster, check_roster, check_successor, roster_digest
from hushcast_protocol.base.versions.network_wire import NetworkWire
from hushcast_protocol.base.versions.wires import OtherWire
from hushcast_protocol.base.wire import encode
from hushcast_protocol.shards.shard_requests import PartAnswer, PartRequest
from hushcast_runtime.environment import Environment
from hushcast_runtime.storage.changes import Change
from hushcast_runtime.storage.store import Store, record_reader
from hushcast_runtime.transports.base import TransportError

_decode_record: Callable[[bytes], Signed | HeadAnswer] = record_reader(Signed | HeadAnswer, "roster")  # type: ignore[arg-type]


class SingleDirectory:
    """Implements `RosterSource`."""

    def __init__(
        self,
        env: Environment,
        store: Store,
        trust: Trust,
        client: DirectoryClient,
        several: SeveralDirectories,
        check: CheckRoster = check_roster,
    ) -> None:
        """`several` is what the directory may become."""
        self._env = env
        self._store = store
        self._trust = trust
        self._client = client
        self._several = several
        self._check = check
        self._answers = True

    @property
    def awaits_first(self) -> bool:
        """Alone it publishes the first at once, when enough relays have registered."""
        return False

    async def load(self) -> None:
        """Read back how the directory came to its key, and whether it is one of several."""
        await self._trust.load(self._store)
        self._several.pin(self._trust.key)
        await self._several.load()

    def wire(self, epoch: int) -> NetworkWire | None:
        """Return what the network speaks in an epoch of about now, `None` while no head was seen."""
        return self._several.wire(epoch)

    def restored(self, record: bytes) -> Roster:
        """Return a roster that was kept; raise as `check_roster` does."""
        kept = _decode_record(record)
        if isinstance(kept, HeadAnswer):
            return self._several.restored(record)
        return self._trust.check(kept, self._check)

    async def fetch(self, after: int | None, held: Roster | None) -> FetchedRoster:
        """Return the first roster after an epoch, or the newest; follow the directory to another key."""
        await self._several.learn_at_first()
        if self._several.has_begun:
            return await self._agreed(after, held)
        answer = await self._ask(after)
        if isinstance(answer, KeySuccession):
            await self._trust.take(answer.handovers, self._store)
            self._several.pin(self._trust.key)
            answer = await self._ask(after)
        if isinstance(answer, KeySuccession):
            raise AuthenticationError("the directory hands over again and again")
        if isinstance(answer, HeadAnswer):
            taken = await self._several.examine(answer, held)
            return NOTHING if taken is None else self._several.lead(*taken)
        signed = answer.roster
        if signed is None or (held is not None and roster_digest(signed.body) == held.digest):
            return NOTHING
        # A signature for each relay: in a big network too long for the scheduler to wait.
        roster = await self._env.compute(self._trust.check, signed, self._check)
        if held is not None and after == held.epoch:
            check_successor(roster, held)
        return FetchedRoster(roster, encode(signed), answer.more)

    async def _agreed(self, after: int | None, held: Roster | None) -> FetchedRoster:
        """Return what it agreed on as an authority; follow it to another key while it is alone."""
        try:
            return await self._several.fetch(self._asked_after(after), held)
        except DirectoryKeyChanged as moved:
            await self._trust.take(
                moved.handovers, self._store, lambda handovers: [self._several.hand_over(handovers)]
            )
        return await self._several.fetch(self._asked_after(after), held)

    def _asked_after(self, after: int | None) -> int | None:
        """Return what to ask for: the newest where heads before it are of a key that may be known no more."""
        return None if after is not None and after + 1 < self._several.since else after

    def following(self, roster: Roster) -> Sequence[Change]:
        """Follow the heads that led to it, if there are any; hand-overs are kept as they come."""
        return self._several.following(roster)

    async def ask(self, request: PartRequest, check: CheckPart | None = None) -> PartAnswer:
        """Return a part of the network, if it is an authority: one alone never cuts its network."""
        if not self._several.has_begun:
            raise Refusal("a directory alone does not cut its network into shards, nor draw keepers")
        return await self._several.ask(request, check)

    async def register(self, descriptor: Signed, work: NameWork | None = None) -> None:
        """Hand in a descriptor."""
        if self._several.has_begun:
            await self._several.register(descriptor, work)
        else:
            await self._client.register(descriptor, work)

    def terms(self) -> SeatTerms | None:
        """Return what newcomers meet, once it is an authority."""
        return self._several.terms()

    async def compare(self, epoch: int) -> None:
        """Look, if it is one of several; one alone would show what it showed."""
        if self._several.has_begun:
            await self._several.compare(epoch)

    def reached(self) -> DirectoryStatus:
        """Tell whether it answers."""
        return self._several.reached() if self._several.has_begun else DirectoryStatus(1, int(self._answers))

    async def _ask(self, after: int | None) -> Rosters | KeySuccession | HeadAnswer:
        try:
            answer = await self._client.roster(after)
        except OtherWire:
            await self._several.learn()
            raise
        except (TransportError, PeerError):
            self._answers = False
            raise
        self._answers = True
        return answer
