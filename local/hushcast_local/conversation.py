"""Conversation: one application's connection, on which many requests are under way at once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import msgspec
import trio

from hushcast.control_messages import (
    MAX_REQUESTS,
    Answer,
    EndAnswer,
    EndNotice,
    FailureAnswer,
    FailureKind,
    Request,
    ShownNotice,
    TopicSubscribeRequest,
    decode_application_message,
    encode_line,
)
from hushcast.message_bases import Number
from hushcast_local.application_delivery import ApplicationDelivery
from hushcast_local.application_requests import ApplicationRequests, DaemonNotUp
from hushcast_local.inbox_records import UnknownCursor
from hushcast_local.outbox import NoReceiptYet
from hushcast_protocol.base.errors import DecodeError, Refusal, UsageError
from hushcast_runtime.counters import Counters
from hushcast_runtime.logs import log
from hushcast_runtime.transports.lines import PIECE, Lines


class Conversation:
    """Carries out what an application asks, each request in a task of its own."""

    def __init__(self, lines: Lines, requests: ApplicationRequests, counters: Counters) -> None:
        self._lines = lines
        self._requests = requests
        self._counters = counters
        self._telling, self._told = trio.open_memory_channel[tuple[bytes, trio.Event]](0)
        self._under_way: dict[int, trio.CancelScope] = {}
        self._deliveries: dict[int, ApplicationDelivery] = {}
        self._scope = trio.CancelScope()

    async def run(self) -> None:
        """Serve until the application leaves; what it had under way and not finished ends then."""
        with self._scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._write)
                try:
                    while (line := await self._lines.read()) is not None:
                        await self._hear(line, nursery)
                except (trio.BrokenResourceError, DecodeError):
                    pass  # it went away, or sends what is no line
                self._scope.cancel()

    async def tell(self, *answers: Answer) -> None:
        """Send answers in one piece; where the application is gone, end all that it had under way."""
        written = trio.Event()
        await self._telling.send((b"\n".join(map(encode_line, answers)), written))
        await written.wait()

    async def _write(self) -> None:
        # A task of its own: a request that is ended while it tells something must not leave half a line.
        try:
            async for first in self._told:
                told = [first, *self._told_beside(len(first[0]))]
                await self._lines.write(b"\n".join(data for data, _ in told))
                for _, written in told:
                    written.set()
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            self._scope.cancel()

    def _told_beside(self, size: int) -> Iterator[tuple[bytes, trio.Event]]:
        """Yield what others tell in the same turn: a commit to disk lets many answers go, in one write."""
        with suppress(trio.WouldBlock):
            while size < PIECE:
                yield (told := self._told.receive_nowait())
                size += len(told[0])

    async def _hear(self, line: bytes, nursery: trio.Nursery) -> None:
        try:
            said = decode_application_message(line)
        except DecodeError as error:
            await self.tell(FailureAnswer("usage", str(error), request=_number_in(line)))
            return
        number = said.request
        if isinstance(said, ShownNotice):
            if (feeding := self._deliveries.get(number)) is not None:
                feeding.shown(said)
        elif isinstance(said, EndNotice):
            if (scope := self._under_way.get(number)) is not None:
                scope.cancel()
        elif number in self._under_way:
            await self.tell(FailureAnswer("usage", f"request {number} is under way already", request=number))
        elif len(self._under_way) >= MAX_REQUESTS:
            busy = f"{MAX_REQUESTS} requests are under way on this connection: end one of them first"
            await self.tell(FailureAnswer("refused", busy, request=number))
        else:
            self._under_way[number] = trio.CancelScope()
            nursery.start_soon(self._carry_out, said)

    async def _carry_out(self, request: Request) -> None:
        number = request.request
        last: Answer | None = None
        try:
            with self._under_way[number] as scope:
                await self._answer(request)
            if scope.cancelled_caught:
                if isinstance(request, TopicSubscribeRequest):
                    # The last words of a program: what it has shown is not shown to the next one again,
                    # though the daemon be killed at once.
                    await self._requests.service.durable()
                last = EndAnswer(request=number)
        except (DecodeError, UsageError) as error:
            last = FailureAnswer("usage", str(error), request=number)
        except Refusal as refusal:
            last = FailureAnswer(_kind(refusal), refusal.reason, request=number)
        except Exception:
            self._counters.add("internal_errors")
            log.exception("an application's request met an error of this program")
            self._scope.cancel()
        finally:
            del self._under_way[number]
        if last is not None:
            await self.tell(last)

    async def _answer(self, request: Request) -> None:
        if not isinstance(request, TopicSubscribeRequest):
            await self.tell(await self._requests.answer(request))
            return
        feeding = self._deliveries[request.request] = ApplicationDelivery(request, self.tell)
        try:
            await feeding.run(self._requests.service)
        finally:
            del self._deliveries[request.request]


_KINDS: dict[type[Refusal], FailureKind] = {
    NoReceiptYet: "waiting",
    DaemonNotUp: "starting",
    UnknownCursor: "cursor",
}


def _kind(refusal: Refusal) -> FailureKind:
    return _KINDS.get(type(refusal), "refused")


class _Numbered(msgspec.Struct):
    request: Number = 0


def _number_in(line: bytes) -> int:
    """Return the number of a request that cannot be understood otherwise, 0 where it has none."""
    try:
        return msgspec.json.decode(line, type=_Numbered).request
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return 0
