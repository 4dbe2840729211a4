"""The links between authorities; each sends over one link of its own to each other one."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import TypeVar

import trio

from hushcast_protocol.authorities.authority_set import AuthorityContact
from hushcast_protocol.authorities.descriptor_exchange import PeerFrame, decode_peer_frame
from hushcast_protocol.authorities.frames import MAX_PEER_FRAME
from hushcast_protocol.authorities.head_questions import MAX_HEADS_ANSWER, AskHeads, decode_heads_answer
from hushcast_protocol.authorities.heads import Head
from hushcast_protocol.authorities.network_wire import wire_by
from hushcast_protocol.base.addresses import parse_address
from hushcast_protocol.base.backoff import Backoff
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.epochs import Calendar
from hushcast_protocol.base.errors import DecodeError, PeerError
from hushcast_protocol.base.link.links import Link
from hushcast_protocol.base.versions import wires
from hushcast_protocol.base.versions.wires import LASTING, OtherWire
from hushcast_protocol.base.wire import PublicKey, Wire
from hushcast_runtime.environment import Environment
from hushcast_runtime.exception_groups import ungrouped
from hushcast_runtime.logs import log
from hushcast_runtime.transports.base import Transport, TransportError
from hushcast_runtime.transports.channel import Channel, open_channel

MAX_QUEUED = 256  # frames that wait for one authority; the oldest give way: they are of a time gone by
MAX_PEER_BYTES = 64 * 1024 * 1024  # an epoch from one authority: its largest exchange has some 45 MB
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 30.0  # seconds between attempts to reach one; within its rounds

HEADS_WITHIN = 30.0  # seconds in which who speaks another wire must show heads: 17 of 64 KiB at most

FrameT = TypeVar("FrameT")

Hear = Callable[[PublicKey, PeerFrame], Awaitable[None]]
"""Takes a frame of an authority that has proven its key; raises a `PeerError` if no honest one sends it."""


class AuthorityLinks:
    """The links of one authority; frames may be lost."""

    def __init__(
        self,
        transport: Transport,
        network: bytes,
        seed: Seed,
        env: Environment,
        calendar: Calendar,
        hear: Hear,
    ) -> None:
        self._transport = transport
        self._network = network
        self._seed = seed
        self._env = env
        self._calendar = calendar
        self._hear = hear
        self._head: Head | None = None
        self._senders: dict[PublicKey, _Sender] = {}
        self._heard: dict[PublicKey, _Ear] = {}
        self._budgets: dict[PublicKey, _Budget] = {}
        self._changed = trio.Event()

    def follow(self, members: Mapping[PublicKey, AuthorityContact], newest: Head | None = None) -> None:
        """Have links to these authorities, and none to others, in what the newest head says is spoken."""
        self._head = newest
        others = {key: member for key, member in members.items() if key != self._seed.public()}
        known = {key: sender.member for key, sender in self._senders.items()}
        if others == known:
            return
        for key in [key for key, member in known.items() if others.get(key) != member]:
            self._senders.pop(key).scope.cancel()
        for key in self._heard.keys() - others.keys():
            self._heard[key].close()
        for key, member in others.items():
            if key not in self._senders:
                self._senders[key] = _Sender(member)
        self._budgets = {key: budget for key, budget in self._budgets.items() if key in others}
        self._changed.set()

    @property
    def count(self) -> int:
        """How many other authorities there are, of before, of now and to come."""
        return len(self._senders)

    @property
    def reached(self) -> int:
        """How many of them were reached at the last attempt."""
        return sum(sender.is_reached is True for sender in self._senders.values())

    def reach(self) -> dict[PublicKey, bool | None]:
        """Return of each whether it was reached at the last attempt, `None` before the first."""
        return {key: sender.is_reached for key, sender in self._senders.items()}

    @property
    def is_cut_off(self) -> bool:
        """Whether all were tried in vain."""
        senders = self._senders.values()
        return bool(senders) and all(sender.is_reached is False for sender in senders)

    def largest(self, peer: PublicKey) -> int:
        """Return up to how many bytes a frame may have from who has proven this key."""
        return MAX_PEER_FRAME if self.knows(peer) else 0

    def knows(self, peer: PublicKey | None) -> bool:
        """Tell whether this is another authority's key."""
        return peer in self._senders

    def send(self, to: tuple[PublicKey, ...], frame: Wire) -> None:
        """Send a frame to some of them, soon."""
        for key in to:
            if (sender := self._senders.get(key)) is not None:
                sender.frames.append(frame)
                sender.arrival.set()

    async def run(self) -> None:
        """Keep links until cancelled."""
        async with trio.open_nursery() as nursery:
            while True:
                for sender in self._senders.values():
                    if not sender.is_running:
                        sender.is_running = True
                        nursery.start_soon(self._keep, sender)
                self._changed = trio.Event()
                await self._changed.wait()

    async def serve(self, channel: Channel[FrameT]) -> None:
        """Hear another authority until its link ends; a later link of the same one takes its place.

        What it said already is done all the same: else it could end, by another link, what follows from that.
        """
        peer = channel.peer
        assert peer is not None
        if (before := self._heard.get(peer)) is not None:
            before.close()
        budget = self._budgets.setdefault(peer, _Budget())
        frames = channel.speaking(lambda data: budget.decode(data, self._calendar.epoch(self._env.now())))
        ear = self._heard[peer] = _Ear(frames)
        try:
            while batch := await ear.listen():
                for frame in batch:
                    await self._hear(peer, frame)
                    if ear.is_closed:
                        return
        finally:
            if self._heard.get(peer) is ear:
                del self._heard[peer]

    async def _keep(self, sender: _Sender) -> None:
        longest = min(LONGEST_PAUSE, self._calendar.epoch_seconds / 60)
        backoff = Backoff(FIRST_PAUSE, longest, self._env.randomness)
        with sender.scope:
            while True:
                await sender.arrival.wait()
                try:
                    await self._send_over_one_link(sender, backoff)
                except (PeerError, TransportError) as error:
                    if isinstance(error, OtherWire):
                        await self._ask_for_heads(sender)
                    if sender.is_reached is not False:
                        log.info("another authority is not reached", reason=str(error))
                    sender.is_reached = False
                    await trio.sleep(backoff.next())

    def _wire(self) -> int:
        epoch = self._calendar.epoch(self._env.now())
        return wires.spoken().highest if self._head is None else wire_by(self._head, epoch).now

    async def _ask_for_heads(self, sender: _Sender) -> None:
        """Ask who speaks another wire for its heads, once an epoch: the network may have gone on to that."""
        if sender.asked == (epoch := self._calendar.epoch(self._env.now())):
            return
        sender.asked, member = epoch, sender.member
        link = Link.initiate(self._network, member.key, self._env.randomness, MAX_HEADS_ANSWER, wire=LASTING)
        address = parse_address(member.address)
        with suppress(PeerError, TransportError):
            channel, _ = await open_channel(
                self._transport, address, self._env.isolation(), link, decode_heads_answer
            )
            try:
                await channel.send(AskHeads(None))
                heads = await channel.one(HEADS_WITHIN)
            finally:
                await channel.aclose()
            await self._hear(member.key, heads)

    async def _send_over_one_link(self, sender: _Sender, backoff: Backoff) -> None:
        """Send what comes until the link ends, or nothing came for half an epoch: it may be dead unseen."""
        link = Link.initiate(
            self._network,
            sender.member.key,
            self._env.randomness,
            MAX_PEER_FRAME,
            identity=self._seed,
            wire=self._wire(),
        )
        address = parse_address(sender.member.address)
        channel, _ = await open_channel(
            self._transport, address, self._env.isolation(), link, decode_peer_frame
        )
        try:
            sender.is_reached = True
            backoff.reset()
            with ungrouped(PeerError, TransportError):
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(_until_ended, channel, nursery.cancel_scope)
                    await self._send_what_comes(sender, channel)
                    nursery.cancel_scope.cancel()
        finally:
            await channel.aclose()

    async def _send_what_comes(self, sender: _Sender, channel: Channel[PeerFrame]) -> None:
        """Send until nothing came for half an epoch."""
        is_idle = False
        while not is_idle:
            while sender.frames:
                frame = sender.frames.popleft()
                try:
                    await channel.send(frame)
                except BaseException:
                    if len(sender.frames) < MAX_QUEUED:  # else it is the oldest, which gives way
                        sender.frames.appendleft(frame)
                    raise
            sender.arrival = trio.Event()
            with trio.move_on_after(self._calendar.grace) as waiting:
                await sender.arrival.wait()
            is_idle = waiting.cancelled_caught


