"""What only the `tor` transport promises: isolation, keys, refusal before any socket, and a state to see."""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import trio
import trio.testing

from hushcast_protocol.base.addresses import ONION_PORT, Address, onion_address
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.errors import UsageError
from hushcast_runtime.tor import socks
from hushcast_runtime.tor.control import MAX_STREAMS, ControlClient, open_control
from hushcast_runtime.tor.listener import TorListener
from hushcast_runtime.tor.onions import expanded_key, service_id
from hushcast_runtime.tor.publication import DescriptorPublication
from hushcast_runtime.tor.replies import ReplySplitter, convert, status
from hushcast_runtime.tor.settings import TorSettings
from hushcast_runtime.tor.socks import UnreachableError, UnreachableReason
from hushcast_runtime.tor.tor_watch import TorState, TorWatch
from hushcast_runtime.tor.transport import TorTransport
from hushcast_runtime.transports.base import TransportError
from hushcast_runtime.transports.endpoints import Endpoint, parse_endpoint
from hushcast_testnet.tor.private_tor import TorNetwork

DEADLINE = 60.0
ONION = onion_address(Seed(bytes(32)).public())
LOOPBACK = Endpoint(host="127.0.0.1", port=9)


@pytest.fixture
def short_path() -> Iterator[Path]:
    """A directory whose path leaves room for Unix sockets."""
    with tempfile.TemporaryDirectory(prefix="hush-") as directory:
        yield Path(directory)


@asynccontextmanager
async def running(settings: TorSettings) -> AsyncIterator[TorTransport]:
    transport = TorTransport(settings)
    async with trio.open_nursery() as nursery:
        with trio.fail_after(DEADLINE):
            await nursery.start(transport.run)
        yield transport
        nursery.cancel_scope.cancel()


def shared(network: TorNetwork) -> TorSettings:
    control, socks = network.clients[0].endpoints()
    return TorSettings(control=control, socks=socks)


async def test_nothing_but_onion_addresses_gets_as_far_as_a_socket(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_socket(*_: Any, **__: Any) -> None:
        raise AssertionError("a socket was opened")

    transport = TorTransport(TorSettings(control=LOOPBACK, socks=LOOPBACK))
    monkeypatch.setattr(trio.socket, "socket", no_socket)
    monkeypatch.setattr(trio, "open_tcp_stream", no_socket)
    for text in ("127.0.0.1:80", "example.org:80", "a.onion:1", "0" * 32 + ".memory:1", ""):
        with pytest.raises(TransportError, match="only onion addresses"):
            await transport.connect(Address(text), "a")
    for isolation in ("", "a b", "<torS0X>0", "a" * 65):
        with pytest.raises(ValueError, match="isolation"):
            await transport.connect(ONION, isolation)
    with pytest.raises(TransportError, match="not connected"):
        await transport.connect(ONION, "a")


@pytest.mark.parametrize("text", ["127.0.0.1:9051", "127.8.0.1:1", "unix:/run/tor/control", '"unix:/a"'])
def test_endpoints_on_this_machine_are_taken(text: str) -> None:
    assert str(parse_endpoint(text)) == text.strip('"')


@pytest.mark.parametrize(
    "text",
    ["192.0.2.1:9051", "localhost:9051", "0.0.0.0:1", "127.0.0.1:0", "127.0.0.1:70000", "1", "unix:a", ""],
)
def test_endpoints_elsewhere_are_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_endpoint(text)


def test_settings_are_of_one_mode(tmp_path: Path) -> None:
    for wrong in (
        {},
        {"control": LOOPBACK},
        {"socks": LOOPBACK, "services": tmp_path},
        {"state_directory": tmp_path, "socks": LOOPBACK},
        {"control": LOOPBACK, "socks": LOOPBACK, "torrc_include": tmp_path},
        {"state_directory": tmp_path, "ready_within": 0.0},
        {"state_directory": tmp_path / ("x" * 85)},
        {"control": LOOPBACK, "socks": LOOPBACK, "services": tmp_path / ("x" * 85)},
    ):
        with pytest.raises(UsageError):
            TorSettings(**wrong)


REPLIES = b"250-version=1\r\n250+info/names=\r\na -- b\r\n..c\r\n250 x\r\n.\r\n250 OK\r\n650 X 1\r\n"


def test_replies_are_the_same_however_the_bytes_are_split() -> None:
    for cut in range(len(REPLIES) + 1):
        splitter = ReplySplitter()
        replies = splitter.feed(REPLIES[:cut]) + splitter.feed(REPLIES[cut:])
        assert [status(reply) for reply in replies] == ["250", "650"]
        assert list(replies[0]) == ["version=1", "info/names=\na -- b\n.c\n250 x", "OK"]


@pytest.mark.parametrize("wrong", [b"hello\r\n", b"25\r\n", b"250?x\r\n", b"a" * (5 << 20)])
def test_bytes_that_are_no_replies_are_an_error(wrong: bytes) -> None:
    with pytest.raises(TransportError):
        ReplySplitter().feed(wrong)


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("PROTOCOLINFO", b"250 OK\r\n"),
        ("EVENT", b"650 HS_DESC FAILED\r\n"),
        ("GETINFO", b"250 nothing\r\n"),
    ],
)
def test_replies_of_another_kind_are_an_error_whatever_the_parser_raises(kind: str, said: bytes) -> None:
    with pytest.raises(TransportError, match="not of the kind"):
        convert(kind, ReplySplitter().feed(said)[0])


