"""A session: one open link to a named peer, which writes without making callers wait and awaits answers."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import trio

from hushcast_protocol.base.errors import DecodeError
from hushcast_protocol.base.link.hop_link import LinkState
from hushcast_protocol.base.wire import Wire
from hushcast_protocol.overlay.frames import Ack, Forward, ParcelAnswer, ParcelFrame
from hushcast_protocol.overlay.keeper_frames import HandIn
from hushcast_runtime.storage.spool import SpooledMessage
from hushcast_runtime.transports.base import TransportError
from hushcast_runtime.transports.channel import FRAMES_AT_ONCE, Channel
from hushcast_runtime.transports.next_turn import in_next_turn

if TYPE_CHECKING:
    from hushcast_overlay.relay.peers import Peer

MAX_REQUESTS = 1024  # parcels whose answers are awaited on one link
MAX_CONFIRMATIONS_WAITING = 32_768  # in answers to be written on one link, ten of the longest; 2.5 MB
_AT_ONCE = 256 * 1024  # bytes handed to the channel at once, and a frame more: held until they are out


def _nobody(_: Session) -> None:
    """Nobody reads it yet."""


class _Awaited:
    """A parcel's answer, once it is there; none if the link ended."""

    __slots__ = ("answer", "over")

    def __init__(self) -> None:
        self.over = trio.Event()
        self.answer: ParcelAnswer | None = None


class LinkQueue:
    """What waits to be written to one link, while anything does."""

    __slots__ = ("_ahead", "_carrier", "_confirmations", "_forwards", "posted")

    def __init__(self, carrier: type[Forward | HandIn]) -> None:
        """`carrier` is the frame in which messages go over this link."""
        self._carrier = carrier
        self._forwards: list[SpooledMessage] = []  # bounded by the window
        self.posted: list[Wire] = []
        """Other frames, which go before messages, in turn."""
        self._confirmations = 0  # in the answers among these
        self._ahead = 0  # bytes of parcels, which anybody hands in, over those of messages beside them

    def __bool__(self) -> bool:
        return bool(self.posted or self._forwards)

    def forward(self, items: Iterable[SpooledMessage]) -> None:
        """Add messages that were put into the window."""
        self._forwards += items

    def post(self, frame: Wire) -> bool:
        """Add a frame; return false where more of them wait than of a peer that reads."""
        if isinstance(frame, ParcelAnswer):
            self._confirmations += len(frame.confirmations)
        if len(self.posted) >= MAX_REQUESTS or self._confirmations > MAX_CONFIRMATIONS_WAITING:
            return False
        self.posted.append(frame)
        return True

    def next(self) -> list[Wire]:
        """Take what is written next: parcels and messages get as many bytes, where both wait."""
        frames: list[Wire] = []
        size = 0
        if not self.posted:  # as most often: messages alone
            for item in self._forwards[:FRAMES_AT_ONCE]:
                if size >= _AT_ONCE:
                    break
                frames.append(self._carrier(item.message))
                size += item.size
            del self._forwards[: len(frames)]
            self._ahead = 0
            return frames
        while self and size < _AT_ONCE and len(frames) < FRAMES_AT_ONCE:
            if not (self.posted and self._forwards):
                self._ahead = 0
            if self.posted and self._ahead <= 0:
                frame = self.posted.pop(0)
                taken = len(frame.sealed) if isinstance(frame, ParcelFrame) else 0
                self._ahead += taken
                if isinstance(frame, ParcelAnswer):
                    self._confirmations -= len(frame.confirmations)
            else:
                item = self._forwards.pop(0)
                frame = self._carrier(item.message)
                taken = item.size
                self._ahead -= taken
            size += taken
            frames.append(frame)
        return frames


