"""Messages of one subscription, through every absence of the daemon."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, TypeVar

import anyio
import anyio.lowlevel
import msgspec

from hushcast import control_messages, events
from hushcast.arguments import Acknowledging
from hushcast.control_connection import Call, ControlConnection
from hushcast.errors import (
    ConnectionEnded,
    HushcastError,
    NoSuchCursor,
    OtherVersion,
    Refusal,
    Starting,
    TimedOut,
    UsageError,
)
from hushcast.events import Event, Lost, Message, Unopened, Withdrawn

if TYPE_CHECKING:
    from hushcast.purposes.keys import ReadFor

WINDOW = 64  # messages that may come before the program has taken one; 22 MB of the largest
AGAIN = 0.25  # seconds until a daemon that is starting is asked again
LAST_WORDS = 5.0  # seconds that the end of a subscription's block may take

AnswerT = TypeVar("AnswerT")


class DaemonAccess(Protocol):
    """A daemon as a subscription needs it."""

    reconnects: bool

    async def connection(self) -> ControlConnection:
        """Return the connection, waiting for the daemon if it is away; raise why there will be none."""

    async def ask(
        self, request: control_messages.Request, kind: type[AnswerT], timeout: float | None = None
    ) -> AnswerT:
        """Ask the daemon for what has one answer."""


class _Events:
    # No generator, which would have to be closed by whoever leaves it in the middle.
    def __init__(self, messages: Messages) -> None:
        self._messages = messages

    def __aiter__(self) -> AsyncIterator[Event]:
        return self

    async def __anext__(self) -> Event:
        if (event := await self._messages.next_event()) is None:
            raise StopAsyncIteration
        return event


class Messages:
    """A subscription while its block is open: an asynchronous iterator over its messages.

    It ends when somebody ends the subscription in the daemon. A daemon that goes away is waited for, and
    messages go on behind the last one that came.
    """

    def __init__(
        self,
        daemon: DaemonAccess,
        request: control_messages.TopicSubscribeRequest,
        acknowledge: Acknowledging,
        purpose: ReadFor | None = None,
    ) -> None:
        self._daemon = daemon
        self._request = request
        self._mode = acknowledge
        self._purpose = purpose
        self._unopened = 0
        self._connection: ControlConnection | None = None
        self._call: Call | None = None
        self._last: Message | Lost | Unopened | Withdrawn | None = None  # handed out, and not done with
        self._got = 0  # the last cursor that came
        self._shown = 0  # the last that the program is done with
        self._acknowledged = 0  # the last that the program needs no more
        self._durable = 0  # … of which the daemon said that it is on its disk
        self._room = 0  # messages that the daemon may send more than it was told
        self._is_untold = False  # whether there is anything to tell it
        self._is_over = False
        self._told = control_messages.SubscribeAnswer("", 0)

    @property
    def topic(self) -> str:
        """The topic's name."""
        return self._told.topic

    @property
    def nodes(self) -> int:
        """Relays, servers or edge brokers that had confirmed when it began; 0 where the carrier has none."""
        return self._told.nodes

    @property
    def by(self) -> str:
        """What those are: `relay`, `server`, `edge broker`, or `host` where no tree of relays leads here."""
        return self._told.by

    @property
    def outlook(self) -> str | None:
        """For people, under cover or without trees: when messages come, and under cover what shows who reads.

        Elsewhere they did at once.
        """
        return self._told.outlook

    @property
    def unopened(self) -> int:
        """Messages that came and do not open for the purpose of the subscription."""
        return self._unopened

    async def __aenter__(self) -> Messages:
        """Subscribe; return once messages reach the daemon. Raises `UsageError`, `Refusal`, `NoDaemon`."""
        await self._open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Listen no more; the subscription stays in the daemon. Without an error the last message is done."""
        if error is None:
            self._done()
        with anyio.move_on_after(LAST_WORDS, shield=True), suppress(HushcastError):
            if self._mode == "automatic" and self._acknowledged > self._durable:
                await self._make_durable(LAST_WORDS)
            if self._connection is not None and self._call is not None:
                self._tell()
                await self._connection.finish(self._call)
        if self._connection is not None and self._call is not None:
            self._connection.close(self._call)
        self._is_over = True

    def __aiter__(self) -> AsyncIterator[Message]:
        """Iterate over the messages alone."""
        return self

    async def __anext__(self) -> Message:
        """Return the next message; the one before is done."""
        while (event := await self.next_event()) is not None:
            if isinstance(event, Message):
                return event
        raise StopAsyncIteration

    def events(self) -> AsyncIterator[Event]:
        """Iterate over messages, and over what happened to others and to the daemon."""
        return _Events(self)

    async def acknowledge(self, message: Message) -> None:
        """Acknowledge a message and all before it: none of them is shown again.

        On return this is on the daemon's disk. Raises `Refusal` where the subscription was ended, and what
        the calls of `Daemon` raise.
        """
        self._acknowledged = max(self._acknowledged, message.cursor)
        await self._make_durable(None)

    def done(self) -> None:
        """Be done with the last message before the next is asked for: it is acknowledged, or shown."""
        self._done()
        self._tell()

    def undone(self) -> None:
        """Leave the last message undone, also when the block is left without an error: it comes again."""
        if self._last is not None:
            self._let_go()

    def _done(self) -> None:
        if self._last is None:
            return
        self._shown = self._last.cursor
        if self._mode == "automatic":
            self._acknowledged = max(self._acknowledged, self._shown)
        self._let_go()

    def _let_go(self) -> None:
        """Have another message come for the last one."""
        self._room += not isinstance(self._last, Lost)
        self._last, self._is_untold = None, True
        if self._room >= WINDOW // 2:
            self._tell()

    async def next_event(self, timeout: float | None = None) -> Event | None:
        """Return the next event; `None` when the subscription has ended. The message before is done.

        Raises `TimedOut` after `timeout` seconds without one; nothing is lost by that.
        """
        if timeout is None:
            return await self._next()
        event = None
        with anyio.move_on_after(timeout) as scope:
            event = await self._next()
        if scope.cancelled_caught:
            raise TimedOut(f"nothing came within {timeout:g} s")
        return event

    async def _next(self) -> Event | None:
        if self._connection is None:
            raise UsageError("the subscription is not open: `async with daemon.subscribe(…) as messages`")
        self._done()
        while not self._is_over:
            if self._call is None:
                await self._open()
                return events.Reconnected()
            if self._call.has_answer:
                await anyio.lowlevel.checkpoint()  # a busy subscription lets others run, too
            else:
                self._tell()
            try:
                event = self._event(await self._call.next())
            except ConnectionEnded:
                self._call = None
                if not self._daemon.reconnects:
                    raise
                return events.Disconnected()
            if event is not None:
                return event
        return None

    def _event(self, answer: control_messages.Answer) -> Event | None:
        """Return what an answer tells; `None` at the end."""
        if isinstance(answer, control_messages.MessageNotice):
            self._got = answer.cursor
            self._last = self._opened(events.message(answer))
            return self._last
        if isinstance(answer, control_messages.LossNotice):
            self._got = answer.cursor
            self._last = Lost(answer.topic, answer.count, answer.cursor)
            return self._last
        if isinstance(answer, control_messages.GapNotice):
            return events.Gap(answer.topic, answer.id)
        if isinstance(answer, control_messages.CoverageAnswer):
            return events.coverage(answer.subscriptions[0])
        if isinstance(answer, control_messages.UnsubscribeAnswer):
            self._is_over = True
            return None
        raise OtherVersion("the daemon speaks another version: its answer is to another question")

    def _opened(self, message: Message) -> Message | Unopened | Withdrawn:
        """Return what is in a message for the purpose of the subscription, if it has one."""
        if self._purpose is None:
            return message
        found = self._purpose.open(message.payload)
        if isinstance(found, str):
            self._unopened += 1
            return Unopened(message.topic, message.id, message.cursor, str(found))
        withdrawal = found.withdrawn_by.hex()
        if found.lock:
            return Withdrawn(message.topic, withdrawal, message.cursor)
        from hushcast_protocol.mqtt.envelope import disclose  # of no use to other subscriptions

        inside = disclose(found.content)
        return replace(message, payload=inside.payload, path=inside.path, withdrawal=withdrawal)

    async def _open(self) -> None:
        """Subscribe, behind the last message that came."""
        is_new = self._connection is None
        self._is_over = False
        while True:
            if self._acknowledged > self._durable:
                with suppress(Refusal):  # it was ended meanwhile: there is nothing of it any more
                    await self._make_durable(math.inf)  # a daemon that is away is waited for
            connection = await self._daemon.connection()
            since = self._got or self._request.since
            call = connection.open(msgspec.structs.replace(self._request, since=since))
            try:
                told = await call.expect(control_messages.SubscribeAnswer)
            except NoSuchCursor:
                connection.close(call)
                if is_new:
                    raise
                # The subscription was ended and begun anew meanwhile: its messages count from 1 again.
                self._got = self._shown = self._acknowledged = self._durable = 0
                self._request = msgspec.structs.replace(self._request, since=0)
            except (ConnectionEnded, Starting):
                connection.close(call)
                if not self._daemon.reconnects:
                    raise
                await anyio.sleep(AGAIN)
            except BaseException:
                connection.close(call)
                raise
            else:
                self._connection, self._call, self._room, self._told = connection, call, 0, told
                self._is_untold = self._shown > 0  # the daemon may not have heard
                # What it held was meant, whatever is subscribed to by the time that it comes again.
                self._request = msgspec.structs.replace(self._request, open=True, past=None)
                return

    def _tell(self) -> None:
        """Tell the daemon how far the program has come, and that it may send more."""
        if self._is_untold and self._call is not None:
            shown = self._shown if self._mode == "never" else 0
            acknowledged = self._acknowledged if self._mode == "automatic" else 0
            self._call.shown(shown, acknowledged, self._room)
            self._room, self._is_untold = 0, False

    async def _make_durable(self, timeout: float | None) -> None:
        cursor = self._acknowledged
        request = control_messages.AcknowledgeRequest(self._request.topic, cursor, self._request.where)
        with suppress(NoSuchCursor):  # the subscription was begun anew: there is nothing of it any more
            await self._daemon.ask(request, control_messages.AcknowledgeAnswer, timeout)
        self._durable = max(self._durable, cursor)
