"""The exchange: gets descriptors that other authorities hold, and reaches relays before keeping them."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Iterable

import trio

from hushcast_directory.server.archive import Archive
from hushcast_directory.server.roll import Roll
from hushcast_protocol.authorities.descriptor_exchange import (
    MAX_GATHERED,
    AskDescriptors,
    DescriptorBatch,
    DescriptorExchange,
    ExchangeFrame,
    HaveDescriptors,
    HeldDescriptor,
    shown,
)
from hushcast_protocol.base.crypto.signatures import Signed
from hushcast_protocol.base.errors import PeerError, Refusal
from hushcast_protocol.base.roster import Descriptor, Network, check_descriptor
from hushcast_protocol.base.wire import PublicKey, Wire
from hushcast_runtime.environment import Environment

MAX_REACHED = 4  # relays reached at once because of one authority: eight share what `ReachabilityChecks` has

Check = Callable[[Descriptor, bool], Awaitable[None]]
"""Reaches a relay at its address (`ReachabilityChecks.check`)."""
Tell = Callable[[tuple[PublicKey, ...], Wire], None]
"""Sends a frame to authorities."""


class Exchange:
    """The exchange of descriptors, at one authority."""

    def __init__(self, env: Environment, roll: Roll, archive: Archive, check: Check, tell: Tell) -> None:
        self._env = env
        self._roll = roll
        self._archive = archive
        self._check = check
        self._tell = tell
        self._exchange = DescriptorExchange()
        self._told: set[HeldDescriptor] = set()
        self._queues: dict[PublicKey, deque[Signed]] = {}
        self._working: dict[PublicKey, int] = {}
        self._work = trio.Event()

    async def begin(self, others: tuple[PublicKey, ...]) -> None:
        """Begin the exchange before an epoch."""
        self._exchange.begin()
        self._told.clear()
        self._queues.clear()
        await self.tell(others)

    async def tell(self, others: tuple[PublicKey, ...]) -> None:
        """Tell others what has come since they were told last, and ask for what the newest head lacks."""
        if not others:
            return
        held = set(self._roll.held(self._env.now()))
        await trio.lowlevel.checkpoint()  # of 18,384 descriptors, each half takes some 10 ms
        for frame in shown(sorted(held - self._told)):
            self._tell(others, frame)
        self._told = held
        await self.ask_missing(others)

    async def ask_missing(self, others: tuple[PublicKey, ...]) -> None:
        """Ask for the descriptors without which the newest head, or a day's shards, cannot be served."""
        missing = self._archive.missing
        for key in others if missing else ():
            await trio.lowlevel.checkpoint()  # all of a day may be missing: then each takes some 10 ms
            for question in self._exchange.ask(key, missing):
                self._tell((key,), question)

    async def hear(self, sender: PublicKey, frame: ExchangeFrame) -> bool:
        """Take a frame; tell whether the newest head can be served now. Raises a `PeerError`."""
        if isinstance(frame, HaveDescriptors):
            for question in self._exchange.heard(sender, frame, self._roll.issued):
                self._tell((sender,), question)
        elif isinstance(frame, AskDescriptors):
            answer = self._exchange.asked(sender, frame, self._find)
            if answer is not None:
                self._tell((sender,), answer)
        elif isinstance(frame, DescriptorBatch):
            return await self._given(sender, frame)
        return False

    async def run(self) -> None:
        """Reach relays whose descriptors came, until cancelled."""
        async with trio.open_nursery() as nursery:
            while True:
                for sender, queue in self._queues.items():
                    while queue and self._working.get(sender, 0) < min(MAX_REACHED, len(queue)):
                        self._working[sender] = self._working.get(sender, 0) + 1
                        nursery.start_soon(self._reach, sender)
                self._work = trio.Event()
                await self._work.wait()

    def _find(self, known: bytes) -> Signed | None:
        return self._roll.find(known) or self._archive.find(known)

    async def _given(self, sender: PublicKey, frame: DescriptorBatch) -> bool:
        given = dict(self._exchange.given(sender, frame))
        await self._env.compute(_check, given.values(), self._roll.network)
        queue = self._queues.setdefault(sender, deque(maxlen=MAX_GATHERED))
        queue.extend(given.values())
        self._work.set()
        return await self._archive.supply(given)

    async def _reach(self, sender: PublicKey) -> None:
        """Reach relays one after the other, as long as there are any that this authority told of."""
        try:
            while queue := self._queues.get(sender):
                await self._admit(sender, queue.popleft())
                await trio.lowlevel.checkpoint()  # what is refused at once waited for nobody
        finally:
            self._working[sender] -= 1

    async def _admit(self, sender: PublicKey, signed: Signed) -> None:
        try:
            descriptor = self._roll.examine(signed, self._env.now(), sender)
            if not self._roll.holds(descriptor.relay, signed):
                await self._check(descriptor, True)
                await self._roll.admit(descriptor, signed, sender)
        except (Refusal, PeerError):
            return  # it is not listed by this authority, which is all that can be said


def _check(descriptors: Iterable[Signed], network: Network) -> None:
    for signed in descriptors:
        check_descriptor(signed, network)
