"""A daemon, as programs see it: `connect`, and what can be asked."""

from __future__ import annotations

import math
import os
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import anyio
import msgspec

from hushcast import control_messages
from hushcast.arguments import Acknowledging, Since, check_subscription, sealed_payload, written_value
from hushcast.blocks import interrupt_alone, opened_by_async_with
from hushcast.carried_link_calls import CarriedLinkCalls
from hushcast.control_connection import ControlConnection, open_connection
from hushcast.descriptions import Publication
from hushcast.errors import (
    ConnectionEnded,
    HushcastError,
    NoDaemon,
    OtherVersion,
    Refusal,
    Starting,
    TimedOut,
)
from hushcast.messages import AGAIN, WINDOW, Messages
from hushcast.questions import Questions
from hushcast.sockets import daemon_socket

if TYPE_CHECKING:  # keys load what seals and signs: a program that only asks or listens is spared it
    from hushcast.keys import Author
    from hushcast.purposes.keys import Allowed, ReadFor

TIMEOUT = 60.0  # seconds that a call may take, unless the program says otherwise
MAX_HANDED_IN = 64  # publications on their way to the daemon at once, of 256 KiB at most; more wait
FIRST_WAIT, LONGEST_WAIT = 0.1, 5.0  # seconds between looks for a daemon that left

Attributes = Mapping[str, str | int | float]
AnswerT = TypeVar("AnswerT")


