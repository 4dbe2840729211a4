"""The broker with its disk and its clock: loaded at the start, committed as it changes, and ticked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import trio

from hushcast_gateway.purposes.rules import Purposes
from hushcast_gateway.refusals import RefusalLog
from hushcast_protocol.base.record_kinds import RecordKind
from hushcast_protocol.mqtt.interfaces import NoNetwork, OuterNetwork, has_way
from hushcast_protocol.mqtt.kept.mqtt_records import KINDS
from hushcast_protocol.mqtt.mqtt_broker import MqttBroker
from hushcast_protocol.mqtt.mqtt_settings import MqttSettings
from hushcast_protocol.mqtt.restored_state import RestoredState
from hushcast_protocol.mqtt.topics.access import Access, AccessPermissions
from hushcast_protocol.mqtt.topics.permissions import PermissionsOf
from hushcast_runtime.environment import Environment
from hushcast_runtime.logs import log
from hushcast_runtime.storage.changes import Change
from hushcast_runtime.storage.recovery import restore
from hushcast_runtime.storage.store import Store, read_records

TICK = 1.0  # seconds between two looks at what is due
_PAGE = 256  # records read at once


class BrokerState:
    """A broker whose promises are kept: nothing is acknowledged before it is on disk."""

    def __init__(
        self, broker: MqttBroker, store: Store, env: Environment, purposes: Purposes | None = None
    ) -> None:
        """`broker` has what `store` holds (`open_broker`)."""
        self._purposes = purposes
        self.broker = broker
        self.env = env
        self._store = store
        self._changed = trio.Event()
        self._more = trio.Event()
        self._refusals = RefusalLog()
        self._handed = broker.ledger.durable  # up to which the store has been given changes

    async def run(self) -> None:
        """Commit and tick until cancelled; raises `StoreError` if the disk fails."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._commit)
            nursery.start_soon(self._go_on)
            nursery.start_soon(self._tick)

    def changed(self) -> None:
        """Have changes committed that the broker may have made; call it after each call of its."""
        ledger = self.broker.ledger
        if ledger.made != ledger.durable:
            self._changed.set()
        if self.broker.has_more:
            self._more.set()

    async def _commit(self) -> None:
        broker, ledger = self.broker, self.broker.ledger
        while True:
            await self._changed.wait()
            self._changed = trio.Event()
            while ledger.made > self._handed or (broker.waits_for_disk and ledger.made > ledger.durable):
                mark = ledger.made
                changes = [Change(*change) for change in ledger.take()]
                self._handed = mark
                if broker.waits_for_disk:
                    await self._store.write(*changes)
                    broker.stored(mark, self.env.now())
                    self.changed()
                else:
                    self._store.write_soon(*changes)

    async def _go_on(self) -> None:
        """Do what a step had to leave, with a turn for everybody else between two steps."""
        while True:
            await self._more.wait()
            self._more = trio.Event()
            while self.broker.has_more:
                self.broker.go_on(self.env.now())
                self.changed()
                await trio.lowlevel.checkpoint()

    async def _tick(self) -> None:
        while True:
            if self._purposes is not None:
                await self._each(self._purposes.tick())
            await self._each(self.broker.tick(self.env.now()))
            self._refusals.look(self.broker.refusals.totals, trio.current_time())
            await trio.sleep(TICK)

    async def _each(self, pieces: Iterator[None]) -> None:
        for _ in pieces:
            self.changed()
            await trio.lowlevel.checkpoint()
        self.changed()


async def open_broker(
    store: Store,
    env: Environment,
    beyond: OuterNetwork | None = None,
    settings: MqttSettings | None = None,
    purposes: Purposes | None = None,
    *,
    permissions_of: PermissionsOf,
) -> BrokerState:
    """Return the broker with what the store holds; raises `StoreError`.

    `permissions_of` tells what the owners of sessions in the store may do now.
    The store's `run` must be under way for anything to be acknowledged.
    """
    now = env.now()
    if purposes is not None:
        await purposes.load(store)
    broker = MqttBroker(env.randomness, now, beyond, settings, purposes)
    records = RestoredState(permissions_of, partial(has_way, beyond or NoNetwork()))
    for kind in KINDS:
        await restore(store, kind, partial(records.feed, kind), at_once=_PAGE)
    if records.kept_back:
        log.warning("messages are kept back: their topics do not travel any more", count=records.kept_back)
    for _ in broker.restore(records, now):
        await trio.lowlevel.checkpoint()
    if purposes is not None:
        purposes.attach(broker, env.randomness)
    return BrokerState(broker, store, env, purposes)


def look_into(
    path: Path, kinds: Sequence[RecordKind] = KINDS, has_way: Callable[[str], bool] = lambda topic: True
) -> RestoredState:
    """Return what a gateway's database holds, in use, not in use or not there.

    Raises `StoreError` or `DamagedRecord`.
    """
    records = RestoredState(lambda user, client_id: AccessPermissions(Access(), user, client_id), has_way)
    for kind in kinds if path.exists() else ():
        for key, value in read_records(path, kind):
            records.feed(kind, key, value)
    return records
