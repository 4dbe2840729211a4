"""The daemon's end of the control socket."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import structlog
import trio

from hushcast.lines import Lines
from hushcast.words import (
    MAX_LINE,
    Acknowledge,
    Acknowledged,
    Answer,
    Cancel,
    Cancelled,
    Coverage,
    Covered,
    Delivered,
    DoctorReport,
    Examine,
    Failed,
    Finding,
    Lost,
    Missed,
    Outbox,
    OutboxList,
    Publish,
    Published,
    Request,
    Status,
    StatusReport,
    Subscribe,
    Subscribed,
    SubscriptionList,
    Subscriptions,
    Unsubscribe,
    Unsubscribed,
    as_text,
    decode_request,
    decode_shown,
    encode_line,
)
from hushcast_local.inbox import Gap, Received
from hushcast_local.outbox import NotYetTaken
from hushcast_local.service import InboxFeed, Service
from hushcast_protocol.base.errors import DecodeError, Refusal, UsageError
from hushcast_protocol.base.secrets import Seed
from hushcast_protocol.content.attributes import as_json
from hushcast_protocol.content.bodies import Content, fingerprint
from hushcast_protocol.content.predicates import parse_where
from hushcast_protocol.content.topics import Interest, Topic, parse_topic, parse_values
from hushcast_runtime.counters import Counters
from hushcast_runtime.local_sockets import listen_at
from hushcast_runtime.rooms import Room
from hushcast_runtime.transports.base import TransportError

MAX_CONNECTIONS = 256  # applications that have asked, at once; one more is told so
MAX_SILENT = 64  # connections that have not; one more takes the place of another
REQUEST_WITHIN = 60.0  # seconds in which a connection must ask: some are made by hand

log = structlog.get_logger("control")


class ControlServer:
    """Serves applications; until the daemon is up it answers `status` and `doctor` only.

    Every program that can open the socket is trusted: its file mode is the access control, 0600 or, with
    `socket_group`, 0660.
    """

    def __init__(
        self,
        path: Path,
        status: Callable[[], dict[str, Any]],
        examine: Callable[[], Awaitable[list[Finding]]],
        counters: Counters,
        group: str | None = None,
    ) -> None:
        self._path = path
        self._group = group
        self._status = status
        self._examine = examine
        self._counters = counters
        self._service: Service | None = None
        self._silent = Room(MAX_SILENT)
        self._served = 0

    def open(self, service: Service) -> None:
        """Serve everything from now on."""
        self._service = service

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Listen until cancelled; the caller holds the lock of the state directory."""
        listener = listen_at(self._path, self._group, "the control socket")
        try:
            await trio.serve_listeners(self._serve, [listener], task_status=task_status)  # type: ignore[arg-type]
        finally:
            self._path.unlink(missing_ok=True)

    async def _serve(self, stream: trio.SocketStream) -> None:
        try:
            async with stream:
                await self._converse(Lines(stream, MAX_LINE))
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass  # the application went away
        except Exception:
            self._counters.add("internal_errors")
            log.exception("an application's request met an error of this program")

    async def _converse(self, lines: Lines) -> None:
        try:
            line = await self._first(lines)
            if line is not None:
                with self._counted():
                    await self._serve_request(line, lines)
        except (DecodeError, UsageError) as error:
            await lines.write(encode_line(Failed("usage", str(error))))
        except NotYetTaken as waits:
            await lines.write(encode_line(Failed("waiting", waits.reason)))
        except Refusal as refusal:
            await lines.write(encode_line(Failed("refused", refusal.reason)))

    async def _first(self, lines: Lines) -> bytes | None:
        """Return the request; `None` if the application left, or was evicted because it sent none."""
        try:
            with self._silent.place(REQUEST_WITHIN):
                return await lines.read()
        except TransportError:
            return None

    @contextmanager
    def _counted(self) -> Iterator[None]:
        if self._served >= MAX_CONNECTIONS:
            raise Refusal(f"{MAX_CONNECTIONS} applications are connected: end one of them first")
        self._served += 1
        try:
            yield
        finally:
            self._served -= 1

    async def _serve_request(self, line: bytes, lines: Lines) -> None:
        request = decode_request(line)
        if isinstance(request, Subscribe):
            await self._feed(request, lines)
        elif isinstance(request, Publish):
            await self._publish(request, lines)
        else:
            await lines.write(encode_line(await self._answer(request)))

    async def _answer(self, request: Request) -> Answer:
        if isinstance(request, Status):
            return StatusReport(self._status())
        if isinstance(request, Examine):
            return DoctorReport(await self._examine())
        service = self._ready()
        if isinstance(request, Subscriptions):
            return SubscriptionList(service.subscriptions())
        if isinstance(request, Outbox):
            return OutboxList(service.outbox())
        if isinstance(request, Cancel):
            return await _cancelled(service, request.id)
        assert isinstance(request, Acknowledge | Coverage | Unsubscribe)
        topic = parse_topic(request.topic)
        predicate = None if request.where is None else parse_where(request.where, topic.attributes)
        if isinstance(request, Coverage):
            return _covered(service.coverage(topic, predicate))
        if isinstance(request, Acknowledge):
            await service.acknowledge(topic, request.cursor, predicate)
            return Acknowledged(topic.name, request.cursor)
        return Unsubscribed(topic.name, await service.unsubscribe(topic, predicate))

    async def _publish(self, request: Publish, lines: Lines) -> None:
        service = self._ready()
        topic = parse_topic(request.topic)
        content = Content(request.payload, parse_values(topic, request.set))
        queued = await service.enqueue(topic, content, _author(request), at_once=request.tell != "queued")
        published = Published(queued.id.hex(), topic.name)
        if request.tell != "accepted":
            await lines.write(encode_line(msgspec.structs.replace(published, receipt="queued")))
        if request.tell != "queued":
            await queued.taken()
            await lines.write(encode_line(published))

    def _ready(self) -> Service:
        if self._service is None:
            raise Refusal("the daemon is starting: `hushcast status` shows how far it is")
        return self._service

    async def _feed(self, request: Subscribe, lines: Lines) -> None:
        topic = parse_topic(request.topic)
        interest = Interest(topic, parse_where(request.where, topic.attributes))
        service = self._ready()
        failure: Exception | None = None
        async with trio.open_nursery() as nursery:
            # If the application leaves, the wait for relays must end, too.
            listening = _Listening(lines)
            nursery.start_soon(listening.run, nursery.cancel_scope)
            try:
                listening.feed = await service.subscribe(interest, request.since)
                await _pour(topic, listening.feed, lines)
            except (Refusal, UsageError, trio.BrokenResourceError) as error:
                failure = error  # raised after the nursery, which would wrap it
            finally:
                if listening.feed is not None:
                    listening.feed.close()
                nursery.cancel_scope.cancel()
        if failure is not None:
            raise failure


