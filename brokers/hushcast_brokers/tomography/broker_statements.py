"""A broker's statements: its link to the tomography service, over which it states what it holds.

While the service is away, nothing waits for it here. An edge broker asks over the same link
(`network_levels.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import trio

from hushcast_brokers.held_tree import HeldTree
from hushcast_brokers.tomography.network_levels import NetworkLevels
from hushcast_protocol.base.addresses import Address
from hushcast_protocol.base.backoff import Backoff
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.errors import PeerError
from hushcast_protocol.base.link.hop_link import IDLE, QUIET
from hushcast_protocol.base.link.links import Link
from hushcast_protocol.base.record_kinds import RecordKind, StateOwner
from hushcast_protocol.base.wire import PublicKey
from hushcast_protocol.brokers.filters import Filter
from hushcast_protocol.brokers.frames import NewTree
from hushcast_protocol.brokers.network import BrokersNetwork
from hushcast_protocol.brokers.tomography.broker_statements import BrokerStatements, Client
from hushcast_protocol.brokers.tomography.frames import (
    MAX_STATED_AT_ONCE,
    MAX_TOMOGRAPHY_FRAME,
    AskReply,
    FromService,
    LargestK,
    Ping,
    Pong,
    StateFilters,
    StatementRefused,
    decode_from_service,
)
from hushcast_protocol.brokers.tomography.stated_filters import MAX_ROWS_EACH
from hushcast_runtime.context import Context
from hushcast_runtime.exception_groups import innermost
from hushcast_runtime.logs import log
from hushcast_runtime.storage.changes import Change
from hushcast_runtime.storage.store import damaged
from hushcast_runtime.transports.base import Transport, TransportError
from hushcast_runtime.transports.channel import Channel, open_channel

# Changes are told together at such moments, whenever they came about, so that none says when that was. The
# service expects to hear of a larger k within ten seconds (`RESTATED_WITHIN`).
STATE_EVERY = 5.0  # seconds
STATED_FOR = 1800.0  # seconds for which a statement is valid: renewed at half of it, or forgotten
FIRST_PAUSE, LONGEST_PAUSE = 5.0, 300.0  # seconds between two attempts to reach it
NUMBERS_A_SECOND = 10_000  # statements are numbered by the time, in such steps
NUMBERS_AHEAD = 2**24  # kept free at a start for what it will number: a clock set back repeats none

_KIND = RecordKind(
    "stated",
    StateOwner.BROKER,
    holds="the number that its next statement to the tomography service may begin with",
    lifetime="for ever",
    bound="1",
)
_NUMBER = 8  # bytes


class TomographyAddress(NamedTuple):
    """The tomography service, as a broker's operator was given it."""

    key: PublicKey
    address: Address
    cap: int
    """Sources on one topic that the service hears of from one edge broker."""
    spread: int = 1
    """Edge brokers that a crowd is to come from, where this one asks."""


class BrokerHoldings(NamedTuple):
    """What a broker holds: tells by a number that grows whether anything may have changed."""

    changes: Callable[[], int]
    filters: Callable[[], Mapping[Filter, Iterable[Client]]]
    """Each filter with the broker's own clients behind it."""


class StatingBroker(NamedTuple):
    """The broker that states."""

    network: BrokersNetwork
    seed: Seed


