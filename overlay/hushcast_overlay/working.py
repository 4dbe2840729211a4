"""Working: a relay looks for the work that its name costs, and keeps it on disk for as long as it holds."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import msgspec
import structlog
import trio

from hushcast_protocol.authorities.heads import Beacon
from hushcast_protocol.authorities.work import Work, attempt, is_to_be_renewed
from hushcast_protocol.base.wire import RelayId, encode
from hushcast_runtime.environment import Environment
from hushcast_runtime.store import Change, Store, record_reader

REST = 1.0  # as long as a try took: half of a core at most, so that the relay and the machine go on

_KIND, _KEY = "work", b"own"
log = structlog.get_logger("work")


class _Found(msgspec.Struct, frozen=True, array_like=True):
    relay: RelayId  # a relay that takes another name looks anew
    bits: int
    work: Work


_read = record_reader(_Found, "work")


@dataclass(frozen=True)
class Asked:
    """What the authorities ask for: the newest head has it."""

    bits: int  # 0 for none
    beacon: Beacon
    epoch: int


@dataclass(frozen=True)
class Search:
    """How far a search is. It has no memory: the expected time ahead is the same after each try."""

    bits: int
    tries: int
    seconds: float
    """What a try takes in the mean, its rest included."""

    @property
    def expected(self) -> float:
        """Seconds that are ahead in the mean."""
        return self.seconds * (1 << self.bits)


class Working:
    """The work of one relay."""

    def __init__(
        self,
        network: bytes,
        relay: RelayId,
        env: Environment,
        store: Store,
        asked: Callable[[], Asked | None],
        changed: Callable[[], Awaitable[None]],
    ) -> None:
        """`asked` is `None` while there is no head, and whenever there are no several authorities; `changed`
        waits for the next head.
        """
        self._network = network
        self._relay = relay
        self._env = env
        self._store = store
        self._asked = asked
        self._changed = changed
        self._found: _Found | None = None
        self._looked = trio.lowlevel.ParkingLot()
        self.search: Search | None = None
        """The search that goes on, if one does."""

    @property
    def work(self) -> Work | None:
        """What the relay shows when it registers."""
        return None if self._found is None else self._found.work

    async def load(self) -> None:
        """Read back what was found before a restart."""
        for _, value in await self._store.scan(_KIND):
            found = _read(value)
            if found.relay == self._relay:
                self._found = found

    async def found(self) -> None:
        """Wait for other work than there is now."""
        await self._looked.park()

    async def run(self) -> None:
        """Look for work whenever it is needed, until cancelled."""
        while True:
            asked = self._asked()
            if asked is None or not self._is_needed(asked):
                await self._changed()
                continue
            log.info("looking for work", bits=asked.bits)
            work = await self._look()
            if work is None:
                continue
            self._found = _Found(self._relay, asked.bits, work)
            await self._store.write(Change(_KIND, _KEY, encode(self._found)))
            log.info("work found", bits=asked.bits)
            self._looked.unpark_all()

    def _is_needed(self, asked: Asked) -> bool:
        if asked.bits == 0:
            return False
        found = self._found
        return found is None or found.bits < asked.bits or is_to_be_renewed(found.work, asked.epoch)

    async def _look(self) -> Work | None:
        """Try until something is found, or is asked for no more."""
        began, tries = self._env.elapsed(), 0
        first = self._asked()
        try:
            while (asked := self._asked()) is not None and first is not None and asked.bits == first.bits:
                before = self._env.elapsed()
                work = await self._env.compute(
                    attempt, self._network, self._relay, asked.beacon, asked.bits, self._env.randomness
                )
                tries += 1
                if work is not None:
                    return work
                await trio.sleep(REST * (self._env.elapsed() - before))
                self.search = Search(asked.bits, tries, (self._env.elapsed() - began) / tries)
        finally:
            self.search = None
        return None
