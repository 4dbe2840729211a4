"""The `tor` transport: every address is an onion service, every connection goes through SOCKS to one.

No code path here opens a socket to anything but tor's own loopback or Unix endpoints.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import trio

from hushcast_protocol.base.addresses import ONION_PORT, Address
from hushcast_protocol.base.backoff import Backoff
from hushcast_protocol.base.crypto.secrets import Randomness, Seed
from hushcast_protocol.base.errors import UsageError
from hushcast_runtime.exception_groups import ungrouped
from hushcast_runtime.logs import log
from hushcast_runtime.tor import callers, circuits, publication, socks, tor_watch
from hushcast_runtime.tor.circuits import Circuits
from hushcast_runtime.tor.control import ControlClient, open_control
from hushcast_runtime.tor.isolation import isolating_socks
from hushcast_runtime.tor.listener import TorListener
from hushcast_runtime.tor.replies import status
from hushcast_runtime.tor.settings import TorSettings
from hushcast_runtime.tor.tor_process import keep_tor, socks_of
from hushcast_runtime.tor.tor_watch import Progress, TorState, TorWatch
from hushcast_runtime.transports.base import Listener, TransportError
from hushcast_runtime.transports.endpoints import Endpoint
from hushcast_runtime.transports.streams import LOOPBACK, listen_on_loopback, listen_on_socket, port_of

_WITHDRAW_WITHIN = 5.0  # seconds; tor answers within milliseconds
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 30.0  # seconds between attempts to reach the control port
_LOOK_EVERY = 30.0  # seconds between questions whether tor still answers
_ANSWER_WITHIN = 30.0  # seconds; a tor that is busy with many services has taken three


def _ignore(percent: int, summary: str) -> None:
    pass


class _ControlEndpoint:
    """Where the control port is: known from the settings, or from each start of a tor of our own."""

    def __init__(self, endpoint: Endpoint | None) -> None:
        self._endpoint = endpoint
        self._known = trio.Event()
        if endpoint is not None:
            self._known.set()

    def set(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._known.set()

    async def wait(self) -> Endpoint:
        await self._known.wait()
        assert self._endpoint is not None
        return self._endpoint


class TorTransport:
    """Implements `Transport` with onion services; usable while its `run` is running."""

    def __init__(
        self, settings: TorSettings, progress: Progress = _ignore, randomness: Randomness = os.urandom
    ) -> None:
        """Prepare the transport; `progress` hears of bootstrap, `randomness` sets our circuits apart."""
        self._settings = settings
        self._watch = TorWatch(progress)
        # Daemons that share one tor must not share circuits, whatever they choose for `isolation`.
        self._randomness = randomness
        self._user = base64.urlsafe_b64encode(randomness(18)).decode()
        self._circuits = Circuits(self._user, randomness)
        self._control: ControlClient | None = None
        self._socks: Endpoint | None = None
        self._user_of_tor: int | None = None
        self._sockets_here = callers.SocketTable()
        self._services: dict[str, TorListener] = {}
        self._control_endpoint = _ControlEndpoint(settings.control)
        self._adopted = trio.Event()
        self._pow = ""

    @property
    def state(self) -> TorState:
        """How tor is, and how many of our onion services others can find."""
        services = self._services.values()
        published = sum(service.publication.held.is_set() for service in services)
        apart = not self._circuits.refused
        state = self._watch.state
        return replace(
            state, circuits_apart=apart, services=len(services), published=published, pow=self._pow
        )

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Own the tor process, if it is ours, and the control connection, until cancelled.

        Reports started once tor has bootstrapped, which takes as long as its network does; `state` and the
        log show how it goes. A tor of ours that ends is started again; a lost control connection is opened
        again with growing pauses and all services are added anew. Raises `TransportError` when the control
        port did not open within the settings' deadline or a tor of ours ended before it did; `UsageError`
        when tor cannot be started, or its SOCKS port was found not to isolate at the first look.
        """
        self._look_at_sockets()
        with self._removing_sockets(), ungrouped(TransportError, UsageError):
            async with trio.open_nursery() as nursery:
                with trio.CancelScope() as starting:
                    starting.deadline = trio.current_time() + self._settings.ready_within
                    if (state := self._settings.state_directory) is not None:
                        include = self._settings.torrc_include
                        nursery.start_soon(
                            keep_tor, state, include, self._control_endpoint.set, self._randomness
                        )
                    nursery.start_soon(self._keep_control)
                    await self._adopted.wait()
                if starting.cancelled_caught:
                    raise TransportError(f"tor is not ready in time: {self.state.summary}")
                await self._watch.wait()
                task_status.started()

    async def _keep_control(self) -> None:
        backoff = Backoff(_FIRST_PAUSE, _LONGEST_PAUSE, self._randomness)
        while True:
            try:
                endpoint = await self._control_endpoint.wait()
                async with open_control(endpoint, self._handle, self._circuits.take) as control:
                    await self._adopt(control)
                    backoff.reset()
                    await self._until_lost(control)
            except TransportError as error:
                reason = str(error)
            except UsageError as error:
                if not self._adopted.is_set():
                    raise
                reason = str(error)
            # tor's ports may belong to another process now: nothing goes there before that is checked anew.
            self._control = self._socks = None
            for service in self._services.values():
                service.lose()
            self._watch.end(reason)
            pause = backoff.next()
            log.warning("tor is away", reason=reason, again_in=round(pause, 1))
            await trio.sleep(pause)

    async def _adopt(self, control: ControlClient) -> None:
        await self._listen(control)
        own = self._settings.state_directory
        wanted = self._settings.socks if own is None else socks_of(own)
        assert wanted is not None  # the settings have one or the other
        socks = await isolating_socks(control, wanted)
        if self._settings.sockets is None:
            self._user_of_tor = await _user_of(control, self._user_of_tor)
        self._control = control
        for service in list(self._services.values()):
            if service.service in self._services:  # not closed while the others were added
                await self._add(control, service)
        await self._watch.begin(control)
        self._socks = socks
        self._adopted.set()

    async def _listen(self, control: ControlClient) -> None:
        """Ask for events; a filter before a system's tor may forbid those that we can live without."""
        needed = (*publication.EVENTS, *tor_watch.EVENTS)
        if await control.may_hear(*needed, *circuits.EVENTS):
            self._circuits.refused = False  # the filter may be another one
        else:
            self._circuits.note_refused()
            await control.set_events(*needed)

    async def _until_lost(self, control: ControlClient) -> NoReturn:
        """Supervise an adopted connection; raise `TransportError` once it is lost or tor hangs."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._circuits.run, control)
            nursery.start_soon(self._tell_when_published)
            while not control.lost.is_set():
                with trio.move_on_after(_LOOK_EVERY):
                    await control.lost.wait()
                with trio.move_on_after(_ANSWER_WITHIN), suppress(TransportError):
                    await control.getinfo("version")
                    continue
                break
            nursery.cancel_scope.cancel()
        if control.lost.is_set():
            raise TransportError("the control connection to tor is lost")
        raise TransportError("tor does not answer at its control port any more")

    async def _tell_when_published(self) -> None:
        services = list(self._services.values())
        for service in services:
            await service.publication.held.wait()
        if services:
            log.info("onion services are published")

    def _handle(self, event: Any) -> None:
        self._watch.handle(event)
        if event.type in publication.EVENTS and event.address in self._services:
            self._services[event.address].publication.handle(event)

    async def _add(self, control: ControlClient, service: TorListener) -> None:
        name = await control.add_onion(
            service.key, ONION_PORT, self._for_tor(service.target), self._settings.defended
        )
        if name != service.service:
            raise TransportError("tor derived another address from the key")
        self._pow = ("on" if control.defends else "not in this tor") if self._settings.defended else "off"

    def _for_tor(self, target: Endpoint) -> Endpoint | str:
        # ADD_ONION takes no path with spaces; a tor of our own runs in the directory of these sockets.
        return target if self._settings.state_directory is None else f"unix:{Path(target.path).name}"

    async def listen(self, seed: Seed, previous: Address | None = None) -> Listener:
        """Open an onion service whose address is the public key of `seed`; `previous` has no part in it.

        Others can find it after `published`; while tor is away it waits to be added. Raises `TransportError`
        when tor refuses it or has a service of that key already.
        """
        listener, target = await self._open_listener()
        service = TorListener(
            seed, listener, target, self._withdraw, self._settings.published_within, self._admits
        )
        if service.service in self._services:
            await service.aclose()
            raise TransportError("this onion service is open already")
        self._services[service.service] = service
        control = self._control
        try:
            if control is not None:
                await self._add(control, service)
            else:
                service.lose()  # it is added with the others when tor is back
        except TransportError:
            assert control is not None
            if not control.lost.is_set():  # else it is added with the others when tor is back
                await service.aclose()
                raise
        except BaseException:
            await service.aclose()
            raise
        return service

    async def _open_listener(self) -> tuple[trio.SocketListener, Endpoint]:
        if (directory := self._settings.sockets) is None:
            listener = await listen_on_loopback()
            return listener, Endpoint(host=LOOPBACK, port=port_of(listener))
        path = directory / f"{self._randomness(8).hex()}.sock"
        shared = self._settings.state_directory is None  # with the group of the system's tor
        return await listen_on_socket(path, shared), Endpoint(path=str(path))

    def _look_at_sockets(self) -> None:
        """Check that only tor can reach the Unix sockets of onion services; raise `UsageError` otherwise."""
        if (own := self._settings.state_directory) is not None:
            for left in own.glob("*.sock"):  # by a daemon that was killed
                left.unlink()
        elif (shared := self._settings.services) is not None:
            try:
                mode = shared.stat().st_mode
            except OSError as error:
                raise UsageError(f"tor.services: {shared} cannot be used: {error.strerror}") from None
            if mode & 0o007:
                raise UsageError(f"tor.services: {shared} is open to other users: chmod o= it")

    @contextmanager
    def _removing_sockets(self) -> Iterator[None]:
        """Leave no socket of a service that was open to the last, as a relay is: it would stay for ever."""
        try:
            yield
        finally:
            for service in self._services.values():
                service.remove_socket()

    async def _admits(self, stream: trio.SocketStream) -> bool:
        """Tell whether tor is at the other end of a stream that came for one of our services."""
        if self._settings.sockets is not None:
            return True  # nobody else gets to the socket
        return self._user_of_tor is not None and await callers.is_of(
            stream, self._user_of_tor, self._sockets_here
        )

    async def getinfo(self, key: str) -> str:
        """Return what tor says to a GETINFO key; raises `TransportError`."""
        if self._control is None:
            raise TransportError("tor is not connected")
        return await self._control.getinfo(key)

    async def _withdraw(self, service: TorListener) -> None:
        if self._services.get(service.service) is not service:
            return
        del self._services[service.service]
        if self._control is None:
            return
        # A cancelled task must withdraw all the same; a lost connection has done so already.
        with suppress(TransportError), trio.move_on_after(_WITHDRAW_WITHIN) as scope:
            scope.shield = True
            await self._control.del_onion(service.service)

    async def connect(self, address: Address, isolation: str, ahead: bytes = b"") -> trio.abc.Stream:
        """Connect to an onion address on circuits that no other `isolation` and no other daemon shares.

        Raises `TransportError`: before any socket is opened when `address` is not an onion address, else
        with tor's reason (`UnreachableError`). The caller sets the deadline: tor may take minutes to give up.
        """
        socks.check_request(address, isolation)
        if self._socks is None:
            raise TransportError(f"tor is not connected: {self._watch.state.summary}")
        return await socks.open_stream(self._socks, address, self._user, isolation, ahead)


async def _user_of(control: ControlClient, before: int | None) -> int:
    """Return the number of the user that tor runs as, `before` at an earlier connection.

    Raises `UsageError` where tor's sockets cannot be told from others', and where whoever holds the control
    port is another user: keys of onion services must not go there.
    """
    reply = await control.ask("GETINFO process/uid")
    uid = "".join(line.removeprefix("process/uid=") for _, _, line in reply.content()[:1])
    if status(reply) == "250" and uid.isascii() and uid.isdecimal() and callers.tells_apart(int(uid)):
        if before in (None, int(uid)) and await control.is_held_by(int(uid)):
            return int(uid)
        raise UsageError("another user than tor's holds tor's control port: name a Unix socket, unix:/PATH")
    raise UsageError(
        "the daemon cannot tell tor from other users of this machine, who could learn its onion services at "
        "loopback ports: set tor.services"
    )
