"""Listens to topics: prints each message, then tells the daemon that it was shown."""

from __future__ import annotations

import select
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

import trio

from hushcast.control_messages import Terms
from hushcast.daemon import Daemon
from hushcast.events import Disconnected, Gap, Lost, Message, Reconnected, Unopened, Withdrawn
from hushcast.messages import Messages
from hushcast_cli import progress
from hushcast_cli.awaited_progress import shown_when_slow
from hushcast_cli.exits import Failure
from hushcast_cli.messages.printers import Printer
from hushcast_cli.output import StdoutClosed, note, write
from hushcast_protocol.purposes.sealed_messages import is_sealed
from hushcast_runtime.wording import counted

if TYPE_CHECKING:
    from hushcast.purposes.keys import ReadFor

_STDOUT = 1
_LOOK = "`hushcast doctor` looks for what is wrong"


@dataclass(frozen=True)
class ListenOptions:
    """What one subscription of a command is to bring."""

    topic: str
    where: str
    since: int | datetime | None
    terms: Terms | None = None
    purpose: ReadFor | None = None
    is_open: bool = False
    once: bool = False


async def listen(
    daemon: Daemon, wanted: Sequence[ListenOptions], count: int | None, printer: Printer, ack: bool
) -> None:
    """Print messages until `count` have come, all subscriptions end, or nobody reads standard output.

    A daemon that goes away, once it was there, is waited for. With `ack` each message is acknowledged once
    it is printed, and all durably when `count` have come.
    """
    listening = _Listening(daemon, count, printer, ack)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(end_with_reader)
        try:
            async with trio.open_nursery() as listeners:
                for one in wanted:
                    listeners.start_soon(listening.listen, one, listeners.cancel_scope)
        finally:
            listening.tell_unopened()
        nursery.cancel_scope.cancel()
    if count is not None and listening.printed < count:
        raise Failure(f"the subscription was ended after {listening.printed} of {counted(count, 'message')}")


class _Listening:
    """What the topics of one command have in common."""

    def __init__(self, daemon: Daemon, count: int | None, printer: Printer, ack: bool) -> None:
        self._daemon = daemon
        self._count = count
        self._printer = printer
        self._ack = ack
        self._turn = trio.Lock()  # of messages, so that exactly `count` are printed and told as shown
        self.printed = 0
        self._unopened = self._sealed = 0

    def tell_unopened(self) -> None:
        """Say how many messages came that were not printed because they do not open."""
        if self._unopened:
            note(f"{counted(self._unopened, 'message')} came that may not be used for this purpose")
        if self._sealed:
            sealed = counted(self._sealed, "message is", "messages are")
            note(f"{sealed} sealed for purposes: give --purpose, and a grant for it")

    async def listen(self, wanted: ListenOptions, all_topics: trio.CancelScope) -> None:
        """Listen to one topic until its subscription ends; end all when enough were printed."""
        messages = self._daemon.subscribe(
            wanted.topic,
            where=wanted.where,
            since="shown" if wanted.since is None else wanted.since,
            acknowledge="automatic" if self._ack else "never",
            terms=wanted.terms,
            purpose=wanted.purpose,
            open=wanted.is_open,
            once=wanted.once,
        )
        waits = "waiting until relays or a server route to this daemon"
        if wanted.terms is not None:
            waits = f"waiting until {counted(wanted.terms.k, 'subscriber')} stand behind it"
        async with shown_when_slow(waits, self._how_far):
            with progress.waiting(waits if wanted.terms is not None else f"{waits}; {_LOOK}"):
                await messages.__aenter__()
        is_over = False
        try:
            await print_data(self._printer.subscribed(messages.topic, messages.nodes, messages.by))
            if messages.outlook is not None:
                note(messages.outlook)
            unreached = f", which no {messages.by} passes on to this daemon; {_LOOK}"
            with progress.waiting(f"waiting for messages{'' if messages.nodes else unreached}"):
                is_over = await self._print_messages(messages, wanted.purpose is not None)
        finally:
            await messages.__aexit__(*sys.exc_info())
        if is_over and self._count:  # with 0 each topic waits for its own routes
            all_topics.cancel()

    async def _how_far(self) -> str:
        """Say how many relays route to the subscriptions that do not get everything yet."""
        held = await self._daemon.subscriptions()
        waiting = [one.described for one in held if not one.is_ready]
        coming = ", ".join(f"{one.get('level', one['nodes'])} do" for one in waiting) or "soon"
        # A network may take a while; only where nobody routes something may be wrong.
        is_alone = any(one["nodes"] == 0 and "level" not in one for one in waiting)
        return f"{coming}; if that lasts, {_LOOK}" if is_alone else coming

    async def _print_messages(self, messages: Messages, is_opened: bool) -> bool:
        """Return whether enough were printed; false where the subscription ended first."""
        while self._count is None or self.printed < self._count:
            event = await messages.next_event()
            if event is None:
                if self._count is None:
                    note("the subscription was ended")
                return False
            if isinstance(event, Disconnected):
                note("the daemon closed the connection: it stopped or was restarted: waiting for it")
            elif isinstance(event, Reconnected):
                await print_data(self._printer.subscribed(messages.topic, messages.nodes, messages.by))
            elif isinstance(event, Gap):
                await print_data(self._printer.gap(event))
            elif isinstance(event, Withdrawn):
                await print_data(self._printer.withdrawn(event))
            elif isinstance(event, Unopened):
                self._unopened += 1
                await print_data(self._printer.unopened(event))
            elif isinstance(event, Message) and not is_opened and is_sealed(event.payload):
                self._sealed += 1
                sealed = Unopened(event.topic, event.id, event.cursor, "no purpose")
                await print_data(self._printer.unopened(sealed))
            elif isinstance(event, Message | Lost):
                await self._print_one(messages, event)
        return True

    async def _print_one(self, messages: Messages, event: Message | Lost) -> None:
        async with self._turn:
            if self.printed == self._count:  # by other topics, meanwhile
                messages.undone()
                return
            if isinstance(event, Lost):
                await print_data(self._printer.lost(event))
            else:
                await print_data(self._printer.message(event))
                self.printed += 1
            messages.done()


async def print_data(data: bytes) -> None:
    """Write to standard output."""
    # In a thread: the reader of standard output may stall, and the time-out must still fire.
    await trio.to_thread.run_sync(write, data, abandon_on_cancel=True)


async def end_with_reader() -> None:
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