class TomographyStatements:
    """One broker's statements."""

    def __init__(
        self,
        me: StatingBroker,
        service: TomographyAddress,
        holding: BrokerHoldings,
        tree: HeldTree,
        transport: Transport,
        context: Context,
        levels: NetworkLevels | None,
    ) -> None:
        """`levels` are what an edge broker asks about."""
        self._network, self._seed = me
        self._service = service
        self._holding = holding
        self._tree = tree
        self._transport = transport
        self._env = context.env
        self._levels = levels
        self._store = context.store
        self._counters = context.counters
        self._stating: BrokerStatements
        self._seen = -1
        self._was_open = False
        self._is_anew = True  # since it started, the service has not yet heard so
        self._has_stated = False  # on this link
        self.is_open = False
        """Whether the service is reached, and takes statements."""

    async def run(self) -> None:
        """State until cancelled, whenever the service is reached."""
        env = self._env
        number = await self._first_number()
        self._stating = BrokerStatements(
            self._seed, env.randomness, number, cap=self._service.cap, life=STATED_FOR
        )
        backoff = Backoff(FIRST_PAUSE, LONGEST_PAUSE, env.randomness)
        while True:
            self._was_open = False
            try:
                await self._live()
            except* (PeerError, TransportError) as errors:
                log.debug("the tomography service was not reached", reason=str(innermost(errors)))
            if self._was_open:
                backoff.reset()
            await trio.sleep(backoff.next())

    async def _first_number(self) -> int:
        """Return a number above all of before, whatever the clock says now."""
        kept = [_read_number(value) for _, value in await self._store.scan(_KIND)]
        number = max([int(self._env.now() * NUMBERS_A_SECOND), *kept])
        await self._store.write(Change(_KIND, b"", (number + NUMBERS_AHEAD).to_bytes(_NUMBER, "big")))
        return number

    async def _live(self) -> None:
        """Keep a link for as long as it lasts."""
        view, wire = self._tree.view, self._tree.spoken(self._env.now())
        link = Link.initiate(
            *(self._network.id, self._service.key, self._env.randomness, MAX_TOMOGRAPHY_FRAME),
            *(self._seed, view, wire),
        )
        channel, established = await open_channel(
            self._transport, self._service.address, self._env.isolation(), link, decode_from_service
        )
        theirs = established.view.epoch if established.view is not None else view.epoch
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._follow_tree, channel, theirs)
                await self._hear(channel, nursery)
                nursery.cancel_scope.cancel()
        finally:
            self.is_open = False
            with trio.CancelScope(shield=True):
                await channel.aclose()

    async def _hear(self, channel: Channel[FromService], nursery: trio.Nursery) -> None:
        while True:
            with trio.move_on_after(IDLE):
                batch = await channel.receive()
                for frame in batch:
                    await self._take(frame, channel, nursery)
                if batch:
                    continue
            return

    async def _take(self, frame: FromService, channel: Channel[FromService], nursery: trio.Nursery) -> None:
        if isinstance(frame, Pong | AskReply) and self._has_stated:
            self._is_anew = False
        if isinstance(frame, NewTree):
            await self._tree.take(frame.tree)
        elif isinstance(frame, LargestK):
            self._stating.largest_k = frame.k
            if not self.is_open:
                self.is_open, self._was_open, self._has_stated = True, True, False
                self._stating.again()
                if self._levels is not None:
                    self._levels.reopened()
                nursery.start_soon(self._state, channel)
                nursery.start_soon(self._show_life, channel)
        elif isinstance(frame, StatementRefused):
            self._counters.add("statements_refused")
            log.info("the tomography service refused a statement", reason=frame.reason)
        elif isinstance(frame, AskReply) and self._levels is not None:
            self._levels.hear(frame)

    async def _state(self, channel: Channel[FromService]) -> None:
        while True:
            self._look()
            now = self._env.now()
            epoch = self._network.calendar.epoch(now)
            made = self._stating.due(epoch, now)
            if self._is_anew and not self._has_stated:
                await channel.send(StateFilters((), is_anew=True))
            for at in range(0, len(made), MAX_STATED_AT_ONCE):
                await channel.send(StateFilters(tuple(made[at : at + MAX_STATED_AT_ONCE]), is_anew=False))
            self._counters.add("statements_sent", len(made))
            self._has_stated = True
            if self._levels is not None:
                for frame in self._levels.questions(self._stating, epoch):
                    await channel.send(frame)
            await self._env.sleep_until((now // STATE_EVERY + 1) * STATE_EVERY)

    def _look(self) -> None:
        """Bring up to date what is held, if anything has changed."""
        if (changes := self._holding.changes()) == self._seen:
            return
        self._seen = changes
        held = self._holding.filters()
        for given in self._stating.filters() - held.keys():
            self._stating.drop(given)
        for given, clients in held.items():
            if given in self._stating.filters() or len(self._stating.filters()) < MAX_ROWS_EACH:
                self._stating.hold(given, clients)

    async def _follow_tree(self, channel: Channel[FromService], theirs: int) -> None:
        """Tell the service a tree that is newer than its own, at first and later."""
        while True:
            tree = self._tree.newest
            if tree is not None and tree.version > theirs:
                theirs = tree.version
                await channel.send(NewTree(tree.signed))
            if tree is self._tree.newest:
                await self._tree.changed()

    async def _show_life(self, channel: Channel[FromService]) -> None:
        while True:
            await trio.sleep(QUIET)
            await channel.send(Ping())


def _read_number(value: bytes) -> int:
    if len(value) != _NUMBER:
        raise damaged("stated", "without it this broker might state two things under one number; ")
    return int.from_bytes(value, "big")
