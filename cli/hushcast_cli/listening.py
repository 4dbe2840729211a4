"""Listens to topics: prints each message, then tells the daemon that it was shown."""

from __future__ import annotations

import select
import sys
from collections.abc import Sequence
from pathlib import Path

import trio

from hushcast.conversation import Conversation, NoDaemon, OtherVersion, ask
from hushcast.words import (
    Acknowledge,
    Acknowledged,
    Delivered,
    Lost,
    Missed,
    Subscribe,
    Subscribed,
    SubscriptionList,
    Subscriptions,
    Unsubscribed,
)
from hushcast_cli.asking import ask_once, expect
from hushcast_cli.exits import Failure
from hushcast_cli.output import StdoutClosed, note, write
from hushcast_cli.printers import Printer
from hushcast_cli.progress import shown_when_slow
from hushcast_protocol.base.errors import Refusal
from hushcast_runtime.wording import counted

_STDOUT = 1
_TELLING = 1.0  # seconds that the last reply to the daemon may take after the time-out
_FIRST_WAIT, _LONGEST_WAIT = 0.5, 5.0  # seconds between looks for a daemon that left


async def listen(
    path: Path, requests: Sequence[Subscribe], count: int | None, printer: Printer, ack: bool
) -> None:
    """Print messages until `count` have come, all subscriptions end, or nobody reads standard output.

    A daemon that goes away, once it was there, is waited for. With `ack` each message is acknowledged once
    it is printed, and all durably when `count` have come.
    """
    listening = _Listening(path, count, printer, ack)
    topics = [_Topic(request) for request in requests]
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_end_with_reader)
        async with trio.open_nursery() as listeners:
            for topic in topics:
                listeners.start_soon(listening.listen, topic, listeners.cancel_scope)
        for topic in topics:
            if ack and topic.cursor is not None:
                await ask_once(path, topic.acknowledgement(topic.cursor), Acknowledged)
        nursery.cancel_scope.cancel()
    if count is not None and listening.printed < count:
        raise Failure(f"the subscription was ended after {listening.printed} of {counted(count, 'message')}")


class _Listening:
    """What the topics of one command have in common."""

    def __init__(self, path: Path, count: int | None, printer: Printer, ack: bool) -> None:
        self._path = path
        self._count = count
        self._printer = printer
        self._ack = ack
        self._turn = trio.Lock()  # of messages, so that exactly `count` are printed and told as shown
        self.printed = 0

    async def listen(self, topic: _Topic, all_topics: trio.CancelScope) -> None:
        """Listen to one topic until its subscription ends; end all when enough were printed."""
        wait = 0.0
        while True:
            try:
                async with ask(self._path, topic.request()) as conversation:
                    await self._begin(conversation)
                    topic.is_known, wait = True, 0.0
                    is_over = await self._print_messages(conversation, topic)
                break
            except (NoDaemon, Refusal) as error:  # it refuses while it starts
                if not topic.is_known or isinstance(error, OtherVersion):
                    raise
                if not wait:
                    note(f"{error}: waiting for it")
            wait = min(_LONGEST_WAIT, wait * 2 or _FIRST_WAIT)
            await trio.sleep(wait)
        if is_over and self._count:  # with 0 each topic waits for its own routes
            all_topics.cancel()

    async def _begin(self, conversation: Conversation) -> None:
        async with shown_when_slow("waiting until relays route to this daemon", self._how_far):
            subscribed = await expect(conversation, Subscribed)
        await _print(self._printer.subscribed(subscribed))

    async def _how_far(self) -> str:
        """Say how many relays route to the subscriptions that do not get everything yet."""
        listed = await ask_once(self._path, Subscriptions(), SubscriptionList)
        coming = [f"{held['nodes']} do" for held in listed.subscriptions if not held["ready"]]
        return ", ".join(coming) or "soon"

    async def _print_messages(self, conversation: Conversation, topic: _Topic) -> bool:
        """Return whether enough were printed; false where the subscription ended first."""
        while self._count is None or self.printed < self._count:
            answer: Delivered | Lost | Missed | Unsubscribed = await expect(
                conversation, Delivered, Lost, Missed, Unsubscribed
            )
            if isinstance(answer, Unsubscribed):
                if self._count is None:
                    note("the subscription was ended")
                return False
            if isinstance(answer, Missed):
                await _print(self._printer.gap(answer))
                continue
            async with self._turn:
                if self.printed == self._count:  # by other topics, meanwhile
                    break
                if isinstance(answer, Lost):
                    await _print(self._printer.lost(answer))
                else:
                    await _print(self._printer.message(answer))
                    self.printed += 1
                topic.cursor = answer.cursor
                with trio.move_on_after(_TELLING, shield=True):
                    await conversation.shown(answer.cursor, self._ack)
        return True


class _Topic:
    """How far one subscription was printed."""

    def __init__(self, request: Subscribe) -> None:
        self._request = request
        self.is_known = False  # to a daemon, which may come back
        self.cursor: int | None = None

    def request(self) -> Subscribe:
        """Return what to ask a daemon for: what was not printed yet."""
        if self.cursor is None:
            return self._request
        return Subscribe(self._request.topic, self._request.where, self.cursor)

    def acknowledgement(self, cursor: int) -> Acknowledge:
        """Return what has the daemon forget all up to a cursor."""
        return Acknowledge(self._request.topic, cursor, self._request.where)


async def _print(data: bytes) -> None:
    # In a thread: the reader of standard output may stall, and the time-out must still fire.
    await trio.to_thread.run_sync(write, data, abandon_on_cancel=True)


async def _end_with_reader() -> None:
    """Raise `StdoutClosed` as soon as nobody reads standard output, not only at the next message."""
    if sys.stdout is None:
        return  # the descriptor may be anything by now; the first line printed will fail
    with select.epoll() as watch:
        try:
            watch.register(_STDOUT, 0)  # errors and hang-ups are always told
        except OSError:
            return  # a file, which nobody can leave
        await trio.lowlevel.wait_readable(watch.fileno())
    raise StdoutClosed
