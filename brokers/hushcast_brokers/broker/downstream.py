"""Downstream: what waits for brokers below and for clients, sent over their links until it is taken.

While there is a link, which this end never opens, there is a machine (`base/link/hop.py`); without one all
waits in the spool alone.
"""

from __future__ import annotations

from collections.abc import Iterable

import trio

from hushcast_protocol.base import observations
from hushcast_protocol.base.errors import DecodeError
from hushcast_protocol.base.link.hop import NextHop
from hushcast_protocol.base.link.hop_link import LinkState
from hushcast_protocol.base.link.hop_values import HopActions, HopRules, ReadBack, SendItems, Settle
from hushcast_protocol.base.wire import PublicKey, Wire
from hushcast_protocol.brokers.frames import Forward
from hushcast_protocol.content.hops import Hop
from hushcast_runtime.context import Context
from hushcast_runtime.storage.spool import READ_AT_ONCE, Spool, SpooledMessage
from hushcast_runtime.transports.channel_writer import Writer

WINDOW = 512 * 1024  # bytes sent to a client before the next wait: a client's tor has many circuits to serve
LOOK_EVERY = 5.0  # seconds between looks at who acknowledges too late

_CHILD = b"\x03"  # the kind of hop


def hop_of(child: PublicKey) -> Hop:
    """Return what messages for a child wait under."""
    return Hop(_CHILD + child)


class ChildLink(LinkState[SpooledMessage]):
    """The open link of a child."""

    __slots__ = ("child", "writer")

    def __init__(self, child: PublicKey, writer: Writer, now: float) -> None:
        super().__init__(now)
        self.child = child
        self.writer = writer

    @property
    def sent(self) -> int:
        """How many messages it was sent."""
        return self._acknowledged + len(self.unacknowledged)


class Downstream:
    """What one broker sends down."""

    def __init__(self, spool: Spool, context: Context) -> None:
        self._spool = spool
        self._now = context.env.elapsed
        self._counters = context.counters
        self._tracer = context.tracer
        self._spawn = context.spawn
        randomness = context.env.randomness
        self._to_brokers: HopRules[SpooledMessage] = HopRules(spool.holds, randomness, False, False)
        self._to_clients: HopRules[SpooledMessage] = HopRules(spool.holds, randomness, False, False, WINDOW)
        self._machines: dict[PublicKey, NextHop[ChildLink, SpooledMessage]] = {}

    def is_linked(self, child: PublicKey) -> bool:
        """Tell whether a child's link is open."""
        return child in self._machines

    def begin(self, child: PublicKey, writer: Writer, is_client: bool) -> ChildLink:
        """Send what waits for a child over its new link; one of before ends."""
        self.disconnect(child)
        now = self._now()
        link = ChildLink(child, writer, now)
        machine = self._machines[child] = NextHop(self._to_clients if is_client else self._to_brokers)
        self._do(machine, child, machine.link_up(link, False, now))
        self._do(machine, child, machine.resume(now))
        return link

    def end(self, link: ChildLink) -> None:
        """Hear that a link is gone; what it sent and nobody acknowledged waits in the spool."""
        machine = self._machines.get(link.child)
        if machine is not None and link in machine.links:
            del self._machines[link.child]

    def disconnect(self, child: PublicKey) -> None:
        """End a child's link, if it has one; it hears over the next one how it stands."""
        if (machine := self._machines.get(child)) is not None:
            machine.links[-1].writer.scope.cancel()

    def enqueue(self, placed: Iterable[tuple[Hop, SpooledMessage]]) -> None:
        """Send spooled messages to those whose link is open; for the others they wait."""
        now = self._now()
        for hop, item in placed:
            child = hop[1:]
            if (machine := self._machines.get(child)) is not None and hop[:1] == _CHILD:
                self._do(machine, child, machine.enqueue((item,), now))

    def acknowledged(self, link: ChildLink, number: int) -> None:
        """Take an acknowledgement; raise `DecodeError` where it is of what was not sent."""
        machine = self._machines.get(link.child)
        if machine is None or link not in machine.links:
            return
        if number > link.sent:
            raise DecodeError("a message is acknowledged that was not sent")
        now = self._now()
        actions = machine.acknowledged(link, number, (), now)
        link.touch(now)
        self._do(machine, link.child, actions)

    def post(self, child: PublicKey, frame: Wire) -> None:
        """Say something to a child that is there; else it hears how things stand when it comes."""
        if (machine := self._machines.get(child)) is not None:
            machine.links[-1].writer.post(frame)

    def clear(self, child: PublicKey) -> None:
        """Let nothing wait for a child any more."""
        self._spawn(self.cleared, child)

    async def cleared(self, child: PublicKey) -> None:
        """Return once nothing waits for a child, or it is back."""
        while items := await self._spool.waiting(hop_of(child)):
            if self.is_linked(child):
                return  # it is back: what waits now may have come since
            self._spool.done(items)

    async def run(self) -> None:
        """End links whose acknowledgements are late, until cancelled."""
        while True:
            await trio.sleep(LOOK_EVERY)
            now = self._now()
            for machine in list(self._machines.values()):
                link = machine.links[-1]
                if link.unacknowledged and link.deadline <= now:
                    self._counters.add("children_lapsed")
                    link.writer.scope.cancel()

    def _do(
        self,
        machine: NextHop[ChildLink, SpooledMessage],
        child: PublicKey,
        actions: HopActions[ChildLink, SpooledMessage],
    ) -> None:
        for action in actions:
            if isinstance(action, SendItems):
                self._counters.add("messages_forwarded", len(action.items))
                for item in action.items:
                    action.link.writer.post(Forward(item.message))
                    self._tracer.observe(observations.Sent(item.message.id, item.message.tokens, child))
            elif isinstance(action, Settle):
                self._counters.add("messages_acknowledged", len(action.items))
                self._spool.done(action.items)
            else:
                what = "a child opens its links itself, and there is no other way"
                assert isinstance(action, ReadBack), what
                self._spawn(self._read_back, machine, child, action.after)

    async def _read_back(
        self, machine: NextHop[ChildLink, SpooledMessage], child: PublicKey, after: SpooledMessage | None
    ) -> None:
        items = await self._spool.waiting(hop_of(child), after, READ_AT_ONCE)
        if self._machines.get(child) is machine:
            self._do(machine, child, machine.read_back(items, self._now()))
