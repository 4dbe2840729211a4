"""The blocking twin of `connect`, for scripts: the same names, and each call waits."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

import anyio
from anyio.from_thread import BlockingPortal, start_blocking_portal

from hushcast.arguments import Acknowledging, Since
from hushcast.blocks import opened_by_with
from hushcast.carried_link_calls import Imported
from hushcast.control_messages import Terms
from hushcast.daemon import TIMEOUT, Attributes, Daemon, connect
from hushcast.descriptions import Finding, Publication, Subscription, Unsent
from hushcast.device_calls import Device, Invitation
from hushcast.events import Coverage, Event, Message
from hushcast.keys import Author
from hushcast.messages import Messages

if TYPE_CHECKING:
    from hushcast.purposes.keys import Allowed, ReadFor

T = TypeVar("T")


class BlockingDaemon:
    """A daemon for programs that do one thing at a time; each method does what `Daemon`'s does."""

    def __init__(self, portal: BlockingPortal, daemon: Daemon) -> None:
        """Programs use `connect_sync`."""
        self._portal = portal
        self._daemon = daemon

    def publish(
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
        """Publish; return once a relay has given its receipt."""
        return self._wait(
            self._daemon.publish,
            topic,
            payload,
            attributes=attributes,
            author=author,
            purposes=purposes,
            open=open,
            timeout=timeout,
        )

    def enqueue(
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
        """Publish; return once the message is on the daemon's disk."""
        return self._wait(
            self._daemon.enqueue,
            topic,
            payload,
            attributes=attributes,
            author=author,
            at_once=at_once,
            tags=tags,
            purposes=purposes,
            token=token,
            open=open,
            next_round=next_round,
            timeout=timeout,
        )

    def accepted(self, publication: Publication, *, timeout: float | None = None) -> None:
        """Return once a relay has given its receipt for what was enqueued."""
        self._wait(self._daemon.accepted, publication, timeout=timeout)

    def subscribe(
        self,
        topic: str,
        *,
        where: str = "",
        since: Since | None = None,
        acknowledge: Acknowledging = "automatic",
        coverage: bool = False,
        terms: Terms | None = None,
        purpose: ReadFor | None = None,
        open: bool = False,
        once: bool = False,
    ) -> BlockingMessages:
        """Return the messages of a subscription, for `with`."""
        messages = self._daemon.subscribe(
            topic,
            where=where,
            since=since,
            acknowledge=acknowledge,
            coverage=coverage,
            terms=terms,
            purpose=purpose,
            open=open,
            once=once,
        )
        return BlockingMessages(self._portal, messages)

    def acknowledge(
        self, topic: str, cursor: int, *, where: str | None = None, timeout: float | None = None
    ) -> None:
        """Acknowledge all messages up to a cursor."""
        self._wait(self._daemon.acknowledge, topic, cursor, where=where, timeout=timeout)

    def unsubscribe(self, topic: str, *, where: str | None = None, timeout: float | None = None) -> bool:
        """End a subscription; return whether there was one."""
        return self._wait(self._daemon.unsubscribe, topic, where=where, timeout=timeout)

    def subscriptions(self, *, timeout: float | None = None) -> list[Subscription]:
        """Return the subscriptions that the daemon holds."""
        return self._wait(self._daemon.subscriptions, timeout=timeout)

    def outbox(self, *, timeout: float | None = None) -> list[Unsent]:
        """Return the publications that wait for a relay's receipt, and those that were given up."""
        return self._wait(self._daemon.outbox, timeout=timeout)

    def cancel(self, message_id: str, *, timeout: float | None = None) -> str:
        """Take a publication out of the outbox, and return its topic's name."""
        return self._wait(self._daemon.cancel, message_id, timeout=timeout)

    def export_links(self, password: str) -> bytes:
        """Return the links of all subscriptions, sealed under a password."""
        return self._wait(self._daemon.export_links, password)

    def import_links(self, sealed: bytes, password: str, *, within: float | None = None) -> Imported:
        """Subscribe to all links of an export, at drawn moments."""
        return self._wait(self._daemon.import_links, sealed, password, within=within)

    def invite_device(self, name: str = "device") -> Invitation:
        """Return a link by which one device joins those that share with this one."""
        return self._wait(self._daemon.invite_device, name)

    def join_devices(self, link: str, name: str = "device", *, timeout: float | None = None) -> list[Device]:
        """Join the devices that a link invites to, as `name`; return all of them."""
        return self._wait(self._daemon.join_devices, link, name, timeout=timeout)

    def devices(self) -> list[Device]:
        """Return the devices that share with this one."""
        return self._wait(self._daemon.devices)

    def remove_device(self, device: str) -> list[Device]:
        """Remove a device by its name, or the beginning of its fingerprint."""
        return self._wait(self._daemon.remove_device, device)

    def leave_devices(self) -> None:
        """Share nothing any more, and forget what was shared."""
        self._wait(self._daemon.leave_devices)

    def share_author(self, name: str, author: Author | None) -> None:
        """Share an author's key with all devices under a name; with `None`, share it no more."""
        self._wait(self._daemon.share_author, name, author)

    def shared_authors(self) -> dict[str, str]:
        """Return the fingerprints of the authors whose keys the devices share, by their names."""
        return self._wait(self._daemon.shared_authors)

    def shared_author(self, name: str) -> Author:
        """Return the author whose key is shared under a name."""
        return self._wait(self._daemon.shared_author, name)

    def coverage(
        self, topic: str, *, where: str | None = None, losses: bool = False, timeout: float | None = None
    ) -> list[Coverage]:
        """Return how much of the network reaches the subscriptions to a topic."""
        return self._wait(self._daemon.coverage, topic, where=where, losses=losses, timeout=timeout)

    def status(self, *, timeout: float | None = None) -> dict[str, Any]:
        """Return the daemon's state."""
        return self._wait(self._daemon.status, timeout=timeout)

    def examine(self, *, timeout: float | None = None) -> list[Finding]:
        """Return what keeps the daemon from working."""
        return self._wait(self._daemon.examine, timeout=timeout)

    def _wait(self, function: Callable[..., Awaitable[T]], *args: Any, **named: Any) -> T:
        return _wait(self._portal, function, *args, **named)


class BlockingMessages:
    """A subscription while its `with` block is open: an iterator over its messages, as `Messages`."""

    def __init__(self, portal: BlockingPortal, messages: Messages) -> None:
        """Programs use `BlockingDaemon.subscribe`."""
        self._portal = portal
        self._messages = messages
        self._coming = anyio.Lock()
        self._unseen: Event | None = None  # it came, and Ctrl-C kept the program from getting it

    @property
    def topic(self) -> str:
        """The topic's name."""
        return self._messages.topic

    @property
    def outlook(self) -> str | None:
        """As `Messages.outlook`."""
        return self._messages.outlook

    @property
    def nodes(self) -> int:
        """Relays, servers or edge brokers that had confirmed when it began; 0 where the carrier has none."""
        return self._messages.nodes

    @property
    def by(self) -> str:
        """What those are: `relay`, `server`, `edge broker`, or `host` where no tree of relays leads here."""
        return self._messages.by

    @property
    def unopened(self) -> int:
        """Messages that came and do not open for the purpose of the subscription."""
        return self._messages.unopened

    def __enter__(self) -> BlockingMessages:
        """Subscribe; return once messages reach the daemon."""
        _wait(self._portal, self._messages.__aenter__)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Listen no more; the subscription stays in the daemon."""
        _wait(self._portal, self._leave, kind, error, trace)

    def __iter__(self) -> Iterator[Message]:
        """Iterate over the messages alone."""
        return self

    def __next__(self) -> Message:
        """Return the next message; the one before is done."""
        while (event := self.next_event()) is not None:
            if isinstance(event, Message):
                return event
        raise StopIteration

    def events(self) -> Iterator[Event]:
        """Iterate over messages, and over what happened to others and to the daemon."""
        while (event := self.next_event()) is not None:
            yield event

    def next_event(self, timeout: float | None = None) -> Event | None:
        """Return the next event; `None` when the subscription has ended."""
        event = _wait(self._portal, self._fetch, timeout)
        self._unseen = None
        return event

    def done(self) -> None:
        """Be done with the last message before the next is asked for."""
        self._portal.call(self._settle, self._messages.done)

    def undone(self) -> None:
        """Leave the last message undone, also when the block is left without an error: it comes again."""
        self._portal.call(self._settle, self._messages.undone)

    def acknowledge(self, message: Message) -> None:
        """Acknowledge a message and all before it: none of them is shown again."""
        _wait(self._portal, self._messages.acknowledge, message)

    async def _fetch(self, timeout: float | None) -> Event | None:
        async with self._coming:  # a call that Ctrl-C ended may not be over yet
            if self._unseen is None:
                self._unseen = await self._messages.next_event(timeout)
            return self._unseen

    def _settle(self, settle: Callable[[], None]) -> None:
        """Settle the last message, unless the program has asked for another one since."""
        if self._unseen is None:
            settle()

    async def _leave(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._unseen is not None:
            self._messages.undone()
        await self._messages.__aexit__(kind, error, trace)


@opened_by_with
@contextmanager
def connect_sync(
    socket: str | os.PathLike[str] | None = None,
    *,
    timeout: float | None = TIMEOUT,
    wait: bool = False,
    reconnect: bool = True,
) -> Iterator[BlockingDaemon]:
    """Connect to a daemon, as `connect`; a thread of its own converses with it while the block is open."""
    connecting = connect(socket, timeout=timeout, wait=wait, reconnect=reconnect)
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(connecting) as daemon:
        yield BlockingDaemon(portal, daemon)


def _wait(portal: BlockingPortal, function: Callable[..., Awaitable[T]], *args: Any, **named: Any) -> T:
    future = portal.start_task_soon(partial(function, **named), *args)
    try:
        return future.result()
    except BaseException:
        future.cancel()  # after Ctrl-C: nobody waits for it any more
        raise