class Daemon(Questions, CarriedLinkCalls):
    """A connection to a daemon, which comes again when the daemon does.

    A topic is a plain text, which names an open topic, or a link. A text is refused where the daemon is
    subscribed to a topic of this name that only a link names, a private one say, unless `open` says that the
    open one is meant. In a topic's place the `handle` of a subscription stands for its topic and condition.

    Calls wait for a daemon that is away. They raise `UsageError` for values that cannot be used, `Refusal`
    where the daemon or the network declines, `NoDaemon` where none can be reached any more, and `TimedOut`
    after `timeout` seconds: those of the call (`math.inf`: no limit), or those of `connect`. Where
    subscriptions are spoken of, `where` is the condition of one of them, empty for the one without, and
    `None` means all to the topic.
    """

    def __init__(
        self, path: Path, timeout: float | None, reconnects: bool, connection: ControlConnection
    ) -> None:
        """Programs use `connect`."""
        self.reconnects = reconnects
        self._path = path
        self._timeout = timeout
        self._connection: ControlConnection | None = connection
        self._error: HushcastError | None = None
        self._changed = anyio.Event()
        self._handing_in = anyio.Semaphore(MAX_HANDED_IN)

    async def publish(
        self,
        topic: str,
        payload: bytes | str,
        *,
        attributes: Attributes | None = None,
        author: Author | None = None,
        purposes: Allowed | None = None,
        open: bool = False,
        timeout: float | None = None,
    ) -> Publication:
        """Publish; return once a relay has given its receipt.

        `payload` has at most 262,144 bytes; a text is sent as UTF-8. `attributes` are those of the topic's
        link; `author` signs; `purposes` are what it may be used for: it opens for nothing else. Raises
        `Waiting` where no relay answers so far: the message stays in the outbox,
        so do not publish it again. A daemon that went away in the middle is asked again, and publishes once.
        """
        publication = None
        try:
            with self._limit(timeout):
                data, tags = sealed_payload(topic, payload, purposes, ())
                publication = await self._enqueue(topic, data, attributes, author, True, tags, open)
                await self.accepted(publication)
                return publication
        except TimedOut as error:
            if publication is None:
                raise
            raise TimedOut(
                f"{error}: it waits for a relay's receipt; the message stays in the outbox"
            ) from None

    async def enqueue(
        self,
        topic: str,
        payload: bytes | str,
        *,
        attributes: Attributes | None = None,
        author: Author | None = None,
        at_once: bool = False,
        tags: Iterable[str] = (),
        purposes: Allowed | None = None,
        token: bytes | None = None,
        open: bool = False,
        next_round: bool = False,
        timeout: float | None = None,
    ) -> Publication:
        """Publish; return once the message is on the daemon's disk, which goes on until a relay takes it.

        With `at_once` it is refused while the daemon knows no relay. `tags`, at most 32 of 32 hexadecimal
        digits each, do not travel inside: who subscribes with `where="tags [...]"` is brought what has one of
        these, and relays see a token of each, another one each day. With `purposes` it has tags of their own.
        `token` are 16 random bytes: a call that is given those of an earlier one, which was cancelled, say,
        does not publish again what the daemon has taken then. With `next_round` a daemon under cover does not
        hold the message; what it returns then has an `outlook`. Otherwise as `publish`.
        """
        with self._limit(timeout):
            data, tags = sealed_payload(topic, payload, purposes, tags)
            return await self._enqueue(
                topic, data, attributes, author, at_once, tags, open, token, next_round
            )

    async def accepted(self, publication: Publication, *, timeout: float | None = None) -> None:
        """Return once a relay has given its receipt for what was enqueued.

        Raises `Waiting` while none does, and `Refusal` if somebody took the message back, or if the daemon
        does not know it any more.
        """
        await self.ask(
            control_messages.AwaitRequest(publication.token), control_messages.PublishAnswer, timeout
        )

    def subscribe(
        self,
        topic: str,
        *,
        where: str = "",
        since: Since | None = None,
        acknowledge: Acknowledging = "automatic",
        coverage: bool = False,
        terms: control_messages.Terms | None = None,
        purpose: ReadFor | None = None,
        open: bool = False,
        once: bool = False,
    ) -> Messages:
        """Return the messages of a subscription, for `async with`; what came meanwhile is first.

        `where` is a condition on the topic's attributes, as in `lat in [60, 61], kind = fire`.

        `acknowledge`: a message that was acknowledged never comes again, all others do. `automatic`: each is
        when the next one is asked for, and the last when the block is left without an error. `manual`: by
        `Messages.acknowledge`. `never`: each counts as shown instead, and stays in the daemon for `since`.

        It begins with all that is not acknowledged (`never`: not shown by any program), or behind the message
        whose cursor is `since`, or with what is not `shown`. If `since` is a time with its zone, what was
        published from that day on comes, too, where the network keeps it; else it is refused. With
        `coverage`, `Messages.events` tells of changes of coverage, too. With `once`, what was shown or
        acknowledged on any device of yours stays out, as far as they have told. `terms`, in a network of
        brokers alone, say how many subscribers are to stand behind the condition. With `purpose` it brings
        what may be used for that, opened; of all else that comes `Messages.events` tells, and
        `Messages.unopened` counts it.
        """
        past = check_subscription(topic, where, since, acknowledge)
        if since is None or past is not None:
            since = "shown" if acknowledge == "never" else 0
        behind = since if isinstance(since, int) else None
        asked = where if purpose is None else purpose.where(where)
        request = control_messages.TopicSubscribeRequest(
            topic, asked, behind, WINDOW, coverage, terms, open, once, past
        )
        return Messages(self, request, acknowledge, purpose)

    async def ask(
        self, request: control_messages.Request, kind: type[AnswerT], timeout: float | None = None
    ) -> AnswerT:
        """Ask for what has one answer of this kind, again where the daemon went away in the middle."""
        with self._limit(timeout):
            while True:
                try:
                    return await (await self.connection()).ask(request, kind)
                except (ConnectionEnded, Starting):
                    if not self.reconnects:
                        raise
                await anyio.sleep(AGAIN)

    async def connection(self) -> ControlConnection:
        """Return the connection, waiting for the daemon if it is away; raise why there will be none."""
        while True:
            if self._error is not None:
                raise self._error.with_traceback(None)  # else each call would add its frames
            if self._connection is not None and self._connection.error is None:
                return self._connection
            await self._changed.wait()

    async def keep(self) -> None:
        """Converse, and connect again, until cancelled or there is nothing to connect with."""
        connection = self._connection
        while connection is not None:
            await connection.run()
            if not self.reconnects or isinstance(connection.error, OtherVersion):
                self._change(None, connection.error)
                return
            await anyio.sleep(FIRST_WAIT)
            try:
                _, connection = await _open_at_last(self._path)
            except OtherVersion as error:
                self._change(None, error)
                return
            self._change(connection, None)

    def leave(self) -> None:
        """Let every later call fail, which nobody would answer."""
        if self._error is None:
            self._change(None, NoDaemon("the connection is closed: the block of `connect` was left"))

    def _change(self, connection: ControlConnection | None, error: HushcastError | None) -> None:
        self._connection, self._error = connection, error
        self._changed.set()
        self._changed = anyio.Event()

    async def _enqueue(
        self,
        topic: str,
        payload: bytes,
        attributes: Attributes | None,
        author: Author | None,
        at_once: bool,
        tags: Iterable[str],
        is_open: bool,
        token: bytes | None = None,
        next_round: bool = False,
    ) -> Publication:
        from hushcast.keys import new_token

        token = token or new_token()
        request = control_messages.PublishRequest(
            topic,
            payload,
            [f"{name}={written_value(value)}" for name, value in (attributes or {}).items()],
            author.seed.reveal() if author is not None else None,
            "queued",
            at_once,
            token,
            list(tags) or msgspec.UNSET,
            is_open,
            next_round,
        )
        async with self._handing_in:
            told = await self.ask(request, control_messages.PublishAnswer, math.inf)
        return Publication(told.id, told.topic, token, told.outlook or "")

    def _limit(self, timeout: float | None) -> AbstractContextManager[None]:
        return limit(self._timeout if timeout is None else timeout)


