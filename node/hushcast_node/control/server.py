"""The daemon's end of the control socket."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import structlog
import trio

from hushcast_node.control.lines import Lines
from hushcast_node.control.words import (
    MAX_LINE,
    Answer,
    Delivered,
    Described,
    Examine,
    Examined,
    Failed,
    Finding,
    Listed,
    Publish,
    Published,
    Request,
    Status,
    Subscribe,
    Subscribed,
    Subscriptions,
    Unsubscribe,
    Unsubscribed,
    as_text,
    decode_request,
    decode_shown,
    encode_line,
)
from hushcast_node.inbox import Received
from hushcast_node.pubsub import Feed, PubSub
from hushcast_protocol.attributes import as_json
from hushcast_protocol.bodies import Content, fingerprint
from hushcast_protocol.errors import DecodeError, Refusal, UsageError
from hushcast_protocol.predicates import parse_where
from hushcast_protocol.secrets import Seed
from hushcast_protocol.topics import Interest, Topic, parse_topic, parse_values
from hushcast_runtime.counters import Counters
from hushcast_runtime.local_sockets import listen_at

MAX_CONNECTIONS = 256  # at once; an application more waits until another leaves

log = structlog.get_logger("control")


class ControlServer:
    """Serves applications; until the daemon is up it answers `status` and `doctor` only.

    Whoever can open the socket is trusted: its file mode is the access control, 0600 or, with `socket_group`,
    0660.
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
        self._service: PubSub | None = None
        self._connections = trio.CapacityLimiter(MAX_CONNECTIONS)

    def open(self, service: PubSub) -> None:
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
        async with self._connections:
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
            line = await lines.read()
            if line is None:
                return
            request = decode_request(line)
            if isinstance(request, Subscribe):
                await self._feed(request, lines)
            else:
                await lines.write(encode_line(await self._answer(request)))
        except (DecodeError, UsageError) as error:
            await lines.write(encode_line(Failed("usage", str(error))))
        except Refusal as refusal:
            await lines.write(encode_line(Failed("refused", refusal.reason)))

    async def _answer(self, request: Request) -> Answer:
        if isinstance(request, Status):
            return Described(self._status())
        if isinstance(request, Examine):
            return Examined(await self._examine())
        service = self._ready()
        if isinstance(request, Subscriptions):
            return Listed(service.subscriptions())
        assert isinstance(request, Publish | Unsubscribe)
        topic = parse_topic(request.topic)
        if isinstance(request, Publish):
            content = Content(request.payload, parse_values(topic, request.set))
            accepted = await service.publish(topic, content, _author(request))
            return Published(accepted.id.hex(), topic.name)
        predicate = None if request.where is None else parse_where(request.where, topic.attributes)
        return Unsubscribed(topic.name, await service.unsubscribe(topic, predicate))

    def _ready(self) -> PubSub:
        if self._service is None:
            raise Refusal("the daemon is starting: `hushcast status` shows how far it is")
        return self._service

    async def _feed(self, request: Subscribe, lines: Lines) -> None:
        topic = parse_topic(request.topic)
        interest = Interest(topic, parse_where(request.where, topic.attributes))
        service = self._ready()
        failure: Exception | None = None
        async with trio.open_nursery() as nursery:
            # The application leaving must end the wait for relays, too.
            listening = _Listening(lines)
            nursery.start_soon(listening.run, nursery.cancel_scope)
            try:
                listening.feed = await service.subscribe(interest)
                await _pour(topic, listening.feed, lines)
            except (Refusal, UsageError, trio.BrokenResourceError) as error:
                failure = error  # raised behind the nursery, which would wrap it
            finally:
                if listening.feed is not None:
                    listening.feed.close()
                nursery.cancel_scope.cancel()
        if failure is not None:
            raise failure


async def _pour(topic: Topic, feed: Feed, lines: Lines) -> None:
    """Write a feed's messages as they come, until the subscription ends."""
    await lines.write(encode_line(Subscribed(topic.name, feed.nodes)))
    while (arrival := await feed.next()) is not None:
        await lines.write(encode_line(_delivered(topic, *arrival)))
    await lines.write(encode_line(Unsubscribed(topic.name, True)))


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
    """Hears what a listening application says, and when it leaves."""

    def __init__(self, lines: Lines) -> None:
        self._lines = lines
        self.feed: Feed | None = None

    async def run(self, scope: trio.CancelScope) -> None:
        try:
            while (line := await self._lines.read()) is not None:
                if self.feed is not None:
                    self.feed.shown(decode_shown(line).cursor)
        except (trio.BrokenResourceError, DecodeError):
            pass
        scope.cancel()
