"""A single directory as the source of rosters: one key signs each, and each names the one before."""

from __future__ import annotations

from collections.abc import Sequence

from hushcast_directory.client import DirectoryClient
from hushcast_directory.sources import NOTHING, Fetched
from hushcast_directory.trust import Trust
from hushcast_protocol.authorities.requests import HandedOver
from hushcast_protocol.base.errors import AuthenticationError
from hushcast_protocol.base.handovers import CheckRoster
from hushcast_protocol.base.roster import Roster, check_roster, check_successor, roster_digest
from hushcast_protocol.base.signatures import Signed
from hushcast_protocol.base.wire import encode
from hushcast_runtime.environment import Environment
from hushcast_runtime.store import Change, Store, record_reader

_decode_signed = record_reader(Signed, "roster")


class SingleDirectory:
    """Implements `Source`."""

    def __init__(
        self,
        env: Environment,
        store: Store,
        trust: Trust,
        client: DirectoryClient,
        check: CheckRoster = check_roster,
    ) -> None:
        self._env = env
        self._store = store
        self._trust = trust
        self._client = client
        self._check = check

    async def load(self) -> None:
        """Read back how the directory came to its key."""
        await self._trust.load(self._store)

    def restored(self, record: bytes) -> Roster:
        """Return a roster that was kept; raise as `check_roster` does."""
        return self._trust.check(_decode_signed(record), self._check)

    async def fetch(self, after: int | None, held: Roster | None) -> Fetched:
        """Return the first roster after an epoch, or the newest; follow the directory to another key."""
        answer = await self._client.roster(after)
        if isinstance(answer, HandedOver):
            await self._trust.take(answer.handovers, self._store)
            answer = await self._client.roster(after)
        if isinstance(answer, HandedOver):
            raise AuthenticationError("the directory hands over again and again")
        signed = answer.roster
        if signed is None or (held is not None and roster_digest(signed.body) == held.digest):
            return NOTHING
        # A signature for each relay: in a big network too long for the scheduler to wait.
        roster = await self._env.compute(self._trust.check, signed, self._check)
        if held is not None and after == held.epoch:
            check_successor(roster, held)
        return Fetched(roster, encode(signed), answer.more)

    def following(self, roster: Roster) -> Sequence[Change]:
        """Return nothing: hand-overs are kept as they come."""
        return ()

    async def register(self, descriptor: Signed) -> None:
        """Hand in a descriptor."""
        await self._client.register(descriptor)