@contextmanager
def limit(seconds: float | None) -> Iterator[None]:
    """Raise `TimedOut` where the block takes longer; `None` is no limit."""
    with anyio.move_on_after(seconds) as scope:
        yield
    if scope.cancelled_caught:
        raise TimedOut(f"the daemon has not answered within {seconds:g} s")


async def _open_at_last(socket: str | os.PathLike[str] | None) -> tuple[Path, ControlConnection]:
    """Look for a daemon until there is one; raise `OtherVersion`."""
    wait = FIRST_WAIT
    while True:
        try:
            path = daemon_socket(socket)
            return path, await open_connection(path)
        except OtherVersion:
            raise
        except (NoDaemon, Refusal):
            await anyio.sleep(wait)
        wait = min(LONGEST_WAIT, 2 * wait)


@opened_by_async_with
@asynccontextmanager
async def connect(
    socket: str | os.PathLike[str] | None = None,
    *,
    timeout: float | None = TIMEOUT,
    wait: bool = False,
    reconnect: bool = True,
) -> AsyncIterator[Daemon]:
    """Connect to the daemon at a socket, or as `HUSHCAST_SOCKET` says, or at the usual places.

    Runs under asyncio and under trio. `timeout` is for connecting and for each call, in seconds (`None`: no
    limit). With `wait` a daemon that is not there yet is waited for. Without `reconnect` every call fails
    from the moment that the daemon goes away. Raises `NoDaemon`, `OtherVersion`, and `Refusal` where too many
    programs are connected.
    """
    with limit(timeout):
        if wait:
            path, connection = await _open_at_last(socket)
        else:
            path = daemon_socket(socket)
            connection = await open_connection(path)
    daemon = Daemon(path, timeout, reconnect, connection)
    failure: BaseException | None = None
    # A program that is cancelled still has last words: acknowledgements of what it was done with.
    keeping = anyio.CancelScope(shield=True)

    async def keep() -> None:
        with keeping:
            await daemon.keep()
        daemon.leave()

    with interrupt_alone():
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(keep)
            try:
                yield daemon
            except (Exception, KeyboardInterrupt, SystemExit) as error:
                failure = error  # raised outside of the group, which would wrap it
            finally:
                keeping.cancel()
    if failure is not None:
        raise failure