class _Sender:
    """What is to be sent to one authority."""

    def __init__(self, member: AuthorityContact) -> None:
        self.member = member
        self.frames: deque[Wire] = deque(maxlen=MAX_QUEUED)
        self.arrival = trio.Event()
        self.arrival.set()  # a first link although nothing is to be sent: operators see who is reached
        self.scope = trio.CancelScope()
        self.is_running = False
        self.asked = -1  # the epoch in which its heads were asked for, as it speaks another wire
        self.is_reached: bool | None = None  # by the last attempt, if there was one


class _Ear:
    """Where one authority is heard over one link; to close it interrupts nothing that was heard."""

    def __init__(self, frames: Channel[PeerFrame]) -> None:
        self._frames = frames
        self._waiting = trio.CancelScope()
        self.is_closed = False

    def close(self) -> None:
        """Hear no more over this link."""
        self.is_closed = True
        self._waiting.cancel()

    async def listen(self) -> list[PeerFrame]:
        """Return what is said next; nothing once the link has ended, or is heard no more."""
        if not self.is_closed:
            with trio.CancelScope() as self._waiting:
                return await self._frames.receive()
        return []


class _Budget:
    """How much one authority has said in an epoch."""

    def __init__(self) -> None:
        self._epoch = -1
        self._bytes = 0

    def decode(self, data: bytes, epoch: int) -> PeerFrame:
        """Return a frame; raise `DecodeError` if it is none, or one too many."""
        if epoch != self._epoch:
            self._epoch, self._bytes = epoch, 0
        self._bytes += len(data)
        if self._bytes > MAX_PEER_BYTES:
            raise DecodeError("an authority says more than it has to")
        return decode_peer_frame(data)


async def _until_ended(channel: Channel[PeerFrame], scope: trio.CancelScope) -> None:
    """Nothing comes over this link but its end."""
    while await channel.receive():
        pass
    scope.cancel()
