"""Users: their unnamed connections at a proxy, each for one pseudonym; requests are answered in order.

A connection has a slot for strangers while it asks. One that attaches gets a place among those
that stay, and has to show that it lives.
"""

from __future__ import annotations

from collections import deque

import trio

from hushcast_central.proxy.attached_users import AttachedUser, HeldBytes
from hushcast_central.proxy.server_link import ServerLink
from hushcast_central.proxy.transformation import ProxyTransformation
from hushcast_protocol.base.buckets import TokenBucket
from hushcast_protocol.base.errors import DecodeError
from hushcast_protocol.base.link.hop_link import QUIET
from hushcast_protocol.central.frames import (
    AcknowledgeDeliveries,
    Attach,
    AttachAnswer,
    FromUser,
    Introduce,
    Ping,
    Pong,
)
from hushcast_runtime.admission import Admission
from hushcast_runtime.context import Context
from hushcast_runtime.transports.channel import Channel
from hushcast_runtime.transports.channel_writer import Writer
from hushcast_runtime.transports.connection_guard import strangers_room
from hushcast_runtime.transports.connection_slots import ConnectionSlots

MAX_ATTACHED = 4096  # connections that stay; one more takes the place of another
ASK_WITHIN = 120.0  # seconds that an unattached connection may stay; each answer may take the server 60
SILENT = 3 * QUIET  # seconds after which an attached connection without a sign of life is closed
REQUESTS_A_SECOND, REQUESTS_AT_ONCE = 8.0, 64.0  # of one connection; who says more is slowed

UserChannel = Channel[FromUser]


class _Visit:
    """A connection: frames that came and were not looked at, its pace, and whom it speaks for."""

    def __init__(self, channel: UserChannel, now: float) -> None:
        self.channel = channel
        self.pseudonym: bytes | None = None
        self.bucket = TokenBucket(REQUESTS_A_SECOND, REQUESTS_AT_ONCE, now)
        self._frames: deque[FromUser] = deque()

    async def next(self) -> FromUser | None:
        """Return the next frame; none when the user closed the connection."""
        if not self._frames:
            self._frames.extend(await self.channel.receive())
        return self._frames.popleft() if self._frames else None


class Users:
    """The users of one proxy."""

    def __init__(
        self, passing: ProxyTransformation, admission: Admission, server: ServerLink, context: Context
    ) -> None:
        self._passing = passing
        self._admission = admission
        self._server = server
        self._env = context.env
        self._spawn = context.spawn
        self._strangers = strangers_room(context.env, context.counters)
        self._staying = ConnectionSlots(
            MAX_ATTACHED, context.env.below, context.counters.add, "strangers_dropped"
        )
        self.held = HeldBytes(passing)

    def __len__(self) -> int:
        """Return how many connections are open."""
        return len(self._strangers) + len(self._staying)

    @property
    def attached(self) -> int:
        """How many of them are attached."""
        return len(self._staying)

    async def serve(self, channel: UserChannel) -> None:
        """Serve one connection; raises a `PeerError` or `TransportError`."""
        if channel.peer is not None:
            raise DecodeError("a user showed a name")
        visit = _Visit(channel, self._env.elapsed())
        with self._strangers.place(ASK_WITHIN):
            attached = await self._until_attached(visit)
        if attached is None:
            return
        attachment, answer = attached
        try:
            with self._staying.place(), attachment.scope:
                writer = Writer(channel, self._spawn, attachment.scope, attachment.wrote)
                attachment.begin(writer, answer)
                await self._listen(visit, attachment)
        finally:
            self._server.detach(attachment.number)
            attachment.scope.cancel()
            attachment.drop()

    async def _until_attached(self, visit: _Visit) -> tuple[AttachedUser, AttachAnswer] | None:
        """Answer requests until one attaches; return none when the user leaves."""
        while (frame := await visit.next()) is not None:
            await trio.sleep(visit.bucket.owe(self._env.elapsed()))
            if isinstance(frame, AcknowledgeDeliveries):
                raise DecodeError("a delivery is acknowledged before there is one")
            if isinstance(frame, Ping):
                await visit.channel.send(self._pong())
                continue
            if not isinstance(frame, Introduce):
                if visit.pseudonym not in (None, frame.pseudonym):
                    raise DecodeError("a connection is for two pseudonyms")
                visit.pseudonym = frame.pseudonym
            if not isinstance(frame, Attach):
                await visit.channel.send(await self._passing.answer(frame))
                continue
            attachment = AttachedUser(frame.pseudonym, self.held)
            try:
                attachment.number, answer = await self._passing.attach(frame, attachment)
            except BaseException:
                attachment.drop()  # what came with an answer that nobody waits for any more
                raise
            if isinstance(answer, AttachAnswer):
                return attachment, answer
            attachment.drop()
            await visit.channel.send(answer)
        return None

    async def _listen(self, visit: _Visit, attachment: AttachedUser) -> None:
        """Take an attached user's acknowledgements and signs of life, until it leaves or falls silent."""
        while True:
            frame = None
            with trio.move_on_after(SILENT):
                frame = await visit.next()
            if isinstance(frame, AcknowledgeDeliveries):
                self._server.acknowledge(attachment.number, frame)
            elif isinstance(frame, Ping):
                attachment.say(self._pong())
            elif frame is None:
                return
            else:
                raise DecodeError("an attached user asked for something else")

    def _pong(self) -> Pong:
        return Pong(self._admission.difficulty, self._server.is_open, self._server.wire.signed)
