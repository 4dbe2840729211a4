"""The numbers of this gateway's messages, and how far those of others are, with what is on disk of both."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable

import trio

from hushcast_protocol.base.errors import DecodeError
from hushcast_protocol.base.record_kinds import RecordKind, StateOwner
from hushcast_protocol.mqtt.arrival_order import MAX_MARKS, ArrivalOrder, Mark, ReleasedArrival, Stream
from hushcast_protocol.mqtt.envelope import Place
from hushcast_protocol.mqtt.kept.ledger import Ledger
from hushcast_protocol.mqtt.own_places import (
    EPOCH_UNIT,
    EPOCHS_A_RUN,
    LAST_EPOCH,
    LAST_NUMBER,
    MAX_NUMBERED,
    OwnPlaces,
    SourceSecret,
)
from hushcast_protocol.mqtt.topics.topic_filters import is_name
from hushcast_runtime.environment import Environment
from hushcast_runtime.storage.changes import Change
from hushcast_runtime.storage.recovery import restore
from hushcast_runtime.storage.store import Store

_SECRET = b"\0"  # the key of the secret: no topic begins so
_RUN = b"\0r"  # the key of the least epoch of the last run
_MARK = struct.Struct(">IQ")

_OWN = RecordKind(
    "gateway-numbers",
    StateOwner.GATEWAY,
    holds="topics of the network that it published to, each with its last number; the secret of its sources",
    lifetime="until as many other topics were published to since",
    bound=f"{MAX_NUMBERED:,}",
)
_MARKS = RecordKind(
    "gateway-mark",
    StateOwner.GATEWAY,
    holds="the number of the last message of each topic and gateway elsewhere that was handed out",
    lifetime="until as many others came since",
    bound=f"{MAX_MARKS:,}",
)


HandOut = Callable[[bool], None]
"""Hands a message out, or not: it is told whether the message is late."""


class NumberedTopics:
    """What of a gateway's network has numbers: its own messages, and what comes, which waits its turn."""

    def __init__(self, wait: float, env: Environment) -> None:
        """`wait` is as `ArrivalOrder` has it."""
        self._env = env
        self._own: OwnPlaces | None = None
        self._ledger: Ledger | None = None
        self._order: ArrivalOrder[HandOut] = ArrivalOrder(wait)
        self._changed = trio.Event()

    @property
    def held(self) -> int:
        """Messages that came before their turn."""
        return self._order.held

    async def load(self, store: Store, ledger: Ledger) -> None:
        """Read what an earlier run noted, to be written with `ledger` from now on.

        A new gateway's secret is on disk on return.
        """
        found: dict[str, Mark] = {}
        secrets: list[SourceSecret] = []
        runs: list[int] = []

        def take_own(key: bytes, value: bytes) -> None:
            if key == _RUN:
                runs.append(Mark(*_MARK.unpack(value)).epoch)
                return
            if key == _SECRET:
                secrets.append(SourceSecret(value))
                return
            if not is_name(topic := key.decode()):
                raise DecodeError("a topic that nobody published to")
            mark = Mark(*_MARK.unpack(value))
            if mark.epoch >= LAST_EPOCH or mark.number >= LAST_NUMBER:
                raise DecodeError("a place that no gateway has had: nothing could be behind it")
            found[topic] = mark

        await restore(store, _OWN, take_own)
        await restore(store, _MARKS, self._take_mark)
        secret = secrets[0] if secrets else SourceSecret.draw(self._env.randomness)
        least = max(1, int(self._env.now()) // EPOCH_UNIT, *(run + EPOCHS_A_RUN for run in runs))
        # Before anything goes out: what a killed run gave is not all noted.
        await store.write(Change(_OWN, _SECRET, secret.reveal()), Change(_OWN, _RUN, _MARK.pack(least, 0)))
        self._own = OwnPlaces(secret, least)
        for topic, mark in found.items():
            self._own.restore(topic, mark, self._env.now())
        self._ledger = ledger

    def next(self, topic: str) -> Place | None:
        """Return the place of a topic's next message; `None` for none."""
        if self._own is None or self._ledger is None:
            return None
        place, given_up = self._own.next(topic, self._env.now())
        if given_up:
            self._ledger.delete(_OWN, given_up.encode())
        return place

    def took(self, topic: str, is_certain: bool) -> None:
        """Note that the daemon has a topic's next message, or that nobody knows whether it has.

        Its client hears so when the number is on disk: else a kill would have the next message get the same
        number, and where that is quicker this one would come too late.
        """
        if not is_certain and self._own is not None:
            self._own.given_up(topic)
        elif (place := self.next(topic)) is not None:
            self._note_own(topic, Mark(place.epoch, place.number))

    def is_own(self, topic: str, place: Place) -> bool:
        """Tell whether this gateway published what comes, in this run or an earlier one."""
        return self._own is not None and self._own.source(topic) == place.source

    def is_known(self, topic: str, place: Place) -> bool:
        """Tell of one's own whether clients here have it, or will; else an earlier run ended before that."""
        if self._own is None or self._own.is_known(topic, place):
            return True
        if self._own.may_be_of_before(topic, place):
            self._note_own(topic, Mark(place.epoch, place.number))
        return False

    def came(
        self, stream: Stream, place: Place, size: int, hand_out: HandOut, waits: bool
    ) -> list[ReleasedArrival[HandOut]]:
        """Take what another gateway published; return what is to be handed out now."""
        released = self._order.came(stream, place, hand_out, size, trio.current_time(), waits)
        self._changed.set()
        return released

    async def until_due(self) -> None:
        """Return when something may have waited long enough."""
        while True:
            self._changed = trio.Event()
            next_due = self._order.next_due
            if next_due is not None and next_due <= trio.current_time():
                return
            with trio.move_on_at(math.inf if next_due is None else next_due):
                await self._changed.wait()

    def due(self) -> list[ReleasedArrival[HandOut]]:
        """Return what did."""
        return self._order.due(trio.current_time())

    def note(self, released: ReleasedArrival[HandOut], ledger: Ledger) -> None:
        """Have a mark go to disk with what is handed out."""
        ledger.put(_MARKS, _key(released.stream), _MARK.pack(*released.mark))
        for stream in self._order.forgotten:
            ledger.delete(_MARKS, _key(stream))
        self._order.forgotten.clear()

    def _note_own(self, topic: str, mark: Mark) -> None:
        if self._own is not None and self._ledger is not None:
            self._own.taken(topic, mark, self._env.now())
            self._ledger.put(_OWN, topic.encode(), _MARK.pack(*mark))

    def _take_mark(self, key: bytes, value: bytes) -> None:
        self._order.restore(Stream(key[16:].decode(), key[:16]), Mark(*_MARK.unpack(value)))


def _key(stream: Stream) -> bytes:
    return stream.label + stream.alias.encode()
