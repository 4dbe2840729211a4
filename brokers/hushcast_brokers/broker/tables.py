"""Tables: what brokers below have asked for, on disk, and shown to the parent as far as it has to be."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import closing

import trio

from hushcast_brokers.broker.matching import Matching
from hushcast_protocol.base import observations
from hushcast_protocol.base.errors import DecodeError, Refusal
from hushcast_protocol.base.record_kinds import RecordKind, StateOwner
from hushcast_protocol.base.wire import PublicKey, Wire, decoder, encode
from hushcast_protocol.brokers.child_advertisements import ChildItems
from hushcast_protocol.brokers.frames import MAX_BROKER_FRAME, Advertise, FromBelow, ParentHello
from hushcast_protocol.brokers.full.aggregation import AskFactors, Factors
from hushcast_protocol.brokers.items import Item
from hushcast_protocol.content.messages import Message
from hushcast_runtime.context import Context
from hushcast_runtime.storage.changes import Change
from hushcast_runtime.storage.recovery import restore
from hushcast_runtime.time_slices import in_steps

_KIND = RecordKind(
    "route",
    StateOwner.BROKER,
    holds="what each broker below has asked for",
    lifetime="until it ends it, or has left and all was matched again; under layers a day",
)
_KEY = 32
_AT_ONCE = 16  # filters of a broker that is gone that are dropped in one turn: a millisecond each at most
_decode: Callable[[bytes], Item] = decoder(Item, "filter", MAX_BROKER_FRAME)


class Tables:
    """The tables of one broker's brokers below."""

    def __init__(self, matching: Matching, context: Context) -> None:
        self._matching = matching
        self._advertised = matching.advertised
        self._store = context.store
        self._counters = context.counters
        self._tracer = context.tracer
        self._now = context.env.elapsed
        self._heard: dict[PublicKey, float] = {}  # when each last linked, or asked for anything

    @property
    def routes(self) -> ChildItems:
        """What is routed to them."""
        held: ChildItems = self._advertised.routes
        return held

    def heard(self, child: PublicKey) -> float:
        """Return when a broker last linked or asked for anything, by a clock that nobody sets; 0.0: never."""
        return self._heard.get(child, 0.0)

    async def load(self) -> None:
        """Know what was asked for before a restart."""
        await restore(self._store, _KIND, self._take_up)

    def _take_up(self, key: bytes, value: bytes) -> None:
        item = _decode(value)
        if key[_KEY:] != item.name:
            raise DecodeError("a filter is kept under another's name")
        self._matching.load(key[:_KEY], item.name, item)

    async def greeting(self, child: PublicKey) -> list[Wire]:
        """Say what is routed to a broker below, over a link that has just opened."""
        self._heard[child] = self._now()
        return [ParentHello(await in_steps(self._advertised.begin(child)), 0, 1)]

    async def take(self, child: PublicKey, frame: FromBelow) -> int:
        """Take what a broker below advertises; return the version of it upward. Raises `Refusal`."""
        if not isinstance(frame, Advertise):
            raise Refusal("form")
        self._counters.add("advertisements_received")
        self._heard[child] = self._now()
        gone = list[bytes]()
        try:
            with closing(self._advertised.take(child, frame)) as pieces:
                for added, removed, again in pieces:
                    if again:
                        self._matching.asked_again(child, again)
                    self._store.write_soon(
                        *(Change(_KIND, child + name, encode(one)) for name, one in added.items()),
                        *(Change(_KIND, child + name, None) for name in removed),
                    )
                    gone += removed
                    await trio.lowlevel.checkpoint()
        finally:
            # Also where the link ends in between: if the child wants no more than was taken, the next link's
            # digests are the same, and nothing of it is said again.
            version = self._matching.advertise()
        if self._tracer.is_on:
            shown = tuple(map(encode, frame.add))
            self._tracer.observe(observations.Advertised(child, shown, tuple(gone)))
        return version

    async def factors(self, child: PublicKey, ask: AskFactors) -> Factors:
        """Answer a broker below; raise `Refusal` or `TransportError`."""
        return await self._matching.factors(child, ask)

    async def hand_up(self, child: PublicKey, message: Message) -> None:
        """Take what a broker below hands up; durable on return. Raises `Refusal`."""
        await self._matching.hand_up(child, message)

    def forget(self, lapsed: Iterable[tuple[PublicKey, bytes]]) -> None:
        """Delete what was dropped as its day has lapsed."""
        self._store.write_soon(*(Change(_KIND, child + name, None) for child, name in lapsed))

    async def drop(self, child: PublicKey, is_gone: Callable[[], bool]) -> None:
        """Route nothing to a broker any more, for as long as it is gone.

        One that is back before the end finds part of its table here, and says all of it again.
        """
        self._heard.pop(child, None)
        while is_gone() and (names := self._advertised.drop(child, _AT_ONCE)):
            self._store.write_soon(*(Change(_KIND, child + name, None) for name in names))
            self._matching.advertise()
            await trio.lowlevel.checkpoint()