def test_progress_of_thousands_of_digits_is_passed_over() -> None:
    watch = TorWatch(lambda percent, summary: None)
    fields = {"PROGRESS": "9" * 5000, "SUMMARY": "odd"}
    watch.handle(SimpleNamespace(type="STATUS_CLIENT", action="BOOTSTRAP", keyword_args=fields))
    assert (watch.state.percent, watch.state.summary) == (0, "odd")


async def test_an_answer_to_another_question_is_an_error() -> None:
    ours, theirs = trio.testing.memory_stream_pair()
    control = ControlClient(ours, lambda event: None)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(control.read)
        await theirs.send_all(b"250-version=1\r\n250 OK\r\n")
        with pytest.raises(TransportError, match="something else"):
            await control.getinfo("net/listeners/socks")
        nursery.cancel_scope.cancel()


def hs_desc(
    action: str, directory: str, descriptor: str | None = None, authentication: str = "UNKNOWN"
) -> SimpleNamespace:
    return SimpleNamespace(
        action=action, directory=directory, descriptor_id=descriptor, authentication=authentication
    )


def test_a_service_is_published_once_all_directories_have_answered() -> None:
    publication = DescriptorPublication()
    publication.handle(hs_desc("CREATED", "UNKNOWN", "now"))
    publication.handle(hs_desc("CREATED", "UNKNOWN", "next"))
    for directory, descriptor in (("a", "now"), ("a", "next"), ("b", "next"), ("c", "now"), ("d", "now")):
        publication.handle(hs_desc("UPLOAD", directory, descriptor))
    publication.handle(hs_desc("UPLOADED", "b"))
    publication.handle(hs_desc("UPLOADED", "a"))  # which of the two, it does not say
    publication.handle(hs_desc("FAILED", "d"))
    assert not publication.held.is_set()
    publication.handle(hs_desc("UPLOADED", "a"))
    assert publication.held.is_set()
    publication.handle(hs_desc("FAILED", "c", "now", "NO_AUTH"))  # a fetch by somebody on the same tor
    assert not publication.complete.is_set()
    publication.handle(hs_desc("UPLOADED", "c"))
    assert publication.complete.is_set()


def test_an_answer_to_an_upload_of_before_is_of_no_descriptor_that_was_sent_since() -> None:
    """The service was opened anew at the same tor, which still uploaded it for the last time."""
    publication = DescriptorPublication()
    publication.handle(hs_desc("UPLOADED", "a"))
    publication.handle(hs_desc("FAILED", "b"))
    for directory in ("a", "b"):
        for descriptor in ("now", "next"):
            publication.handle(hs_desc("UPLOAD", directory, descriptor))
    publication.handle(hs_desc("UPLOADED", "a"))
    assert not publication.held.is_set(), "one of both is nowhere yet"
    publication.handle(hs_desc("UPLOADED", "a"))
    publication.handle(hs_desc("UPLOADED", "b"))
    assert publication.held.is_set()
    assert not publication.complete.is_set(), "one upload is not answered yet"
    publication.handle(hs_desc("UPLOADED", "b"))
    assert publication.complete.is_set()


