"""A SOCKS port and nothing else of a tor: what a client reaches by it, and that it has to isolate."""

from __future__ import annotations

import os
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import trio

from hushcast_protocol.base.addresses import Address, onion_address
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.errors import UsageError
from hushcast_runtime.tor import isolation_trial
from hushcast_runtime.tor.control import MAX_STREAMS
from hushcast_runtime.tor.isolation_trial import SharedCircuitError
from hushcast_runtime.tor.settings import TorSettings
from hushcast_runtime.tor.socks_transport import SocksTransport, _Port
from hushcast_runtime.tor.transport import TorTransport
from hushcast_runtime.transports.base import TransportError
from hushcast_runtime.transports.endpoints import Endpoint
from hushcast_testnet.tor.private_tor import TorNetwork

WITHIN = 60.0
ONION = onion_address(Seed(bytes(32)).public())


@pytest.fixture
def short() -> Iterator[Path]:
    """A directory whose path leaves room for Unix sockets."""
    with tempfile.TemporaryDirectory(prefix="hush-") as name:
        yield Path(name)


@asynccontextmanager
async def by_socks(endpoint: Endpoint, ready_within: float = WITHIN) -> AsyncIterator[SocksTransport]:
    transport = SocksTransport(endpoint, ready_within, os.urandom)
    async with trio.open_nursery() as nursery:
        await nursery.start(transport.run)
        yield transport
        nursery.cancel_scope.cancel()


@dataclass
class SocksServer:
    """Speaks as tor's SOCKS port does; all names lead to a service that says what it hears."""

    path: Path
    shares_circuits: bool = False
    """Whether all streams share one circuit, which the service closes when there are too many."""
    is_far: bool = False
    """Whether such a circuit ends before any of those streams is there."""
    method: int = 2
    greeting: bytes = b""
    """What the service says first."""
    asked: list[tuple[bytes, bytes]] = field(default_factory=list)
    """User and password of each request."""
    ahead: list[bytes] = field(default_factory=list)
    """What came with each request, before it was answered."""
    granted: list[trio.SocketStream] = field(default_factory=list)
    _coming: int = 0

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Endpoint]:
        socket = trio.socket.socket(trio.socket.AF_UNIX)
        await socket.bind(str(self.path))
        socket.listen()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.serve_listeners, self._serve, [trio.SocketListener(socket)])
            yield Endpoint(path=str(self.path))
            nursery.cancel_scope.cancel()
        self.path.unlink()

    async def _serve(self, stream: trio.SocketStream) -> None:
        async with stream:
            try:
                await self._converse(stream)
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                pass
            finally:
                self.granted = [other for other in self.granted if other is not stream]

    async def _converse(self, stream: trio.SocketStream) -> None:
        await stream.receive_some(3)
        await stream.send_all(bytes([5, self.method]))
        if not (said := bytes(await stream.receive_some(600))):
            return
        user = said[2 : 2 + said[1]]
        self.asked.append((user, said[3 + len(user) :]))
        await stream.send_all(b"\x01\x00")
        request = bytes(await stream.receive_some(600))
        ahead = request[5 + request[4] + 2 :]
        self.ahead.append(ahead)
        if self.is_far:
            self._coming += 1
            await trio.sleep(0.1)
            is_refused = self.shares_circuits and self._coming + len(self.granted) > MAX_STREAMS
            await trio.sleep(0.1)
            self._coming -= 1
            if is_refused:
                for other in self.granted:
                    other.socket.close()
                await stream.send_all(b"\x05\x01\x00\x01" + bytes(6))
                return
        await stream.send_all(b"\x05\x00\x00\x01" + bytes(6))
        self.granted.append(stream)
        if self.shares_circuits and len(self.granted) > MAX_STREAMS:
            for other in self.granted:
                other.socket.close()
            return
        if said := self.greeting + ahead:
            await stream.send_all(said)
        while data := await stream.receive_some():
            await stream.send_all(data)


async def converse(transport: SocksTransport, address: Address, isolation: str) -> None:
    async with await transport.connect(address, isolation) as stream:
        await stream.send_all(b"x")
        assert await stream.receive_some() == b"x"


async def test_the_first_address_is_where_isolation_is_tried(short: Path) -> None:
    server = SocksServer(short / "socks")
    async with server.running() as endpoint, by_socks(endpoint) as transport:
        assert (transport.state.connected, transport.state.circuits) == (True, False)
        assert transport.state.percent is None
        await converse(transport, ONION, "a")
        assert len(server.asked) == MAX_STREAMS + 1
        await converse(transport, ONION, "b")
        assert len(server.asked) == MAX_STREAMS + 2
        users, passwords = zip(*server.asked, strict=True)
        assert len(set(users)) == 1
        assert len(set(passwords)) == len(passwords), "each has an isolation of its own"
        assert transport.state.circuits
        assert not transport.state.circuits_apart
        with pytest.raises(UsageError, match="no onion service"):
            await transport.listen(Seed(bytes(32)))


async def test_nothing_goes_ahead_until_isolation_has_held(short: Path) -> None:
    server = SocksServer(short / "socks")
    async with server.running() as endpoint, by_socks(endpoint) as transport:
        for isolation in "ab":
            async with await transport.connect(ONION, isolation, b"ahead") as stream:
                assert await stream.receive_some() == b"ahead"
    assert server.ahead == [b""] * (MAX_STREAMS + 1) + [b"ahead"]


