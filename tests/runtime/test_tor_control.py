"""What is asked of a tor over its control connection, told to a scripted tor: isolation, defence, health."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from hushcast_protocol.base.backoff import Backoff
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.errors import UsageError
from hushcast_runtime.tor import bootstrap_reasons, callers
from hushcast_runtime.tor.authentication import authenticate
from hushcast_runtime.tor.control import MAX_STREAMS, ControlClient, EventHandler
from hushcast_runtime.tor.isolation import isolating_socks
from hushcast_runtime.tor.onions import expanded_key, service_id
from hushcast_runtime.tor.replies import ReplySplitter, convert
from hushcast_runtime.tor.settings import TorSettings
from hushcast_runtime.tor.tor_watch import TorState, TorWatch
from hushcast_runtime.tor.transport import TorTransport, _user_of
from hushcast_runtime.transports.base import TransportError
from hushcast_runtime.transports.endpoints import Endpoint, parse_endpoint
from hushcast_runtime.transports.streams import listen_on_loopback, port_of

WANTED = parse_endpoint("127.0.0.1:9050")
TARGET = Endpoint(host="127.0.0.1", port=9)
SEED = Seed(b"s" * 32)
DONE = 'NOTICE BOOTSTRAP PROGRESS=100 TAG=done SUMMARY="Done"'

Answer = Callable[[str], str]
"""Takes a command, returns the lines of tor's reply."""


@asynccontextmanager
async def scripted(
    answer: Answer, asked: list[str] | None = None, on_event: EventHandler = lambda event: None
) -> AsyncIterator[ControlClient]:
    """A control connection to a tor that answers each command by a script, and then says nothing."""
    ours, theirs = trio.testing.memory_stream_pair()

    async def tor() -> None:
        buffer = b""
        async for data in theirs:
            buffer += bytes(data)
            while b"\r\n" in buffer:
                line, _, buffer = buffer.partition(b"\r\n")
                if asked is not None:
                    asked.append(line.decode())
                await theirs.send_all(answer(line.decode()).replace("\n", "\r\n").encode() + b"\r\n")

    async with trio.open_nursery() as nursery:
        client = ControlClient(ours, on_event)
        nursery.start_soon(tor)
        nursery.start_soon(client.read)
        yield client
        nursery.cancel_scope.cancel()


def socks_of(listeners: str, *options: str) -> Answer:
    def answer(command: str) -> str:
        if command.startswith("GETINFO"):
            return f"250-net/listeners/socks={listeners}\n250 OK"
        lines = [f"SocksPort={option}" for option in options] or ["SocksPort"]
        return "\n".join([*(f"250-{line}" for line in lines[:-1]), f"250 {lines[-1]}"])

    return answer


@pytest.mark.parametrize(
    ("listeners", "options"),
    [
        ('"127.0.0.1:9050"', []),
        ('"127.0.0.1:9050"', ["9050"]),
        ('"127.0.0.1:9050" "127.0.0.1:9150"', ["9050 IPv6Traffic", "9150 NoIsolateSOCKSAuth"]),
        ('"0.0.0.0:9050"', ["0.0.0.0:9050 IsolateDestAddr"]),
        ('"127.0.0.1:9050"', ["127.0.0.1:auto ExtendedErrors"]),
    ],
)
async def test_a_port_that_isolates_is_used(listeners: str, options: list[str]) -> None:
    async with scripted(socks_of(listeners, *options)) as control:
        assert await isolating_socks(control, WANTED) == WANTED


@pytest.mark.parametrize(
    "options",
    [
        ["9050 NoIsolateSOCKSAuth"],
        ["127.0.0.1:9050 IPv6Traffic noisolatesocksauth"],
        ["9150", "0.0.0.0:9050 NoIsolateSOCKSAuth"],
        ["auto NoIsolateSOCKSAuth"],
    ],
)
async def test_a_port_that_does_not_isolate_is_refused(options: list[str]) -> None:
    async with scripted(socks_of('"127.0.0.1:9050"', *options)) as control:
        with pytest.raises(UsageError, match="take NoIsolateSOCKSAuth out"):
            await isolating_socks(control, WANTED)