async def test_a_service_that_is_lost_while_slow_directories_are_awaited_is_published_by_the_next_tor(
    autojump_clock: trio.testing.MockClock,
) -> None:
    transport = TorTransport(TorSettings(control=LOOPBACK, socks=LOOPBACK))
    listener = await transport.listen(Seed(bytes(32)))
    assert isinstance(listener, TorListener)

    def upload(*answered: str) -> None:
        for directory in ("a", "b"):
            listener.publication.handle(hs_desc("UPLOAD", directory, "now"))
        for directory in answered:
            listener.publication.handle(hs_desc("UPLOADED", directory))

    async with trio.open_nursery() as nursery:
        published = trio.Event()

        @nursery.start_soon
        async def wait() -> None:
            await listener.published()
            published.set()

        upload("a")
        await trio.testing.wait_all_tasks_blocked()
        listener.lose()
        await trio.sleep(60)
        assert not published.is_set(), "the next tor has uploaded nothing yet"
        upload("a", "b")
        await published.wait()
    await listener.aclose()


async def socks_answer(answers: list[bytes], ahead: bytes = b"") -> bytes:
    """Run a request against a server that gives these answers; return what it was sent."""
    ours, theirs = trio.testing.memory_stream_pair()
    heard = b""

    async def server() -> None:
        nonlocal heard
        for answer in answers:
            heard += bytes(await theirs.receive_some(1024))
            await theirs.send_all(answer)
        await theirs.send_eof()
        async for data in theirs:
            heard += bytes(data)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(server)
        try:
            await socks.request(ours, ONION, "user", "secret", ahead)
        finally:
            await ours.aclose()
    return heard


async def failure_of(answers: list[bytes]) -> TransportError:
    with pytest.RaisesGroup(TransportError, flatten_subgroups=True) as caught:
        await socks_answer(answers)
    error = caught.value.exceptions[0]
    assert isinstance(error, TransportError)
    assert ONION[:56] not in str(error)
    return error


GRANTED = b"\x05\x00\x00\x01\0\0\0\0\0\0"


async def test_only_user_and_password_are_offered_and_the_name_is_left_to_tor() -> None:
    heard = await socks_answer([b"\x05\x02", b"\x01\x00", GRANTED])
    assert heard.startswith(b"\x05\x01\x02\x01\x04user\x06secret\x05\x01\x00\x03\x3e")
    assert heard.endswith(ONION[:62].encode() + ONION_PORT.to_bytes(2, "big"))


async def test_what_is_said_ahead_goes_with_the_request() -> None:
    heard = await socks_answer([b"\x05\x02", b"\x01\x00", GRANTED], b"ahead")
    assert heard.endswith(ONION[:62].encode() + ONION_PORT.to_bytes(2, "big") + b"ahead")


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (0xF0, UnreachableReason.NOT_FOUND),
        (0xF2, UnreachableReason.INTRODUCTION_FAILED),
        (0xF3, UnreachableReason.RENDEZVOUS_FAILED),
        (0xF7, UnreachableReason.INTRODUCTION_TIMED_OUT),
        (0x06, UnreachableReason.TIMED_OUT),
        (0x42, UnreachableReason.OTHER),
    ],
)
async def test_the_reasons_of_tor_are_kinds_of_errors(code: int, kind: UnreachableReason) -> None:
    error = await failure_of([b"\x05\x02", b"\x01\x00", bytes([5, code, 0, 1]) + bytes(6)])
    assert isinstance(error, UnreachableError)
    assert error.kind is kind


@pytest.mark.parametrize(
    "answers",
    [
        [b"\x05\x00"],
        [b"\x05\xff"],
        [b"\x05\x02", b"\x01\x01"],
        [b"\x05\x02"],
        [b"\x05\x02", b"\x01\x00", GRANTED[:7]],
    ],
)
async def test_a_server_that_does_not_isolate_or_ends_early_is_an_error(answers: list[bytes]) -> None:
    assert not isinstance(await failure_of(answers), UnreachableError)