async def _pour(topic: Topic, feed: InboxFeed, lines: Lines) -> None:
    """Write a feed's messages as they come, until the subscription ends."""
    await lines.write(encode_line(Subscribed(topic.name, feed.nodes)))
    await _tell_losses(topic, feed, lines)
    while (arrival := await feed.next()) is not None:
        await _tell_losses(topic, feed, lines)
        told = (
            Missed(topic.name, arrival.id.hex()) if isinstance(arrival, Gap) else _delivered(topic, *arrival)
        )
        await lines.write(encode_line(told))
    await lines.write(encode_line(Unsubscribed(topic.name, True)))


async def _tell_losses(topic: Topic, feed: InboxFeed, lines: Lines) -> None:
    if lost := feed.lost():
        await lines.write(encode_line(Lost(topic.name, lost, feed.position)))


def _covered(described: list[dict[str, Any]]) -> Covered:
    if not described:
        raise Refusal("there is no such subscription: `hushcast subscriptions` lists them")
    return Covered(described)


async def _cancelled(service: Service, written: str) -> Cancelled:
    try:
        message_id = bytes.fromhex(written)
    except ValueError:
        raise UsageError("an id has 64 hexadecimal digits: `hushcast outbox` lists them") from None
    topic = await service.cancel(message_id)
    if topic is None:
        raise Refusal("no such message is in the outbox: relays have taken it over, or it never was there")
    return Cancelled(message_id.hex(), topic)


def _delivered(topic: Topic, cursor: int, received: Received) -> Delivered:
    text, encoding = as_text(received.payload)
    known = {attribute.name: attribute for attribute in topic.attributes}
    attributes = {name: as_json(known[name], value) for name, value in received.values.items()}
    return Delivered(
        topic.name,
        received.id.hex(),
        text,
        encoding,
        round(received.received_at, 3),
        cursor,
        attributes or None,
        fingerprint(received.author) if received.author is not None else None,
    )


def _author(request: Publish) -> Seed | None:
    if request.author is None:
        return None
    if len(request.author) != Seed.LENGTH:
        raise UsageError(f"an author's key has {Seed.LENGTH} bytes: `hushcast key new` makes one")
    return Seed(request.author)


class _Listening:
    """Reads a listening application's replies, and notices when it leaves."""

    def __init__(self, lines: Lines) -> None:
        self._lines = lines
        self.feed: InboxFeed | None = None

    async def run(self, scope: trio.CancelScope) -> None:
        try:
            while (line := await self._lines.read()) is not None:
                if self.feed is not None:
                    shown = decode_shown(line)
                    self.feed.shown(shown.cursor, shown.acknowledged)
        except (trio.BrokenResourceError, DecodeError):
            pass
        scope.cancel()