async def test_a_unix_port_is_looked_at_as_well() -> None:
    wanted = parse_endpoint("unix:/run/tor/socks")
    listeners = '"unix:/run/tor/socks" "127.0.0.1:9050"'
    async with scripted(socks_of(listeners, "unix:/run/tor/socks", "9050 NoIsolateSOCKSAuth")) as control:
        assert await isolating_socks(control, wanted) == wanted
    async with scripted(socks_of(listeners, "unix:/run/tor/socks NoIsolateSOCKSAuth")) as control:
        with pytest.raises(UsageError):
            await isolating_socks(control, wanted)


async def test_a_port_of_something_else_is_refused() -> None:
    async with scripted(socks_of('"127.0.0.1:9150"', "9150")) as control:
        with pytest.raises(UsageError, match="not a SOCKS port of the tor behind"):
            await isolating_socks(control, WANTED)


async def test_the_unix_port_of_our_own_tor_is_looked_at_wherever_it_is() -> None:
    wanted = Endpoint(path="/home/a user/tor/socks")
    own = f'unix:"{wanted.path}" ExtendedErrors'
    async with scripted(socks_of(f'"{wanted}"', own)) as control:
        assert await isolating_socks(control, wanted) == wanted
    async with scripted(socks_of(f'"{wanted}"', f"{own} NoIsolateSOCKSAuth")) as control:
        with pytest.raises(UsageError, match="take NoIsolateSOCKSAuth out"):
            await isolating_socks(control, wanted)
    async with scripted(socks_of("")) as control:
        with pytest.raises(UsageError, match="not a SOCKS port"):
            await isolating_socks(control, wanted)


async def test_where_tor_does_not_tell_a_warning_is_logged(log_lines: list[dict[str, Any]]) -> None:
    async with scripted(lambda command: "510 Command filtered") as control:
        assert await isolating_socks(control, WANTED) == WANTED
    assert [line["level"] for line in log_lines] == ["warning"]


@pytest.mark.parametrize(("forbids", "lines"), [(True, 1), (False, 0)])
async def test_a_filter_may_forbid_events_of_streams(
    forbids: bool, lines: int, log_lines: list[dict[str, Any]]
) -> None:
    def answer(command: str) -> str:
        return "510 Command filtered" if forbids and "STREAM" in command else "250 OK"

    asked: list[str] = []
    async with scripted(answer, asked) as control:
        transport = TorTransport(TorSettings(control=WANTED, socks=WANTED))
        await transport._listen(control)
    assert transport.state.circuits_apart is not forbids
    assert len(asked) == 1 + lines
    assert {"HS_DESC", "STATUS_CLIENT"} <= set(asked[-1].split())
    assert [line["event"] for line in log_lines] == lines * [
        "tor does not close circuits for us: they end together"
    ]


def added(knows_defence: bool) -> Answer:
    def answer(command: str) -> str:
        if "PoWDefensesEnabled" in command and not knows_defence:
            return '512 Bad arguments to ADD_ONION: Unrecognized keyword argument "PoWDefensesEnabled"'
        return f"250-ServiceID={service_id(SEED)}\n250 OK"

    return answer


@pytest.mark.parametrize(("knows", "wanted", "asks"), [(True, True, 2), (False, True, 3), (True, False, 2)])
async def test_the_defence_is_asked_for_where_tor_has_it(knows: bool, wanted: bool, asks: int) -> None:
    asked: list[str] = []
    async with scripted(added(knows), asked) as control:
        for _ in range(2):
            name = await control.add_onion(expanded_key(SEED), 7411, TARGET, wanted)
            assert name == service_id(SEED)
        assert control.defends is knows
    assert len(asked) == asks
    defended = ["PoWDefensesEnabled=1" in line for line in asked]
    assert defended == {(True, True): [True, True], (False, True): [True, False, False]}.get(
        (knows, wanted), [False, False]
    )