@pytest.mark.tor
async def test_expanded_keys_are_those_of_tor(tor_network: TorNetwork) -> None:
    control_port, _ = tor_network.clients[0].endpoints()
    async with open_control(control_port) as control:
        for _ in range(20):
            seed = Seed.draw(os.urandom)
            name = await control.add_onion(expanded_key(seed), ONION_PORT, LOOPBACK)
            assert name == service_id(seed) == onion_address(seed.public())[:56]
            await control.del_onion(name)
            await control.del_onion(name)  # unknown by now, which is what was wanted


class Circuits:
    """Learns from STREAM events which circuit each connection to the SOCKS port took."""

    def __init__(self) -> None:
        self._ports: dict[str, int] = {}
        self._circuits: dict[int, str] = {}
        self._heard = trio.lowlevel.ParkingLot()

    def handle(self, event: Any) -> None:
        if event.status == "NEW" and event.source_port is not None:
            self._ports[event.id] = event.source_port
        elif event.status == "SUCCEEDED" and event.id in self._ports:
            self._circuits[self._ports[event.id]] = event.circ_id
            self._heard.unpark_all()

    async def of(self, stream: trio.abc.Stream) -> str:
        assert isinstance(stream, trio.SocketStream)
        port = stream.socket.getsockname()[1]
        while port not in self._circuits:
            await self._heard.park()
        return self._circuits[port]


@pytest.mark.tor
async def test_a_circuit_with_too_many_connections_is_closed(tor_network: TorNetwork) -> None:
    """Else one circuit, for which one introduction was paid, could bring any number of connections."""
    async with (
        running(shared(tor_network)) as transport,
        AsyncExitStack() as open_streams,
        trio.open_nursery() as nursery,
    ):
        listener = await transport.listen(Seed.draw(os.urandom))

        async def hold(stream: trio.abc.Stream) -> None:
            while await stream.receive_some():
                pass

        async def connect(isolation: str) -> trio.abc.Stream:
            return await open_streams.enter_async_context(
                await transport.connect(listener.address, isolation)
            )

        nursery.start_soon(listener.serve, hold)
        with trio.fail_after(DEADLINE):
            await listener.published()
            together = [await connect("a") for _ in range(MAX_STREAMS)]
            apart = await connect("b")
            for stream in together:
                with trio.move_on_after(1):
                    assert await stream.receive_some() is None, "so many are allowed"
            with suppress(TransportError):  # tor may try it again on another circuit
                await connect("a")
            for stream in together:
                with suppress(trio.BrokenResourceError):
                    assert await stream.receive_some() == b""
        with trio.move_on_after(1):
            assert await apart.receive_some() is None, "another circuit was closed with it"
        nursery.cancel_scope.cancel()
        await listener.aclose()


@pytest.mark.tor
async def test_isolation_separates_circuits(tor_network: TorNetwork) -> None:
    circuits = Circuits()
    control_port, _ = tor_network.clients[0].endpoints()
    async with (
        open_control(control_port, circuits.handle) as control,
        running(shared(tor_network)) as one,
        running(shared(tor_network)) as other,
    ):
        await control.set_events("STREAM")
        listener = await one.listen(Seed.draw(os.urandom))
        with trio.fail_after(DEADLINE):
            await listener.published()
            streams = [
                await transport.connect(listener.address, isolation)
                for transport, isolation in ((one, "a"), (one, "a"), (one, "b"), (other, "a"))
            ]
            a, again, b, stranger = [await circuits.of(stream) for stream in streams]
        for stream in streams:
            await stream.aclose()
        assert a == again
        assert len({a, b, stranger}) == 3
        await listener.aclose()


@pytest.mark.tor
async def test_a_service_that_does_not_exist_is_not_found(tor_network: TorNetwork) -> None:
    async with running(shared(tor_network)) as transport:
        with trio.fail_after(DEADLINE), pytest.raises(UnreachableError) as caught:
            await transport.connect(onion_address(Seed.draw(os.urandom).public()), "a")
    assert caught.value.kind is UnreachableReason.NOT_FOUND


