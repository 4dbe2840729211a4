"""The register of work: which relays have shown what their names cost, and the checks of what they show.

A check takes a tenth of a second of a core and 64 MiB, and whoever asks for it pays nothing. So a relay's
work is checked once in its thirty days, one after the other, that of listed relays apart from strangers'.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import trio

from hushcast_protocol.authorities.ballots import MAX_LISTED
from hushcast_protocol.authorities.beacon import day_of
from hushcast_protocol.authorities.head_inside import Beacon
from hushcast_protocol.authorities.name_work import (
    VALID,
    NameWork,
    check_beacon,
    has_ended,
    is_worth,
    remember,
)
from hushcast_protocol.base.errors import Refusal
from hushcast_protocol.base.record_kinds import RecordKind, StateOwner
from hushcast_protocol.base.wire import Bytes32, RelayId, encode
from hushcast_runtime.environment import Environment
from hushcast_runtime.storage.changes import Change
from hushcast_runtime.storage.recovery import number, restore, sized
from hushcast_runtime.storage.store import Store, record_reader
from hushcast_runtime.transports.base import TransportError
from hushcast_runtime.transports.connection_slots import ConnectionSlots

MAX_WORK_CHECKS = 1  # works checked at once, of listed relays and of strangers each: half a core, 128 MiB
MAX_WORK_WAITING = 64  # strangers whose work waits to be checked: at ten a second some six seconds
WORK_WITHIN = 10.0  # seconds that one waits
MAX_PROVEN = MAX_LISTED  # relays whose work is remembered; that of others is checked again, each time

_PROVEN = RecordKind(
    "proven",
    StateOwner.DIRECTORY,
    holds="proof of work that relays have shown for their names",
    lifetime="until others came",
    bound=f"{MAX_PROVEN:,} relays",
)
_BEACON = RecordKind(
    "beacon",
    StateOwner.DIRECTORY,
    holds="beacons of days",
    lifetime="32 days",
)
_RULE = RecordKind(
    "work-rule",
    StateOwner.DIRECTORY,
    holds="how much work is asked for, and since when",
    lifetime="until it changes",
    bound="1",
)


class _Proven(msgspec.Struct, frozen=True, array_like=True):
    work: NameWork
    bits: int  # for which it was checked, 0 to `MAX_WORK`


class _Rule(msgspec.Struct, frozen=True, array_like=True):
    bits: int
    since: int  # the first day on which a head had it


_read_rule = record_reader(_Rule, "work")
_read_proven = record_reader(_Proven, "work")
_read_value = record_reader(Bytes32, "beacon")


class NameWorkRegister:
    """The works shown to one authority, in memory and in its store; epochs are arguments."""

    def __init__(
        self,
        network: bytes,
        lists: Callable[[RelayId], bool],
        store: Store,
        env: Environment,
        note_turned_away: Callable[[], None],
    ) -> None:
        """`lists` tells whether a relay has a seat."""
        self._network = network
        self._lists = lists
        self._store = store
        self._env = env
        self._seated = trio.CapacityLimiter(MAX_WORK_CHECKS)
        self._strangers = trio.CapacityLimiter(MAX_WORK_CHECKS)
        self._waiting = ConnectionSlots(MAX_WORK_WAITING, env.below, note_turned_away)
        self._under_way: set[RelayId] = set()
        self._proven: dict[RelayId, _Proven] = {}
        self._beacons: dict[int, bytes] = {}
        self._rule = _Rule(0, 0)

    async def load(self) -> None:
        """Read back what was kept before a restart."""
        await restore(self._store, _PROVEN, self._take_proven)
        await restore(
            self._store, _BEACON, lambda day, value: self._beacons.update({number(day): _read_value(value)})
        )
        await restore(self._store, _RULE, self._take_rule)

    def _take_proven(self, relay: bytes, value: bytes) -> None:
        self._proven[sized(relay, 32)] = _read_proven(value)

    def _take_rule(self, _: bytes, value: bytes) -> None:
        self._rule = _read_rule(value)

    def follow(self, epoch: int, bits: int, beacon: Beacon | None) -> None:
        """Go on from a head: so many bits are asked for, and this is the newest beacon."""
        if bits != self._rule.bits:
            self._rule = _Rule(bits, day_of(epoch))
            self._store.write_soon(Change(_RULE, b"", encode(self._rule)))
        known = remember(self._beacons, beacon)
        if known == self._beacons:
            return
        gone = self._beacons.keys() - known.keys()
        fresh = [day for day in known if known[day] != self._beacons.get(day)]
        self._beacons = known
        self._store.write_soon(
            *(Change(_BEACON, _key(day), None) for day in gone),
            *(Change(_BEACON, _key(day), encode(known[day])) for day in fresh),
        )

    def lets(self, relay: RelayId, epoch: int) -> bool:
        """Tell whether a relay may be listed: it has shown work that holds, or none is asked for.

        Who had a seat before as much was asked for has as long to find it as it would hold.
        """
        rule, today = self._rule, day_of(epoch)
        if rule.bits == 0 or (self._lists(relay) and today < rule.since + VALID):
            return True
        proven = self._proven.get(relay)
        return proven is not None and proven.bits >= rule.bits and not has_ended(proven.work, epoch)

    async def show(self, relay: RelayId, work: NameWork | None, epoch: int) -> None:
        """Take the work that a relay shows when it registers; raise `Refusal`, with the way out, if it fails.

        What was checked before is not checked again.
        """
        proven, bits = self._proven.get(relay), self._rule.bits
        is_new = work is not None and (proven is None or work.beacon.day > proven.work.beacon.day)
        if bits == 0 or (self.lets(relay, epoch) and not is_new):
            return
        if work is None:
            raise Refusal(f"newcomers show work of {bits} bits here: the relay looks for it by itself, wait")
        seated = self._lists(relay)
        check_beacon(work, self._beacons, epoch, seated)
        if relay in self._under_way:
            raise Refusal("the work of this relay is being checked already: try again later")
        self._under_way.add(relay)
        try:
            is_good = await self._check(relay, work, bits, seated)
        finally:
            self._under_way.remove(relay)
        if not is_good:
            raise Refusal(f"the work is not of this relay, or is not worth {bits} bits")
        await self._keep(relay, _Proven(work, bits))

    async def _check(self, relay: RelayId, work: NameWork, bits: int, seated: bool) -> bool:
        limiter = self._seated if seated else self._strangers
        if seated:
            await limiter.acquire()
        else:
            try:
                with self._waiting.place(WORK_WITHIN):
                    await limiter.acquire()
            except TransportError:
                raise Refusal("too many newcomers have their work checked: try again later") from None
        try:
            return await self._env.compute(is_worth, work, self._network, relay, bits)
        finally:
            limiter.release()

    async def _keep(self, relay: RelayId, proven: _Proven) -> None:
        self._proven.pop(relay, None)
        gone = list(self._proven)[: max(0, len(self._proven) + 1 - MAX_PROVEN)]
        for one in gone:
            del self._proven[one]
        self._proven[relay] = proven
        await self._store.write(
            Change(_PROVEN, relay, encode(proven)), *(Change(_PROVEN, one, None) for one in gone)
        )


def _key(day: int) -> bytes:
    return day.to_bytes(8, "big")