async def test_a_circuit_to_a_service_holds_few_connections() -> None:
    asked: list[str] = []
    async with scripted(added(True), asked) as control:
        await control.add_onion(expanded_key(SEED), 7411, TARGET, True)
    words = asked[-1].split()
    assert f"MaxStreams={MAX_STREAMS}" in words
    assert "Flags=DiscardPK,MaxStreamsCloseCircuit" in words


async def test_another_refusal_of_a_service_is_an_error() -> None:
    async with scripted(lambda command: "550 Onion address collision") as control:
        with pytest.raises(TransportError, match="status 550"):
            await control.add_onion(expanded_key(SEED), 7411, TARGET, True)


class Event:
    def __init__(self, kind: str, action: str, **fields: str) -> None:
        self.type, self.action, self.keyword_args = kind, action, fields


def test_what_tor_says_of_itself_shows_and_is_logged_without_addresses(
    log_lines: list[dict[str, Any]],
) -> None:
    shown: list[int] = []
    watch = TorWatch(lambda percent, summary: shown.append(percent))
    told = [
        Event("STATUS_CLIENT", "BOOTSTRAP", PROGRESS="5", SUMMARY="Connecting"),
        Event(
            "STATUS_CLIENT",
            "BOOTSTRAP",
            PROGRESS="5",
            SUMMARY="Connecting",
            WARNING="No route to 192.0.2.1",
            REASON="NOROUTE",
            HOSTADDR="192.0.2.1:443",
        ),
        Event("STATUS_CLIENT", "CIRCUIT_ESTABLISHED"),
        Event("STATUS_CLIENT", "CIRCUIT_NOT_ESTABLISHED", REASON="CLOCK_JUMPED"),
        Event("STATUS_CLIENT", "CIRCUIT_NOT_ESTABLISHED", REASON="CLOCK_JUMPED"),
        Event("STATUS_GENERAL", "CLOCK_SKEW", SKEW="-7200", SOURCE="OR:192.0.2.1:443"),
        Event("STATUS_GENERAL", "CLOCK_SKEW", SKEW="soon"),
        Event("HS_DESC", "UPLOADED"),
    ]
    for event in told:
        watch.handle(event)
    assert shown == [5]
    assert watch.state.clock_skew == -7200
    assert not watch.state.circuits
    assert [(line["event"], line.get("reason", line.get("seconds"))) for line in log_lines] == [
        ("tor cannot bootstrap", "NOROUTE"),
        ("tor has circuits", None),
        ("tor has no circuits", "CLOCK_JUMPED"),
        ("tor finds this machine's clock wrong", -7200),
    ]
    assert "192.0.2.1" not in repr(log_lines)


@pytest.mark.parametrize("reason", sorted(bootstrap_reasons.KEYWORDS))
def test_every_reason_is_told_in_words_with_a_way_out(reason: str, log_lines: list[dict[str, Any]]) -> None:
    watch = TorWatch(lambda percent, summary: None)
    warned = {"WARNING": "at 192.0.2.1", "REASON": reason, "PROGRESS": "5"}
    watch.handle(Event("STATUS_CLIENT", "BOOTSTRAP", **warned))
    assert reason not in watch.state.doing
    assert watch.state.doing == f"5 %: {log_lines[0]['meaning']}"
    assert ": " in log_lines[0]["meaning"], "what it is, and what to do or what tor does"
    watch.handle(Event("STATUS_CLIENT", "BOOTSTRAP", PROGRESS="10", SUMMARY="Connected"))
    assert watch.state.doing == "10 %", "it went on"


def test_a_reason_of_a_newer_tor_is_told_too() -> None:
    watch = TorWatch(lambda percent, summary: None)
    watch.handle(Event("STATUS_CLIENT", "BOOTSTRAP", WARNING="odd", REASON="NEVER_HEARD_OF", PROGRESS="5"))
    assert "its log" in watch.state.doing


async def test_what_kept_tor_back_before_we_came_is_told() -> None:
    phase = 'WARN BOOTSTRAP PROGRESS=5 TAG=conn SUMMARY="Connecting" WARNING="DONE" REASON=DONE COUNT=10'
    answers = {"status/bootstrap-phase": phase, "status/circuit-established": "0"}

    class Asked:
        async def getinfo(self, key: str) -> str:
            return answers[key]

    watch = TorWatch(lambda percent, summary: None)
    await watch.begin(Asked())  # type: ignore[arg-type]
    assert watch.state.doing.startswith("5 %: relays take the connection and close it")


