"""The `tor` transport: every address is an onion service, every connection goes through SOCKS to one.

No code path here opens a socket to anything but tor's own loopback or Unix endpoints.
"""

from __future__ import annotations

import base64
import os
import re
from contextlib import suppress
from typing import Any

import trio

from hushcast_protocol.addresses import ONION_PORT, Address, is_onion
from hushcast_protocol.errors import UsageError
from hushcast_protocol.secrets import Randomness, Seed
from hushcast_runtime.tor import bootstrap, publication, socks
from hushcast_runtime.tor.bootstrap import BootstrapWatch, Progress, TorState
from hushcast_runtime.tor.control import ControlClient, open_control
from hushcast_runtime.tor.endpoints import Endpoint, open_endpoint, parse_endpoint
from hushcast_runtime.tor.listener import TorListener
from hushcast_runtime.tor.process import run_tor
from hushcast_runtime.tor.settings import TorSettings
from hushcast_runtime.transports.base import Listener, TransportError
from hushcast_runtime.transports.streams import listen_on_loopback

_ISOLATION = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")
_WITHDRAW_WITHIN = 5.0  # seconds; tor answers within milliseconds
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 30.0  # seconds between attempts to reach the control port


def _ignore(percent: int, summary: str) -> None:
    pass


class TorTransport:
    """Implements `Transport` with onion services; usable while its `run` is running."""

    def __init__(
        self, settings: TorSettings, progress: Progress = _ignore, randomness: Randomness = os.urandom
    ) -> None:
        """Prepare the transport; `progress` hears of bootstrap, `randomness` sets our circuits apart."""
        self._settings = settings
        self._watch = BootstrapWatch(progress)
        # Daemons that share one tor must not share circuits, whatever they choose for `isolation`.
        self._user = base64.urlsafe_b64encode(randomness(18)).decode()
        self._control: ControlClient | None = None
        self._socks: Endpoint | None = None
        self._services: dict[str, TorListener] = {}

    @property
    def state(self) -> TorState:
        """Bootstrap progress and whether the control connection is up."""
        return self._watch.state

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Own the tor process, if it is ours, and the control connection, until cancelled.

        Reports started once tor has bootstrapped. A lost control connection shows in `state`; it is opened
        again with growing pauses and all services are added anew. Raises `TransportError` when tor is not
        ready within the settings' deadline or our own process ends; `UsageError` when it cannot be started.
        """
        failure: Exception | None = None
        try:
            async with trio.open_nursery() as nursery:
                with trio.CancelScope() as starting:
                    starting.deadline = trio.current_time() + self._settings.ready_within
                    endpoint = await self._start(nursery)
                    nursery.start_soon(self._keep_control, endpoint)
                    await self._watch.wait()
                if starting.cancelled_caught:
                    raise TransportError(f"tor is not ready in time: {self.state.percent} % bootstrapped")
                task_status.started()
        except* (TransportError, UsageError) as failures:
            failure = _first(failures)
        if failure is not None:
            raise failure

    async def _start(self, nursery: trio.Nursery) -> Endpoint:
        if (state := self._settings.state_directory) is not None:
            return await nursery.start(run_tor, state, self._settings.torrc_include)  # type: ignore[no-any-return]
        assert self._settings.control is not None  # as the settings have checked
        return self._settings.control

    async def _keep_control(self, endpoint: Endpoint) -> None:
        pause = _FIRST_PAUSE
        while True:
            try:
                async with open_control(endpoint, self._handle) as control:
                    await self._adopt(control)
                    pause = _FIRST_PAUSE
                    await control.lost.wait()
            except TransportError:
                pass  # `state` shows it, and the next attempt follows
            finally:
                self._control = None
                self._watch.end()
            await trio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    async def _adopt(self, control: ControlClient) -> None:
        await control.set_events(*publication.EVENTS, *bootstrap.EVENTS)
        self._socks = self._settings.socks or await _socks_of(control)
        self._control = control
        for service in list(self._services.values()):
            if service.service in self._services:  # not closed while the others were added
                await self._add(control, service)
        await self._watch.begin(control)

    def _handle(self, event: Any) -> None:
        self._watch.handle(event)
        if event.type in publication.EVENTS and event.address in self._services:
            self._services[event.address].publication.handle(event)

    async def _add(self, control: ControlClient, service: TorListener) -> None:
        name = await control.add_onion(service.key, ONION_PORT, service.target)
        if name != service.service:
            raise TransportError("tor derived another address from the key")

    async def listen(self, seed: Seed, previous: Address | None = None) -> Listener:
        """Open an onion service whose address is the public key of `seed`; `previous` has no part in it.

        Returns as soon as tor has taken it; others can find it after `published`. Raises `TransportError`
        when tor is not reachable or has a service of that key already.
        """
        control = self._control
        if control is None:
            raise TransportError("tor is not connected")
        port = await listen_on_loopback()
        service = TorListener(seed, port, self._withdraw, self._settings.published_within)
        if service.service in self._services:
            await port.aclose()
            raise TransportError("this onion service is open already")
        self._services[service.service] = service
        try:
            await self._add(control, service)
        except BaseException:
            await service.aclose()
            raise
        return service

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
        # Whoever is cancelled must withdraw all the same; a lost connection has done so already.
        with suppress(TransportError), trio.move_on_after(_WITHDRAW_WITHIN) as scope:
            scope.shield = True
            await self._control.del_onion(service.service)

    async def connect(self, address: Address, isolation: str) -> trio.abc.Stream:
        """Connect to an onion address on circuits that no other `isolation` and no other daemon shares.

        Raises `TransportError`: before any socket is opened when `address` is not an onion address, else
        with tor's reason (`UnreachableError`). The caller sets the deadline: tor may take minutes to give up.
        """
        if not is_onion(address):
            raise TransportError("only onion addresses are reached through Tor")
        if not _ISOLATION.match(isolation):
            raise ValueError("isolation is 1 to 64 characters of the URL-safe base64 alphabet")
        if self._socks is None:
            raise TransportError("tor is not connected")
        stream = await open_endpoint(self._socks)
        try:
            await socks.request(stream, address, self._user, isolation)
        except BaseException:
            await trio.aclose_forcefully(stream)
            raise
        return stream


async def _socks_of(control: ControlClient) -> Endpoint:
    listeners = (await control.getinfo("net/listeners/socks")).split()
    if not listeners:
        raise TransportError("our tor has no SOCKS port")
    return parse_endpoint(listeners[0])


def _first(group: BaseExceptionGroup[Any]) -> Exception:
    """Return the first plain error in `group`; there is one, for one failure ends the nursery."""
    error: Any = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    assert isinstance(error, Exception)
    return error