async def test_what_a_service_says_first_is_not_lost(short: Path) -> None:
    server = SocksServer(short / "socks", greeting=b"hello")
    async with (
        server.running() as endpoint,
        by_socks(endpoint) as transport,
        await transport.connect(ONION, "a") as stream,
    ):
        assert await stream.receive_some() == b"hello"


@pytest.mark.parametrize("is_far", [False, True])
async def test_nothing_is_said_by_a_port_that_shares_circuits(
    is_far: bool, short: Path, log_lines: list[dict[str, Any]]
) -> None:
    server = SocksServer(short / "socks", shares_circuits=True, is_far=is_far)
    async with server.running() as endpoint, by_socks(endpoint) as transport:
        for _ in range(2):
            with pytest.raises(SharedCircuitError, match="take NoIsolateSOCKSAuth out"):
                await transport.connect(ONION, "a", b"ahead")
        assert not any(server.ahead)
        assert not transport.state.connected
        assert transport.state.away == transport.state.problem != ""
        assert [line["level"] for line in log_lines] == ["error"]
        server.shares_circuits = False
        await converse(transport, ONION, "a")
        assert transport.state.connected
        assert not transport.state.problem


async def test_a_service_that_ends_what_says_nothing_for_long_shows_nothing(
    short: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = SocksServer(short / "socks", shares_circuits=True)
    monkeypatch.setattr(isolation_trial, "_TELLING", 0.0)  # seconds, of ten that it would take
    async with server.running() as endpoint, by_socks(endpoint) as transport:
        with pytest.raises(TransportError, match="took too long") as failed:
            await transport.connect(ONION, "a")
        assert not isinstance(failed.value, SharedCircuitError)
        assert not transport.state.circuits, "nothing is proven"


async def test_a_port_that_comes_back_is_tried_anew(short: Path) -> None:
    server = SocksServer(short / "socks")
    endpoint = Endpoint(path=str(server.path))
    async with trio.open_nursery() as nursery:
        transport = SocksTransport(endpoint, WITHIN, os.urandom)
        async with server.running():
            await nursery.start(transport.run)
            await converse(transport, ONION, "a")
        with trio.fail_after(WITHIN):
            while transport.state.connected:  # noqa: ASYNC110 - a state that nobody tells
                await trio.sleep(0.01)
        with pytest.raises(TransportError, match="not connected: tor does not answer at its endpoint"):
            await transport.connect(ONION, "a")
        again = SocksServer(server.path)
        async with again.running():
            with trio.fail_after(WITHIN):
                while not transport.state.connected:  # noqa: ASYNC110
                    await trio.sleep(0.01)
                await converse(transport, ONION, "a")
            assert len(again.asked) == MAX_STREAMS + 1
            nursery.cancel_scope.cancel()


async def test_what_was_opened_while_a_port_came_back_is_not_used(short: Path) -> None:
    server = SocksServer(short / "socks", is_far=True)
    async with server.running() as endpoint, by_socks(endpoint) as transport:
        await converse(transport, ONION, "a")
        async with trio.open_nursery() as nursery:

            @nursery.start_soon
            async def connect() -> None:
                with pytest.raises(TransportError, match="away meanwhile"):
                    await transport.connect(ONION, "b")

            await trio.sleep(0.05)  # of the 0.2 that it takes
            transport._port = _Port()


@pytest.mark.parametrize("speaks", [True, False])
async def test_a_port_of_no_use_is_told_in_time(speaks: bool, short: Path) -> None:
    server = SocksServer(short / "socks", method=0xFF)
    with pytest.RaisesGroup(
        pytest.RaisesExc(TransportError, match="not ready in time"), flatten_subgroups=True
    ):
        async with (
            server.running() as endpoint,
            by_socks(endpoint if speaks else Endpoint(path=str(short / "none")), 0.5),
        ):
            pass


async def test_nothing_but_onion_addresses_is_asked_for(short: Path) -> None:
    server = SocksServer(short / "socks")
    async with server.running() as endpoint, by_socks(endpoint) as transport:
        for text in ("127.0.0.1:80", "example.org:80", ""):
            with pytest.raises(TransportError, match="only onion addresses"):
                await transport.connect(Address(text), "a")
        with pytest.raises(ValueError, match="isolation"):
            await transport.connect(ONION, "a b")
    assert not server.asked


async def echo(stream: trio.abc.Stream) -> None:
    async with stream:
        while data := await stream.receive_some():
            await stream.send_all(data)


@pytest.mark.tor
async def test_a_tor_that_does_not_isolate_is_found_by_its_use(tor_network: TorNetwork, short: Path) -> None:
    """One tor with two ports, of which one was told not to isolate."""
    loose, sound = (Endpoint(path=str(short / name)) for name in ("loose", "tor/socks"))
    lines = Path(tor_network.snippet).read_text()
    (short / "lines").write_text(f'{lines}\nSocksPort unix:"{loose.path}" NoIsolateSOCKSAuth\n')
    settings = TorSettings(state_directory=short / "tor", torrc_include=short / "lines")
    with trio.fail_after(2 * WITHIN):
        async with trio.open_nursery() as nursery:
            tor = TorTransport(settings)
            await nursery.start(tor.run)
            listener = await tor.listen(Seed.draw(os.urandom))
            nursery.start_soon(listener.serve, echo)
            await listener.published()
            async with by_socks(sound) as transport:
                for isolation in ("a", "b"):
                    await converse(transport, listener.address, isolation)
            async with by_socks(loose) as transport:
                for _ in range(3):
                    with pytest.raises(SharedCircuitError):
                        await transport.connect(listener.address, "a")
            await listener.aclose()
            nursery.cancel_scope.cancel()