async def test_a_bootstrap_phase_that_ends_in_a_key_alone_is_refused() -> None:
    told = {"bootstrap-phase": "NOTICE BOOTSTRAP TAG=done PROGRESS=", "circuit-established": "1"}

    def tor(command: str) -> str:
        key = command.partition("/")[2]
        return f"250-status/{key}={told[key]}\n250 OK"

    async with scripted(tor) as control:
        with pytest.raises(TransportError, match="malformed"):
            await TorWatch(lambda percent, summary: None).begin(control)


async def test_an_event_on_the_heels_of_an_answer_is_newer_than_the_answer() -> None:
    """A tor that has just come back bootstraps while it is asked how far it is."""
    answers = {
        "bootstrap-phase": ['NOTICE BOOTSTRAP PROGRESS=14 SUMMARY="Handshaking"', DONE],
        "circuit-established": ["0", "1"],
    }
    told = "".join(
        f"650 STATUS_CLIENT NOTICE {said}\n" for said in (DONE.partition(" ")[2], "CIRCUIT_ESTABLISHED")
    )
    watch = TorWatch(lambda percent, summary: None)

    def tor(command: str) -> str:
        key = command.partition("/")[2]
        answer = answers[key].pop(0)
        behind = told if answer == "0" else ""
        return f"250-status/{key}={answer}\n250 OK\n{behind}".removesuffix("\n")

    async with scripted(tor, on_event=watch.handle) as control:
        await watch.begin(control)
    assert watch.state == TorState(100, "Done", connected=True, circuits=True)


def test_events_as_tor_writes_them_are_read() -> None:
    lines = [
        "650 STATUS_GENERAL WARN CLOCK_SKEW SKEW=-7200 SOURCE=OR:192.0.2.1:443",
        "650 STATUS_CLIENT NOTICE CIRCUIT_ESTABLISHED",
        '650 STATUS_CLIENT NOTICE BOOTSTRAP PROGRESS=10 TAG=conn_done SUMMARY="Connected to a relay"',
    ]
    watch = TorWatch(lambda percent, summary: None)
    for reply in ReplySplitter().feed("".join(line + "\r\n" for line in lines).encode()):
        convert("EVENT", reply)
        watch.handle(reply)
    assert watch.state == TorState(10, "Connected to a relay", circuits=True, clock_skew=-7200)


async def test_a_tor_that_hangs_is_given_up(autojump_clock: trio.testing.MockClock) -> None:
    transport = TorTransport(TorSettings(control=TARGET, socks=TARGET))
    ours, _ = trio.testing.memory_stream_pair()
    async with trio.open_nursery() as nursery:
        control = ControlClient(ours, lambda event: None)
        nursery.start_soon(control.read)
        with pytest.raises(TransportError, match="does not answer at its control port any more"):
            await transport._until_lost(control)
        nursery.cancel_scope.cancel()
    assert 30 < trio.current_time() < 120


def test_pauses_grow_to_the_longest_and_are_never_the_whole_of_it() -> None:
    backoff = Backoff(1.0, 8.0, os.urandom)
    pauses = [backoff.next() for _ in range(6)]
    for pause, whole in zip(pauses, (1, 2, 4, 8, 8, 8), strict=True):
        assert whole / 2 <= pause < whole
    backoff.reset()
    assert backoff.next() < 1


async def test_tor_says_who_it_runs_as() -> None:
    async with scripted(lambda command: f"250-process/uid={os.getuid()}\n250 OK") as control:
        assert await _user_of(control, None) == await _user_of(control, os.getuid()) == os.getuid()