class Session(LinkState[SpooledMessage]):
    """The state of a link, and the channel under it; what is being written is bounded by the window."""

    __slots__ = (
        "_answers",
        "_carrier",
        "_flushing",
        "_parcels",
        "_queue",
        "_requests",
        "_said",
        "_spawn",
        "_taking",
        "attend",
        "channel",
        "is_over",
        "peer",
        "unwritten",
    )

    def __init__(
        self,
        channel: Channel[Any],
        spawn: Callable[..., None],
        now: float,
        carrier: type[Forward | HandIn] = Forward,
    ) -> None:
        """`carrier` is the frame in which messages go over this link."""
        super().__init__(now)
        self._carrier = carrier
        self.channel = channel
        self.is_over = False
        """Whether nothing more is to be read."""
        self.unwritten: int | None = None
        """Bytes that came, since an acknowledgement was last set about; none where none is."""
        self.peer: Peer
        """Whose machine it belongs to."""
        self.attend: Callable[[Session], None] = _nobody
        """Has whoever reads the channel attend to it."""
        # Entered, one takes 0.8 kB: a link that waits for more has none, and hears by its stream.
        self._taking: trio.CancelScope | None = None
        self._parcels: set[trio.CancelScope] | None = None  # of the peer's that are being carried out
        self._spawn = spawn
        self._queue: LinkQueue | None = None  # while anything waits to be written
        self._flushing = False
        self._answers: dict[int, _Awaited] | None = None  # those that are awaited, by the numbers of parcels
        self._said: deque[tuple[Wire, trio.Event]] | None = None  # frames whose writing somebody waits for
        self._requests = 0

    def forward(self, items: Iterable[SpooledMessage]) -> None:
        """Write messages that were put into the window."""
        self._waiting().forward(items)
        self.flush()

    def post(self, frame: Wire) -> None:
        """Write a frame that answers one of the peer's; end the session of a peer that does not read them."""
        if self._waiting().post(frame):
            self.flush()
        else:
            self.give_up()

    async def say(self, frame: Wire) -> None:
        """Write a frame that has no answer, and wait until it is out; raise `TransportError` as `request`."""
        out = trio.Event()
        self._said = self._said or deque()
        self._said.append((frame, out))
        self.post(frame)
        await out.wait()
        if self.is_over:
            raise TransportError("the link ended before a frame was written")

    async def request(self, sealed: bytes) -> ParcelAnswer:
        """Hand the peer a parcel and wait for its answer; raise `TransportError` if the link ends first."""
        self._answers = answers = self._answers or {}
        if len(answers) >= MAX_REQUESTS:
            raise TransportError("too many parcels wait for answers on one link")
        self._requests += 1
        number = self._requests
        awaited = answers[number] = _Awaited()
        frame = ParcelFrame(number, sealed, None)
        try:
            self.post(frame)
            await awaited.over.wait()
            if awaited.answer is None:
                raise TransportError("the link ended before the parcel was answered")
            return awaited.answer
        finally:
            answers.pop(number, None)
            if awaited.answer is None and self._queue is not None:
                with suppress(ValueError):
                    self._queue.posted.remove(frame)  # the other end does not read, and nobody waits any more
            if not answers:
                self._answers = None  # an emptied dict keeps its room

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
        if (awaited := (self._answers or {}).get(answer.number)) is not None:
            awaited.answer = answer
            awaited.over.set()

    def taking(self) -> trio.CancelScope:
        """Return the scope in which to take over what came: it is left once the session is given up."""
        self._taking = trio.CancelScope()
        if self.is_over:
            self._taking.cancel()
        return self._taking

    def stir(self) -> None:
        """Have whoever reads the channel look at it: more has come, or it was closed."""
        self.attend(self)

    def give_up(self) -> None:
        """Have whoever reads the channel end the session, whether it waits for more or takes what came."""
        if not self.is_over:
            self.is_over = True
            if self._taking is not None:
                self._taking.cancel()
            self._spawn(self.channel.aclose)

    def end(self) -> None:
        """Wake all who wait for answers that will not come."""
        self.is_over = True
        for awaited in (self._answers or {}).values():
            awaited.over.set()
        for parcel in self._parcels or ():
            parcel.cancel()
        for _, out in self._said or ():
            out.set()

    def _waiting(self) -> LinkQueue:
        if self._queue is None:
            self._queue = LinkQueue(self._carrier)
        return self._queue

    def flush(self) -> None:
        """Have written what waits, and the acknowledgement that is owed."""
        if not self._flushing:
            self._flushing = True
            in_next_turn(self._write)  # with what else this turn brings

    def _note_said(self, frames: list[Wire]) -> None:
        """Wake those who wait until one of these frames is out: they are written in their order."""
        if self._said is None:  # as most often
            return
        for frame in frames:
            if self._said and frame is self._said[0][0]:
                self._said.popleft()[1].set()
        self._said = self._said or None  # an emptied queue keeps its room

    def _write(self) -> None:
        """Write what waits if the stream takes it at once, as most often; have a task write the rest."""
        frames: list[Wire] = []
        if self.is_over:  # nobody reads it any more, and the daemon may start no more tasks
            return
        try:
            if self._waits and self.channel.is_free:
                frames = self._take()
                self.channel.send_at_once(*frames)
        except TransportError:
            self.give_up()
            return
        except Exception:
            self.give_up()
            raise
        if self._waits or self.channel.holds_unsent:
            self._spawn(self._flush, frames)
            return
        self._flushing = False
        self._note_said(frames)

    @property
    def _waits(self) -> bool:
        return bool(self._queue or self.is_due)

    def _take(self) -> list[Wire]:
        frames = self._queue.next() if self._queue else []
        if not self._queue:
            self._queue = None  # emptied lists keep their room
        if (due := self.due()) is not None:
            frames.append(Ack(*due))
        return frames

    async def _flush(self, begun: list[Wire]) -> None:
        # In a task of its own: a reader that waited to send could wait for a peer that waits for it.
        try:
            if self.channel.holds_unsent:
                await self.channel.send()
            self._note_said(begun)
            while self._waits:
                frames = self._take()
                await self.channel.send(*frames)
                self._note_said(frames)
        except TransportError:
            self.give_up()
        finally:
            self._flushing = False
