"""Control connection to a tor: one command at a time, events as they come, for as long as it lives.

Onion services added over a connection live as long as the connection does.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import trio

from hushcast_runtime.exception_groups import ungrouped
from hushcast_runtime.tor import callers
from hushcast_runtime.tor.authentication import authenticate
from hushcast_runtime.tor.replies import EVENT, Aside, ReplySplitter, convert, parse_all, status
from hushcast_runtime.transports.base import TransportError
from hushcast_runtime.transports.endpoints import Endpoint, open_endpoint

if TYPE_CHECKING:
    from stem.response import ControlMessage

EventHandler = Callable[[Any], None]
"""Takes a `stem.response.events.Event`; called between replies, so it must neither block nor raise."""

_OK = "250"
_SEND_WITHIN = 10.0  # seconds; a tor on the same machine that takes longer hangs
_MAX_PENDING = 64  # replies still owed to commands whose callers were cancelled
MAX_STREAMS = 2  # connections at once on one circuit to a service: daemons take a circuit for each
_SYNTAX_ERROR = "512"
_DEFENCE = "PoWDefensesEnabled=1"  # from tor 0.4.9 on; older ones answer 512, as to any unknown argument
_LOST = "the control connection to tor is lost"


class _Slot:
    """Where the reply to one command is put."""

    def __init__(self) -> None:
        self.filled = trio.Event()
        self.reply: ControlMessage | None = None


class ControlClient:
    """An open control connection; made by `open_control`."""

    def __init__(self, stream: trio.abc.Stream, on_event: EventHandler, aside: Aside = parse_all) -> None:
        self._stream = stream
        self._on_event = on_event
        self._aside = aside
        self._turn = trio.Lock()
        self._owed: deque[_Slot] = deque()
        self.lost = trio.Event()
        """Set once the connection is gone for good."""
        self.defends = True
        """Whether tor has a proof-of-work defence for services added here, as far as it was asked."""

    async def ask(self, command: str) -> ControlMessage:
        """Send one command line and return tor's reply, whatever its status.

        Raises `TransportError` when the connection is lost, before or while waiting. May be cancelled at any
        point; a command already sent then takes effect all the same.
        """
        if "\r" in command or "\n" in command:
            raise ValueError("a control command is one line")
        async with self._turn:
            if self.lost.is_set() or len(self._owed) >= _MAX_PENDING:
                raise TransportError(_LOST)
            slot = _Slot()
            self._owed.append(slot)
            await self._send(command.encode("ascii") + b"\r\n")
            await slot.filled.wait()
        if slot.reply is None:
            raise TransportError(_LOST)
        return slot.reply

    async def _send(self, line: bytes) -> None:
        # Half a line would spoil whatever is sent next, so cancellation waits until the line is out.
        try:
            with trio.fail_after(_SEND_WITHIN) as scope:
                scope.shield = True
                await self._stream.send_all(line)
        except (trio.TooSlowError, trio.BrokenResourceError, trio.ClosedResourceError):
            self._lose()
            raise TransportError(_LOST) from None

    async def command(self, line: str) -> ControlMessage:
        """Send one command and return its reply; `TransportError` (status, no text) when tor refuses it."""
        reply = await self.ask(line)
        if (code := status(reply)) != _OK:
            raise TransportError(f"tor refused {line.partition(' ')[0]} (status {code})")
        return reply

    async def getinfo(self, key: str) -> str:
        """Return the value of one GETINFO key."""
        reply = await self.command(f"GETINFO {key}")
        convert("GETINFO", reply)
        if key not in reply.entries:
            raise TransportError("tor answered something else than was asked")
        return bytes(reply.entries[key]).decode("utf-8", "replace")

    async def set_events(self, *kinds: str) -> None:
        """Ask for these kinds of events and no others."""
        await self.command(_events(kinds))

    async def may_hear(self, *kinds: str) -> bool:
        """Ask for these kinds of events and no others; tell whether we get them, else all is as before."""
        return status(await self.ask(_events(kinds))) == _OK

    async def add_onion(
        self, key: str, virtual_port: int, target: Endpoint | str, defended: bool = False
    ) -> str:
        """Add an onion service with the expanded `key` (base64) and return its name without `.onion`.

        It lives until `del_onion` or until this connection ends, and leads from `virtual_port` to `target`,
        which in a text is as tor writes it.
        A circuit on which somebody opens more than `MAX_STREAMS` at once is closed with all of them.
        `defended` asks for tor's proof-of-work defence; a tor that has none adds the service without.
        """
        line = (
            f"ADD_ONION ED25519-V3:{key} Flags=DiscardPK,MaxStreamsCloseCircuit "
            f"MaxStreams={MAX_STREAMS} Port={virtual_port},{target}"
        )
        if defended and self.defends:
            reply = await self.ask(f"{line} {_DEFENCE}")
            self.defends = status(reply) != _SYNTAX_ERROR
        if not (defended and self.defends):
            reply = await self.ask(line)
        if (code := status(reply)) != _OK:
            raise TransportError(f"tor refused ADD_ONION (status {code})")
        convert("ADD_ONION", reply)
        return str(reply.service_id)

    async def del_onion(self, service: str) -> None:
        """Withdraw the service of that name; one that tor no longer knows is as good as withdrawn."""
        reply = await self.ask(f"DEL_ONION {service}")
        if (code := status(reply)) not in (_OK, "552"):
            raise TransportError(f"tor refused DEL_ONION (status {code})")

    async def is_held_by(self, user: int) -> bool:
        """Tell whether a user's process holds the control port; a Unix socket's directory says who may."""
        stream = self._stream
        if isinstance(stream, trio.SocketStream) and stream.socket.family == trio.socket.AF_INET:
            return await callers.is_of(stream, user)
        return True

    async def read(self) -> None:
        """Take replies and events from the connection until it ends; never raises but when cancelled."""
        splitter = ReplySplitter(self._aside)
        try:
            async for data in self._stream:
                for reply in splitter.feed(bytes(data)):
                    self._take(reply)
        except (trio.BrokenResourceError, trio.ClosedResourceError, TransportError):
            pass  # `lost` tells; whoever waits for a reply gets an error
        finally:
            self._lose()

    def _take(self, reply: ControlMessage) -> None:
        if status(reply) != EVENT:
            if not self._owed:
                raise TransportError("tor sent a reply to no command")
            slot = self._owed.popleft()
            slot.reply = reply
            slot.filled.set()
            return
        try:
            convert("EVENT", reply)
        except TransportError:
            return  # an event in a form newer than stem: nothing of ours hangs on a single one
        self._on_event(reply)

    def _lose(self) -> None:
        self.lost.set()
        while self._owed:
            self._owed.popleft().filled.set()


def _events(kinds: Iterable[str]) -> str:
    return " ".join(("SETEVENTS", *kinds))


def _ignore(event: Any) -> None:
    pass


@asynccontextmanager
async def open_control(
    endpoint: Endpoint, on_event: EventHandler = _ignore, aside: Aside = parse_all
) -> AsyncIterator[ControlClient]:
    """Connect to the control port at `endpoint`, authenticate and keep reading until the block ends.

    `aside` takes events that are too many to be parsed. Raises `TransportError` when nothing answers or tor
    does not let us in. Losing the connection later sets `lost` and fails commands; it does not cancel the
    block.
    """
    stream = await open_endpoint(endpoint)
    with ungrouped(Exception):
        async with stream, trio.open_nursery() as nursery:
            control = ControlClient(stream, on_event, aside)
            nursery.start_soon(control.read)
            await authenticate(control.ask, at_port=bool(endpoint.port))
            yield control
            nursery.cancel_scope.cancel()
