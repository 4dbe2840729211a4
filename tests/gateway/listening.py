"""Gateways that listen."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import trio
from made_certificates import Certificates

from hushcast_gateway.clients.listeners import Listeners
from hushcast_gateway.counters import GATEWAY_COUNTERS
from hushcast_gateway.peer import ClientPeer
from hushcast_gateway.sections.listen_section import ListenSection
from hushcast_runtime.counters import Counters
from hushcast_runtime.environment import system_environment

WITHIN = 10.0  # seconds


async def echo(stream: trio.abc.Stream, peer: ClientPeer) -> None:
    while data := await stream.receive_some(65_536):
        await stream.send_all(data)


class Gateway:
    """Listeners whose clients meet an echo, and what is known of those."""

    def __init__(self, places: list[ListenSection], speak: Callable[..., Awaitable[None]] = echo) -> None:
        self.counters = Counters(GATEWAY_COUNTERS)
        self.peers: list[ClientPeer] = []
        self._speak = speak
        self.listeners = Listeners(places, None, self._serve, self.counters, system_environment())
        self.ports: list[int] = []

    async def _serve(self, stream: trio.abc.Stream, peer: ClientPeer) -> None:
        self.peers.append(peer)
        await self._speak(stream, peer)

    async def connect(self, number: int = 0) -> trio.SocketStream:
        return await trio.open_tcp_stream("127.0.0.1", self.ports[number])


@asynccontextmanager
async def running(
    *places: ListenSection, speak: Callable[..., Awaitable[None]] = echo
) -> AsyncIterator[Gateway]:
    gateway = Gateway(list(places), speak)
    with trio.fail_after(WITHIN):
        async with trio.open_nursery() as nursery:
            opened = await nursery.start(gateway.listeners.run)
            names = [listener.socket.getsockname() for listener in opened]
            gateway.ports = [0 if isinstance(name, (str, bytes)) else name[1] for name in names]
            yield gateway
            nursery.cancel_scope.cancel()


BYTES = bytes(range(256)) * 1_000


def tls(certificates: Certificates, kind: str = "tls", **others: object) -> ListenSection:
    files = {"certificate": certificates.path("gateway.pem"), "key": certificates.path("gateway.key")}
    return ListenSection(kind=kind, **(files | others))  # type: ignore[arg-type]


def client_context(certificates: Certificates, name: str | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=certificates.path("ca.pem"))
    if name is not None:
        context.load_cert_chain(certificates.path(f"{name}.pem"), certificates.path(f"{name}.key"))
    return context


def secured(stream: trio.abc.Stream, context: ssl.SSLContext) -> trio.SSLStream[trio.abc.Stream]:
    return trio.SSLStream(stream, context, server_hostname="127.0.0.1", https_compatible=True)
