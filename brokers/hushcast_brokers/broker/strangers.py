"""Strangers: connections without a name, of who publishes, or asks for the tree, the past, a sign of life.

In networks of communities they ask for charters, too, and keepers hand them in at the root.
"""

from __future__ import annotations

from typing import cast

import trio

from hushcast_brokers.broker.community.charter_listeners import news
from hushcast_brokers.broker.publications import RootPublications
from hushcast_brokers.community.held_charters import HeldCharters
from hushcast_protocol.base.errors import DecodeError, PeerError, Refusal
from hushcast_protocol.brokers.community.charter import begins
from hushcast_protocol.brokers.frames import (
    AskCharters,
    AskPast,
    BrokerVerdict,
    Forward,
    FromBelow,
    NewCharter,
    Ping,
    Pong,
    Publish,
    Receipt,
)
from hushcast_runtime.context import Context
from hushcast_runtime.transports.base import TransportError
from hushcast_runtime.transports.channel import Channel
from hushcast_runtime.transports.connection_guard import strangers_room

MAX_BEGINS_AHEAD = 24 * 3600  # seconds: an epoch that begins later is one of a keeper whose clock is wrong
ASK_WITHIN = 120.0  # seconds that such a connection may stay; each publication has a circuit of its own

MAX_SHOWING = 64  # answers of what is kept that are in memory, of 5 MB at most; as a rule of half of one
SHOWN_WITHIN = 30.0  # seconds for one of them to be taken: 20 kB a second


class BrokerStrangers:
    """Those who show no name to one broker."""

    def __init__(
        self, publications: RootPublications | None, charters: HeldCharters | None, context: Context
    ) -> None:
        """`publications` are the root's; nobody else takes any. Without communities there are no charters."""
        self._publications = publications
        self._charters = charters
        self._env = context.env
        self._store = context.store
        self._slots = strangers_room(context.env, context.counters)
        self._counters = context.counters
        self._showing = trio.Semaphore(MAX_SHOWING)

    async def serve(self, channel: Channel[FromBelow]) -> None:
        """Answer one connection's frames in order, for a while; raises a `PeerError` or `TransportError`."""
        has_asked = False
        with self._slots.place(), trio.move_on_after(ASK_WITHIN):
            while batch := await channel.receive():
                for frame in batch:
                    if isinstance(frame, Ping):
                        await channel.send(Pong())
                    elif isinstance(frame, Publish):
                        await channel.send(await self._receipt(frame))
                    elif isinstance(frame, AskPast):
                        await self._show_past(channel, frame)
                    elif isinstance(frame, AskCharters) and self._charters is not None and not has_asked:
                        has_asked = True  # each time costs up to all charters that there are
                        await channel.send(*news(self._charters, frame))
                    elif isinstance(frame, NewCharter) and self._charters is not None:
                        await channel.send(await self._handed_in(frame))
                    else:
                        raise DecodeError("somebody without a name says what children say")

    async def _receipt(self, frame: Publish) -> Receipt:
        if self._publications is None:
            self._counters.add("refused_unknown")
            return Receipt("unknown", 0)
        return await self._publications.take(frame)

    async def _show_past(self, channel: Channel[FromBelow], frame: AskPast) -> None:
        """Say some of what the root keeps; at other brokers nothing is."""
        if self._publications is None:
            self._counters.add("refused_unknown")
            await channel.send(Receipt("unknown", 0))
            return
        async with self._showing:
            messages, receipt = await self._publications.past(frame)
            with trio.move_on_after(SHOWN_WITHIN) as scope:
                await channel.send(*map(Forward, messages), receipt)
        if scope.cancelled_caught:
            raise TransportError("somebody takes too long for what is kept")

    async def _handed_in(self, frame: NewCharter) -> Receipt:
        """Hand out a charter from now on; it is on disk before anybody hears so."""
        assert self._charters is not None, "there are communities"
        verdict: BrokerVerdict = "accepted"
        try:
            if self._publications is None:
                raise Refusal("unknown")
            if begins(frame.charter) > self._env.now() + MAX_BEGINS_AHEAD:
                raise Refusal("day")
            if not self._charters.take(frame.charter) and not self._charters.holds(frame.charter):
                raise Refusal("form")  # a newer one is held
            await self._store.write()
        except Refusal as refusal:
            verdict = cast(BrokerVerdict, refusal.reason)
        except PeerError:
            verdict = "form"
        if verdict != "accepted":
            self._counters.add(f"refused_{verdict}")
        return Receipt(verdict, 0)