@pytest.mark.tor
async def test_a_lost_control_connection_shows_and_services_come_back(tor_network: TorNetwork) -> None:
    seed = Seed.draw(os.urandom)
    async with running(shared(tor_network)) as transport:
        assert transport.state == TorState(100, "Done", connected=True, circuits=True)
        listener = await transport.listen(seed)
        with trio.fail_after(DEADLINE):
            await listener.published()
        assert (transport.state.services, transport.state.published, transport.state.pow) == (1, 1, "on")
        control = transport._control
        assert control is not None
        await control._stream.aclose()
        await control.lost.wait()
        await trio.testing.wait_all_tasks_blocked()
        assert not transport.state.connected
        assert transport.state.published == 0
        with pytest.raises(TransportError, match="not connected: the control connection to tor is lost"):
            await transport.connect(listener.address, "a")
        late = Seed.draw(os.urandom)
        second = await transport.listen(late)  # waits for tor to be back
        with trio.fail_after(DEADLINE):
            await listener.published()  # which only the second connection can bring about
            await second.published()
        assert transport.state.connected
        assert transport._control is not None
        names = await transport._control.getinfo("onions/current")
        assert set(names.split()) == {service_id(seed), service_id(late)}
        await listener.aclose()
        await second.aclose()


async def say_hello(stream: trio.abc.Stream) -> None:
    await stream.send_all(b"hello")


@pytest.mark.tor
async def test_a_tor_of_our_own_joins_serves_and_ends_with_us(
    tor_network: TorNetwork, short_path: Path
) -> None:
    state = short_path / "a tor"
    settings = TorSettings(state_directory=state, torrc_include=Path(tor_network.snippet))
    async with running(settings) as transport:
        assert transport.state.percent == 100
        assert state.stat().st_mode & 0o777 == 0o700
        listener = await transport.listen(Seed.draw(os.urandom))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(listener.serve, say_hello)
            with trio.fail_after(DEADLINE):
                await listener.published()
                stream = await transport.connect(listener.address, "a")
                assert await stream.receive_some(5) == b"hello"
                await stream.aclose()
            nursery.cancel_scope.cancel()
        await listener.aclose()
        endpoint = Endpoint(path=str(state / "control"))
        async with open_control(endpoint):
            pass
    with pytest.raises(TransportError):
        async with open_control(endpoint):
            pass


@pytest.mark.tor
async def test_a_tor_of_our_own_that_was_killed_is_started_again(
    tor_network: TorNetwork, short_path: Path
) -> None:
    settings = TorSettings(state_directory=short_path / "tor", torrc_include=Path(tor_network.snippet))
    async with running(settings) as transport, running(shared(tor_network)) as other:
        listener = await transport.listen(Seed.draw(os.urandom))
        with trio.fail_after(DEADLINE):
            await listener.published()
        assert transport._control is not None
        pid = int(await transport._control.getinfo("process/pid"))
        os.kill(pid, signal.SIGKILL)
        await transport._control.lost.wait()
        await trio.testing.wait_all_tasks_blocked()
        assert not transport.state.connected
        with trio.fail_after(DEADLINE):
            await listener.published()
            assert transport.state.published == 1
            stream = await other.connect(listener.address, "after")
            await stream.aclose()
        assert int(await transport._control.getinfo("process/pid")) != pid
        assert (short_path / "tor" / "tor.log.1").exists()
        await listener.aclose()


@pytest.mark.tor
async def test_a_tor_whose_socks_port_may_not_isolate_is_refused_at_the_start(short_path: Path) -> None:
    include = short_path / "include"
    include.write_text("SocksPort 127.0.0.1:auto NoIsolateSOCKSAuth\n")
    transport = TorTransport(TorSettings(state_directory=short_path / "tor", torrc_include=include))
    with trio.fail_after(DEADLINE), pytest.raises(UsageError, match="does not isolate"):
        await transport.run()


@pytest.mark.tor
async def test_a_tor_that_cannot_start_is_an_error(short_path: Path) -> None:
    include = short_path / "include"
    include.write_text("NoSuchOption 1\n")
    transport = TorTransport(TorSettings(state_directory=short_path / "tor", torrc_include=include))
    with pytest.raises(TransportError, match="our tor ended with status 1"):
        await transport.run()


async def test_a_tor_that_is_not_there_is_an_error_in_time() -> None:
    transport = TorTransport(TorSettings(control=LOOPBACK, socks=LOOPBACK, ready_within=0.1))
    with pytest.raises(TransportError, match="not ready in time"):
        await transport.run()
    assert not transport.state.connected
