"""The `tor` transport by a SOCKS port alone: for daemons that connect, and that nobody connects to.

Whoever runs the tor says nothing of it: whether it works, and whether it isolates, shows when it is used.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass, replace

import trio

from hushcast_protocol.base.addresses import Address
from hushcast_protocol.base.backoff import Backoff
from hushcast_protocol.base.crypto.secrets import Randomness, Seed
from hushcast_protocol.base.errors import UsageError
from hushcast_runtime.exception_groups import ungrouped
from hushcast_runtime.logs import log
from hushcast_runtime.tor import socks
from hushcast_runtime.tor.isolation_trial import SharedCircuitError, isolated_stream
from hushcast_runtime.tor.tor_watch import TorState
from hushcast_runtime.transports.base import Listener, TransportError
from hushcast_runtime.transports.endpoints import Endpoint, open_endpoint
from hushcast_runtime.transports.streams import say_ahead

_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 30.0  # seconds between attempts to reach the SOCKS port
_ANSWER_WITHIN = 30.0  # seconds; as for a control port
_SHORT = 5.0  # seconds; a tor that works leaves a connection that asks for nothing open for minutes
_UNTRIED = "nothing was reached through its SOCKS port yet"


@dataclass
class _Port:
    """The SOCKS port, since it was last found."""

    isolates: bool = False


class SocksTransport:
    """Implements `Transport` for clients with a SOCKS port; usable while its `run` is running."""

    def __init__(self, endpoint: Endpoint, ready_within: float, randomness: Randomness) -> None:
        """Prepare the transport; `ready_within` are seconds until `endpoint` has to answer.

        `randomness` sets our circuits apart.
        """
        self._endpoint = endpoint
        self._ready_within = ready_within
        self._randomness = randomness
        # Daemons that share one tor must not share circuits, whatever they choose for `isolation`.
        self._user = base64.urlsafe_b64encode(randomness(18)).decode()
        self._port: _Port | None = None
        self._found = trio.Event()
        self._trying = trio.Lock()
        self._state = TorState(percent=None, circuits_apart=False)

    @property
    def state(self) -> TorState:
        """How tor is, as far as its SOCKS port shows."""
        return self._state

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Watch the SOCKS port until cancelled. Reports started once something speaks SOCKS there.

        Raises `TransportError` when that was not so within the deadline.
        """
        with ungrouped(TransportError):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._keep_port)
                with trio.move_on_after(self._ready_within) as waiting:
                    await self._found.wait()
                if waiting.cancelled_caught:
                    raise TransportError(f"tor is not ready in time: {self._state.summary}")
                task_status.started()

    async def _keep_port(self) -> None:
        backoff = Backoff(_FIRST_PAUSE, _LONGEST_PAUSE, self._randomness)
        while True:
            began = trio.current_time()
            try:
                await self._until_closed()
            except TransportError as error:
                # The port may belong to another process now: it is tried anew before anything goes there.
                self._port = None
                self._note(connected=False, summary=str(error))
                pause = backoff.next()
                log.warning("tor is away", reason=str(error), again_in=round(pause, 1))
                await trio.sleep(pause)
                continue
            # tor ends one that asks for nothing after a while; if tor itself ended, the next finds nobody.
            if trio.current_time() - began >= _SHORT:
                backoff.reset()
            else:
                await trio.sleep(backoff.next())

    async def _until_closed(self) -> None:
        """Return when a connection that asks for nothing has ended; `TransportError` where there is none."""
        async with await open_endpoint(self._endpoint) as stream:
            with trio.move_on_after(_ANSWER_WITHIN) as asking:
                await socks.offer(stream)
            if asking.cancelled_caught:
                raise TransportError("tor does not answer at its SOCKS port")
            if self._port is None:
                self._port = _Port()
                self._note(connected=True, summary=_UNTRIED)
                self._found.set()
            try:
                while await stream.receive_some():
                    pass
            except trio.BrokenResourceError:
                return

    async def listen(self, seed: Seed, previous: Address | None = None) -> Listener:
        """Refuse: an onion service takes a control port. Settings of daemons with one are refused before."""
        raise UsageError("a SOCKS port alone carries no onion service: set tor.mode to own or system")

    async def connect(self, address: Address, isolation: str, ahead: bytes = b"") -> trio.abc.Stream:
        """Connect to an onion address on circuits that no other `isolation` and no other daemon shares.

        Raises as `TorTransport.connect` does. The first address since the port was found is where its
        isolation is tried: while that has not held, nothing is said to anybody.
        """
        socks.check_request(address, isolation)
        port = self._found_port()
        if not port.isolates:
            async with self._trying:
                port = self._found_port()
                if not port.isolates:
                    return await say_ahead(await self._tried(port, address, isolation), ahead)
        return await self._open(port, address, isolation, ahead)

    async def _tried(self, port: _Port, address: Address, isolation: str) -> trio.SocketStream:
        async def open_stream(tag: str) -> trio.SocketStream:
            return await self._open(port, address, tag)

        try:
            stream = await isolated_stream(open_stream, isolation, self._randomness)
        except SharedCircuitError as error:
            if str(error) != self._state.problem:
                log.error("tor's SOCKS port does not isolate: nothing is sent")
            self._note(connected=False, summary=_UNTRIED, problem=str(error))
            raise
        self._check_still(port, stream)
        port.isolates = True
        self._note(connected=True, circuits=True, summary="Done")
        return stream

    async def _open(
        self, port: _Port, address: Address, isolation: str, ahead: bytes = b""
    ) -> trio.SocketStream:
        stream = await socks.open_stream(self._endpoint, address, self._user, isolation, ahead)
        self._check_still(port, stream)
        return stream

    def _check_still(self, port: _Port, stream: trio.SocketStream) -> None:
        """Close a stream that another process than the one tried may have opened; raise `TransportError`."""
        if port is not self._port:
            stream.socket.close()
            raise TransportError("tor was away meanwhile")

    def _note(self, connected: bool, summary: str, problem: str = "", circuits: bool = False) -> None:
        self._state = replace(
            self._state, connected=connected, circuits=circuits, summary=summary, problem=problem
        )

    def _found_port(self) -> _Port:
        if self._port is None:
            raise TransportError(f"tor is not connected: {self._state.summary}")
        return self._port