@pytest.mark.parametrize(
    "answer",
    [
        "510 Command filtered",
        "250-process/uid=-1\n250 OK",
        "250-process/uid=\n250 OK",
        f"250-process/uid={callers.OVERFLOW}\n250 OK",
        "250 OK",
    ],
)
async def test_a_tor_that_cannot_be_told_from_others_is_not_used_by_ports(answer: str) -> None:
    async with scripted(lambda command: answer) as control:
        with pytest.raises(UsageError, match=r"set tor\.services"):
            await _user_of(control, None)


async def test_a_control_port_that_another_user_took_is_not_tors() -> None:
    """Ports are anybody's to take while tor is away, and whoever has this one is told keys."""
    async with scripted(lambda command: f"250-process/uid={os.getuid()}\n250 OK") as control:
        with pytest.raises(UsageError, match="another user"):
            await _user_of(control, os.getuid() + 1)
    listener = await listen_on_loopback()
    stream = await trio.open_tcp_stream("127.0.0.1", port_of(listener))
    async with stream, await listener.accept():
        control = ControlClient(stream, lambda event: None)
        assert await control.is_held_by(os.getuid())
        assert not await control.is_held_by(os.getuid() + 1)
    await listener.aclose()


@pytest.mark.parametrize("at_port", [False, True])
async def test_a_tor_that_asks_for_nothing_is_used_at_a_unix_socket_only(at_port: bool) -> None:
    asked: list[str] = []
    offer = '250-PROTOCOLINFO 1\n250-AUTH METHODS=NULL\n250-VERSION Tor="0.4.9.11"\n250 OK'
    answer = lambda command: offer if command.startswith("PROTOCOLINFO") else "250 OK"  # noqa: E731
    async with scripted(answer, asked) as control:
        if at_port:
            with pytest.raises(TransportError, match="open to all"):
                await authenticate(control.ask, at_port)
        else:
            await authenticate(control.ask, at_port)
    assert ("AUTHENTICATE" in asked) is not at_port


@pytest.mark.parametrize("path", ["/a\0b", "/" + "a" * 5000])
async def test_a_cookie_is_not_read_where_no_file_can_be(path: str) -> None:
    offer = f'250-PROTOCOLINFO 1\n250-AUTH METHODS=SAFECOOKIE COOKIEFILE="{path}"\n250 OK'
    async with scripted(lambda command: offer) as control:
        with pytest.raises(TransportError, match="cookie"):
            await authenticate(control.ask)


@pytest.mark.parametrize("is_held_open", [False, True])
async def test_a_pipe_in_place_of_a_cookie_holds_no_thread(tmp_path: Path, is_held_open: bool) -> None:
    os.mkfifo(pipe := tmp_path / "cookie")
    offer = f'250-PROTOCOLINFO 1\n250-AUTH METHODS=SAFECOOKIE COOKIEFILE="{pipe}"\n250 OK'
    writer = os.open(pipe, os.O_RDWR) if is_held_open else None
    try:
        async with scripted(lambda command: offer) as control:
            with trio.fail_after(10), pytest.raises(TransportError, match="length"):
                await authenticate(control.ask)
    finally:
        if writer is not None:
            os.close(writer)


async def test_a_service_that_is_given_up_leaves_no_socket(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    transport = TorTransport(TorSettings(control=TARGET, socks=TARGET, services=tmp_path))
    begun = trio.Event()
    asked: list[str] = []

    def answer(command: str) -> str:
        begun.set()
        return "250 OK" if command.startswith("DEL_ONION") else "250-ServiceID=x"  # and it takes its time

    async with scripted(answer, asked) as control, trio.open_nursery() as nursery:
        transport._control = control
        nursery.start_soon(transport.listen, SEED)
        await begun.wait()
        assert len(list(tmp_path.glob("*.sock"))) == 1
        nursery.cancel_scope.cancel()
    assert list(tmp_path.iterdir()) == []


async def test_a_daemon_that_stops_leaves_no_socket(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    transport = TorTransport(TorSettings(control=TARGET, socks=TARGET, services=tmp_path))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(transport.run)
        listener = await transport.listen(SEED)  # the address of a relay is open to the last
        assert len(list(tmp_path.glob("*.sock"))) == 1
        nursery.cancel_scope.cancel()
    assert list(tmp_path.iterdir()) == []
    await listener.aclose()
