"""The work for a name: a relay looks for it, and keeps it on disk for as long as it holds."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import msgspec
import trio

from hushcast_directory.client.roster_source import SeatTerms
from hushcast_protocol.authorities.name_work import NameWork, attempt, has_ended, is_to_be_renewed
from hushcast_protocol.base.record_kinds import RecordKind, StateOwner
from hushcast_protocol.base.wire import RelayId, encode
from hushcast_runtime.environment import Environment
from hushcast_runtime.logs import log
from hushcast_runtime.storage.changes import Change
from hushcast_runtime.storage.recovery import restore
from hushcast_runtime.storage.store import Store, record_reader

REST = 1.0  # as long as a try took: half of a core at most, so that the relay and the machine go on

_KIND = RecordKind(
    "work",
    StateOwner.RELAY,
    holds="the work that it found for its own name",
    lifetime="until there is other work, or another name",
    bound="1",
)
_KEY = b"own"


class _Found(msgspec.Struct, frozen=True, array_like=True):
    relay: RelayId  # a relay that takes another name looks anew
    bits: int
    work: NameWork


_read = record_reader(_Found, "work")


@dataclass(frozen=True)
class NameWorkSearch:
    """How far a search is. It has no memory: the expected time ahead is the same after each try."""

    bits: int
    tries: int
    seconds: float
    """What a try takes in the mean, its rest included."""

    @property
    def expected(self) -> float:
        """Seconds that are ahead in the mean."""
        return self.seconds * (1 << self.bits)


class RelayNameWork:
    """The work of one relay."""

    def __init__(
        self,
        network: bytes,
        relay: RelayId,
        env: Environment,
        store: Store,
        terms: Callable[[], SeatTerms | None],
        changed: Callable[[], Awaitable[None]],
    ) -> None:
        """`terms` are those of the newest head, `changed` waits for the next."""
        self._network = network
        self._relay = relay
        self._env = env
        self._store = store
        self._terms = terms
        self._changed = changed
        self._found: _Found | None = None
        self._looked = trio.lowlevel.ParkingLot()
        self.search: NameWorkSearch | None = None
        """The search that goes on, if one does."""

    @property
    def work(self) -> NameWork | None:
        """What the relay shows when it registers."""
        return None if self._found is None else self._found.work

    async def load(self) -> None:
        """Read back what was found before a restart."""
        await restore(self._store, _KIND, self._take)

    def _take(self, key: bytes, value: bytes) -> None:
        found = _read(value)
        if found.relay == self._relay:
            self._found = found

    def lacks(self) -> bool:
        """Tell whether the authorities ask for work that there is not yet."""
        bits, found = self._bits(), self._found
        if bits == 0:
            return False
        return found is None or found.bits < bits or has_ended(found.work, self._epoch())

    def is_needed(self) -> bool:
        """Tell whether there is something to be found now."""
        if self._bits() == 0:
            return False
        return self.lacks() or (self.work is not None and is_to_be_renewed(self.work.beacon, self._epoch()))

    async def done(self) -> None:
        """Wait until there is work that is worth what they ask for."""
        while self.lacks():
            await self._looked.park()

    async def run(self) -> None:
        """Look for work whenever it is needed, until cancelled."""
        while True:
            bits = self._bits()
            if not self.is_needed():
                await self._changed()
                continue
            log.info("looking for work", bits=bits)
            if (work := await self._look(bits)) is not None:
                self._found = _Found(self._relay, bits, work)
                await self._store.write(Change(_KIND, _KEY, encode(self._found)))
                log.info("work found", bits=bits)
            self._looked.unpark_all()

    def _bits(self) -> int:
        """Return how many bits are to be found now, 0 for none.

        Where there was no beacon for so long that work of the last one would have to be renewed at once,
        there is nothing to be found until there is one.
        """
        terms = self._terms()
        if terms is None or is_to_be_renewed(terms.beacon, terms.epoch):
            return 0
        return terms.admission.work

    def _epoch(self) -> int:
        terms = self._terms()
        assert terms is not None
        return terms.epoch

    async def _look(self, bits: int) -> NameWork | None:
        """Try until something is found, or something else is asked for."""
        began, tries = self._env.elapsed(), 0
        try:
            while self._bits() == bits and (asked := self._terms()) is not None:
                before = self._env.elapsed()
                work = await self._env.compute(
                    attempt, self._network, self._relay, asked.beacon, bits, self._env.randomness
                )
                tries += 1
                if work is not None:
                    return work
                await trio.sleep(REST * (self._env.elapsed() - before))
                self.search = NameWorkSearch(bits, tries, (self._env.elapsed() - began) / tries)
        finally:
            self.search = None
        return None
