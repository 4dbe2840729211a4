"""A session: one open link to a named peer, with acknowledgements, window and answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import trio

from hushcast_overlay.connector import OverlayChannel
from hushcast_overlay.spool import Spooled
from hushcast_protocol.base.errors import DecodeError
from hushcast_protocol.base.wire import Wire
from hushcast_protocol.overlay.frames import MAX_UNROUTED, Ack, Forward, ParcelAnswer, ParcelFrame, Ping
from hushcast_runtime.transports.base import TransportError

IDLE = 300.0  # seconds without a frame after which a link is closed: circuits cost both ends and Tor
QUIET = 60.0  # seconds of silence after which a link that is to stay open is tried
ACKNOWLEDGE_WITHIN = 30.0  # seconds; the link to a daemon that was killed may just fall silent
SLOWEST = 4096  # bytes a second of the slowest path that is worth waiting for
MAX_UNACKNOWLEDGED = 4 * 1024 * 1024  # bytes sent on a link before the next waits for an acknowledgement
MAX_REQUESTS = 1024  # parcels whose answers are awaited on one link


class _Awaited:
    """A parcel's answer, once it is there; none if the link ended."""

    __slots__ = ("answer", "over")

    def __init__(self) -> None:
        self.over = trio.Event()
        self.answer: ParcelAnswer | None = None


class Session:
    """Sends without making the caller wait; what is being sent is bounded by the window."""

    __slots__ = (
        "_ack_due",
        "_acknowledged",
        "_answers",
        "_flushing",
        "_heard",
        "_in_flight",
        "_outbox",
        "_parcels",
        "_received",
        "_requests",
        "_spawn",
        "_unrouted",
        "channel",
        "scope",
        "unacknowledged",
    )

    def __init__(self, channel: OverlayChannel, spawn: Callable[..., None]) -> None:
        self.channel = channel
        self.scope = trio.CancelScope()
        """Cancelled to end the session; its deadline moves with every frame of the peer's."""
        self.unacknowledged: list[Spooled] = []
        self._parcels: set[trio.CancelScope] | None = None  # of the peer's that are being carried out
        self._spawn = spawn
        self._in_flight = 0
        self._acknowledged = 0
        self._received = 0
        self._ack_due = False
        self._unrouted: list[int] = []
        self._outbox: list[Wire] = []
        self._flushing = False
        self._answers: dict[int, _Awaited] = {}
        self._requests = 0
        self.alive()

    def alive(self) -> None:
        """Hear from the peer: put off the end that comes with idleness, or with no acknowledgement."""
        self._heard = trio.current_time()
        patience = IDLE
        if self.unacknowledged:
            patience = ACKNOWLEDGE_WITHIN + len(self.unacknowledged[0].message.body) / SLOWEST
        self.scope.deadline = self._heard + patience

    def has_room(self, more: int = 0) -> bool:
        """Tell whether the window takes another message beside `more` bytes."""
        return self._in_flight + more < MAX_UNACKNOWLEDGED

    def forward(self, items: Iterable[Spooled]) -> None:
        """Send messages; they stay in `unacknowledged` until the peer has spooled them."""
        was_waiting = bool(self.unacknowledged)
        for item in items:
            self.unacknowledged.append(item)
            self._in_flight += len(item.message.body)
            self._outbox.append(Forward(item.message))
        if not was_waiting:
            self.alive()
        self._flush_soon()

    def acknowledged(self, ack: Ack) -> tuple[list[Spooled], list[Spooled]]:
        """Take a cumulative acknowledgement; return what the peer took over, and what it had no route for."""
        taken: list[Spooled] = []
        unrouted: list[Spooled] = []
        strange = set(ack.unrouted)
        answered = self.unacknowledged[: max(0, ack.number - self._acknowledged)]
        del self.unacknowledged[: len(answered)]
        for item in answered:
            self._in_flight -= len(item.message.body)
            self._acknowledged += 1
            (unrouted if self._acknowledged in strange else taken).append(item)
        return taken, unrouted

    def was_fruitless(self) -> bool:
        """Tell whether the peer was sent messages and acknowledged none."""
        return bool(self.unacknowledged) and not self._acknowledged

    def acknowledge(self, count: int, unrouted: Iterable[int] = ()) -> None:
        """Acknowledge `count` more forwards of the peer's; those at places `unrouted` (from 0) as such."""
        self._unrouted += [self._received + place + 1 for place in unrouted]
        if len(self._unrouted) > MAX_UNROUTED:
            self.scope.cancel()  # a peer that sends on without reading what we answer
            return
        self._received += count
        self._ack_due = True
        self._flush_soon()

    def ping(self) -> None:
        """Have a peer that was silent say something, so that neither end takes the link for idle."""
        if trio.current_time() - self._heard > QUIET:
            self.post(Ping())

    def post(self, frame: Wire) -> None:
        """Send a frame that answers one of the peer's; end the session of a peer that does not read them."""
        if len(self._outbox) >= MAX_REQUESTS:
            self.scope.cancel()
            return
        self._outbox.append(frame)
        self._flush_soon()

    async def request(self, sealed: bytes) -> ParcelAnswer:
        """Hand the peer a parcel and wait for its answer; raise `TransportError` if the link ends first."""
        if len(self._answers) >= MAX_REQUESTS:
            raise TransportError("too many parcels wait for answers on one link")
        self._requests += 1
        number = self._requests
        awaited = self._answers[number] = _Awaited()
        try:
            self.post(ParcelFrame(number, sealed, None))
            await awaited.over.wait()
            if awaited.answer is None:
                raise TransportError("the link ended before the parcel was answered")
            return awaited.answer
        finally:
            self._answers.pop(number, None)
            if not self._answers:
                self._answers.clear()  # an emptied dict keeps its room

    def begin_parcel(self) -> trio.CancelScope:
        """Return the scope in which to carry out a parcel of the peer's; it ends with the link.

        Raises `DecodeError` if there are too many.
        """
        self._parcels = self._parcels or set()
        if len(self._parcels) >= MAX_REQUESTS:
            raise DecodeError("a peer hands in more parcels at once than any tree needs")
        scope = trio.CancelScope()
        self._parcels.add(scope)
        return scope

    def end_parcel(self, scope: trio.CancelScope) -> None:
        """Note that a parcel of the peer's was carried out, or given up."""
        if self._parcels is not None:
            self._parcels.discard(scope)
            self._parcels = self._parcels or None  # an emptied set keeps its room

    def answered(self, answer: ParcelAnswer) -> None:
        """Take the peer's answer to a parcel."""
        if (awaited := self._answers.get(answer.number)) is not None:
            awaited.answer = answer
            awaited.over.set()

    def end(self) -> None:
        """Wake all who wait for answers that will not come."""
        self.scope.cancel()
        for awaited in self._answers.values():
            awaited.over.set()
        for parcel in self._parcels or ():
            parcel.cancel()

    def _flush_soon(self) -> None:
        if not self._flushing:
            self._flushing = True
            self._spawn(self._flush)

    async def _flush(self) -> None:
        # In a task of its own: a reader that waited to send could wait for a peer that waits for it.
        try:
            while self._outbox or self._ack_due:
                frames, self._outbox = self._outbox, []
                if self._ack_due:
                    self._ack_due = False
                    frames.append(Ack(self._received, tuple(self._unrouted)))
                    self._unrouted.clear()
                await self.channel.send(*frames)
        except TransportError:
            self.scope.cancel()
        finally:
            self._flushing = False
