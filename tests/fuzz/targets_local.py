"""Targets: what comes from this machine: configurations, the control socket, tor's answers, the database."""

from __future__ import annotations

import io
import re
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

import stem.connection  # noqa: F401 - else the first reply loads it, and takes too long for a move
import trio
from fuzzing import Pieces, Script, Target, alone, each, finished, many, scripts
from mutating import PAGE, mutate_bytes, mutate_pages, mutate_text
from targets_daemons import in_trio

from hushcast import control_messages
from hushcast_directory.server.settings import DirectorySettings
from hushcast_node.settings import NodeSettings
from hushcast_protocol.base.addresses import onion_address
from hushcast_protocol.base.errors import DecodeError, UsageError
from hushcast_runtime.processes.config import load_settings
from hushcast_runtime.storage.changes import Change, Commit
from hushcast_runtime.storage.store import MemoryStore, SqliteStore, StoreError
from hushcast_runtime.tor import authentication, control, isolation, replies, socks, tor_watch
from hushcast_runtime.tor.publication import DescriptorPublication
from hushcast_runtime.transports.base import TransportError
from hushcast_runtime.transports.lines import Lines

ONION = onion_address(bytes(32))


class _File:
    """A configuration that is on no disk."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def open(self, mode: str) -> io.BytesIO:
        return io.BytesIO(self._data)

    def __str__(self) -> str:
        return "hushcast.toml"


def _configuration(data: bytes) -> None:
    for kind in (NodeSettings, DirectorySettings):
        try:
            settings: Any = load_settings(_File(data), kind)  # type: ignore[arg-type, type-var]
        except UsageError:
            continue
        assert Path(settings.state).is_absolute()
        paths = [settings.state, settings.tor.torrc or ""]
        if kind is NodeSettings:
            settings.profile()
            paths += [str(settings.socket_path()), settings.testnet.traces if settings.testnet else ""]
            bytes.fromhex(settings.network.directory_key)
            assert settings.network.network().id
            assert ".onion:" in settings.network.directory or settings.transport == "tcp"
        assert not any("\x00" in path for path in paths), "no path can hold that"


def _configurations() -> list[bytes]:
    network = f'[network]\nname = "x"\ndirectory = "{ONION}"\ndirectory_key = "{"a" * 64}"\n'
    return [
        f'state = "/var/lib"\nrole = "relay"\n{network}profile = "paper"\nepoch_seconds = 60\n'.encode(),
        f'state = "/s"\nrole = "client"\ntransport = "tcp"\n{network.replace(ONION, "127.0.0.1:7")}'.encode(),
        f'state = "/s"\nrole = "relay"\nsocket = "/run/c"\ndepth = 2\norigins = 3\n{network}[tor]\n'
        f'mode = "system"\ncontrol = "unix:/c"\nsocks = "127.0.0.1:9050"\n[log]\njson = true\n'
        f'[testnet]\nname = "a"\ntraces = "/t"\nbegan = 1.5\n'.encode(),
        b'state = "/s"\nfirst_roster = 3\n[network]\nname = "x"\n[tor]\nmode = "own"\ntorrc = "/t"\n',
    ]


def _control_lines(data: bytes) -> None:
    script = Script(data)
    lines = Lines(Pieces(script.pieces(data)), 300)  # type: ignore[arg-type]
    while (line := finished(lines.read())) is not None:
        assert b"\n" not in line
        for decode in (
            control_messages.decode_hello,
            control_messages.decode_application_message,
            control_messages.decode_answer,
        ):
            try:
                said: Any = decode(line)
            except DecodeError:
                continue
            assert decode(control_messages.encode_line(said)) == said
            if isinstance(said, control_messages.PublishRequest):
                control_messages.as_text(said.payload)


def _said() -> list[bytes]:
    requests = [
        control_messages.Hello(),
        control_messages.PublishRequest(
            "t", b"\x00payload", ["lat=1"], bytes(32), "queued", True, b"token", request=1
        ),
        control_messages.AwaitRequest(b"token", request=2),
        control_messages.TopicSubscribeRequest("t", "lat in [1, 2]", 7, 64, True, request=3),
        control_messages.TopicUnsubscribeRequest("t"),
        control_messages.SubscriptionsRequest(),
        control_messages.StatusRequest(),
        control_messages.ShownNotice(7, 6, 32, request=3),
        control_messages.EndNotice(request=3),
    ]
    answers = [
        control_messages.PublishAnswer("id", "t"),
        control_messages.SubscribeAnswer("t", 12),
        control_messages.MessageNotice("t", "id", "x", "utf-8", 1.5, 3, {"lat": 1.5, "kind": "é"}, "84a5"),
        control_messages.UnsubscribeAnswer("t", True),
        control_messages.SubscriptionsAnswer([{"topic": "t"}]),
        control_messages.StatusAnswer({"ready": True}),
        control_messages.FailureAnswer("usage", "no"),
        control_messages.EndAnswer(request=3),
    ]
    return [control_messages.encode_line(said) + b"\n" for said in (*requests, *answers)]


def _socks(data: bytes) -> None:
    script = Script(data[:64])
    stream = Pieces(script.pieces(data))
    finished(socks.request(stream, ONION, "user", "password"))  # type: ignore[arg-type]
    assert stream.sent.startswith(b"\x05\x01\x02\x01")


def _socks_answers() -> list[bytes]:
    bound = (b"\x01" + bytes(6), b"\x04" + bytes(18), b"\x03\x09localhost\x00\x50")
    good = [b"\x05\x02\x01\x00\x05\x00\x00" + one for one in bound]
    return good + [b"\x05\x02\x01\x00\x05" + bytes([code]) + bytes(8) for code in (1, 5, 6, 0xF0, 0xF7)]


_KINDS = ("EVENT", "PROTOCOLINFO", "AUTHCHALLENGE", "GETINFO", "ADD_ONION", "GETCONF")


def _tor_replies(data: bytes) -> None:
    """Whatever tor says, cut anywhere, is the same replies; each is of its kind or is not."""
    script = Script(data[:64])
    for kind in _KINDS:
        whole, cut = replies.ReplySplitter(), replies.ReplySplitter()
        found = whole.feed(data)
        again = [reply for piece in script.pieces(data) for reply in cut.feed(piece)]
        assert [reply.raw_content() for reply in found] == [reply.raw_content() for reply in again]
        for reply in found:
            replies.status(reply)
            try:
                replies.convert(kind, reply)
            except TransportError:
                continue
            if kind == "EVENT":
                _handle(reply)


def _handle(event: Any) -> None:
    """Give an event to those who hear of it, as `TorTransport` does."""
    tor_watch.TorWatch(lambda percent, summary: None).handle(event)
    if event.type == "HS_DESC":
        DescriptorPublication().handle(event)


class _ControlPort(trio.abc.ReceiveStream):
    """Tor's end of a control connection: says a reply to each command, events before it; at last it ends.

    It may say them unasked, or so late that nobody waits for the first of them, and then all at once.
    """

    def __init__(self, data: bytes, unasked: bool, late: bool) -> None:
        self._replies = [data] if late else _REPLY.findall(data)
        self._commands = 3 if late else 1  # that come before it says something
        self._asked = trio.Semaphore(len(self._replies) if unasked else 0)

    async def send_all(self, data: bytes) -> None:
        self._asked.release()

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        if not self._replies:
            return b""
        for _ in range(self._commands):
            await self._asked.acquire()
        said: bytes = self._replies.pop(0)
        return said

    async def aclose(self) -> None:
        pass


_REPLY = re.compile(rb"(?s:.*?)^[0-57-9]\d\d [^\n]*\n|(?s:.+)", re.MULTILINE)


async def _conversation(data: bytes) -> None:
    """A control port that answers every command with what it likes."""
    drawn = sum(data)
    port: Any = _ControlPort(data, unasked=drawn % 4 == 0, late=drawn % 8 == 1)
    client = control.ControlClient(port, _handle)
    watcher = tor_watch.TorWatch(lambda percent, summary: None)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(client.read)
        for step in (
            lambda: authentication.authenticate(client.ask),
            lambda: watcher.begin(client),
            lambda: client.add_onion("k", 7411, control.Endpoint(host="127.0.0.1", port=9)),
            lambda: client.del_onion("x"),
            lambda: isolation.isolating_socks(client, control.Endpoint(path="/tor/socks")),
        )[drawn // 8 % 5 :]:
            with trio.move_on_after(1), suppress(TransportError, UsageError):  # where a reply has no end
                await step()
        nursery.cancel_scope.cancel()


def _tor_says() -> list[bytes]:
    event = '650 STATUS_CLIENT NOTICE BOOTSTRAP PROGRESS=80 TAG=conn SUMMARY="Connecting"\r\n'
    service = "a" * 56
    uploads = "".join(
        f"650 HS_DESC {action} {service} UNKNOWN ${'A' * 40}~nick desc{tail}\r\n"
        for action, tail in (
            ("CREATED", " HSDIR_INDEX=1"),
            ("UPLOAD", ""),
            ("UPLOADED", ""),
            ("FAILED", " REASON=X"),
        )
    )
    offer = '250-PROTOCOLINFO 1\r\n250-AUTH METHODS=NULL\r\n250-VERSION Tor="0.4.9.11"\r\n250 OK\r\n'
    cookie = offer.replace("NULL", 'COOKIE,SAFECOOKIE COOKIEFILE="/dev/null"')
    phase = '250-status/bootstrap-phase=NOTICE BOOTSTRAP PROGRESS=100 TAG=done SUMMARY="Done"\r\n250 OK\r\n'
    texts = [
        offer + "250 OK\r\n" + phase + f"250-ServiceID={service}\r\n250 OK\r\n" + event + "250 OK\r\n",
        cookie,
        f"250 AUTHCHALLENGE SERVERHASH={'A' * 64} SERVERNONCE={'B' * 64}\r\n",
        event + uploads,
        phase,
        phase + "250-status/circuit-established=1\r\n250 OK\r\n" * 2 + event,
        '250-net/listeners/socks="unix:/tor/socks"\r\n250 OK\r\n'
        '250-SocksPort=9050 NoIsolateSOCKSAuth\r\n250 SocksPort="unix:/tor/socks" NoIsolateSOCKSAuth\r\n',
        '250+net/listeners/socks=\r\n"127.0.0.1:9050"\r\n.\r\n250 OK\r\n',
        f"250-ServiceID={service}\r\n250-PrivateKey=ED25519-V3:{'k' * 86}==\r\n250 OK\r\n",
        "650+CIRC 1 BUILT\r\nx\r\n.\r\n650 OK\r\n650 STREAM 1 NEW 0 a.onion:1 SOURCE_ADDR=127.0.0.1:2\r\n",
        "552 Unrecognized\r\n514 Authentication required\r\n250-SocksPort=9050\r\n250 OK\r\n",
    ]
    return [text.encode() for text in texts]


@cache
def _scratch() -> Path:
    made = tempfile.TemporaryDirectory(prefix="hushcast-fuzz-")
    _scratch_kept.append(made)  # removed when the process ends
    return Path(made.name)


_scratch_kept: list[Any] = []


_RECORD_KINDS = 16  # each has pages of its own, and reading it is a move


def _database(data: bytes) -> None:
    """A damaged database is read as far as it goes, or is a `StoreError`."""
    path = _scratch() / "damaged.db"
    for old in path.parent.glob("damaged.db*"):
        old.unlink()
    path.write_bytes(data)
    store = SqliteStore(path)
    kinds = Script(bytes(range(_RECORD_KINDS)))
    try:
        while kinds:
            _use(store, str(kinds.number()))
    finally:
        store._connection.close()


def _use(store: SqliteStore, kind: str) -> None:
    with suppress(StoreError):
        store._commit(Commit([Change(kind, b"new", b"value")]))
    store._connection.rollback()  # as the restart does that follows a commit that failed
    with suppress(StoreError):
        for key, value in store._select(kind, b"", None, -1):
            assert isinstance(key, bytes)
            assert isinstance(value, bytes)


def _databases() -> list[bytes]:
    path = _scratch() / "sound.db"
    path.unlink(missing_ok=True)
    store = SqliteStore(path)
    store._connection.executescript(f"PRAGMA journal_mode=DELETE; PRAGMA page_size={PAGE}; VACUUM")
    kinds, sizes = map(str, range(_RECORD_KINDS)), (0, 30, 200, 600)  # the last goes over a page
    records = [(kind, bytes([size % 251]) * 60, b"v" * size) for kind in kinds for size in sizes]
    store._commit(Commit(Change(*record) for record in records))
    store._connection.close()
    return [path.read_bytes()]


def _scan(data: bytes) -> None:
    """Both stores hold the same and give it back in the same order, whatever the keys."""
    script = Script(data)
    memory, disk = MemoryStore(), _disk()
    disk._connection.execute("DELETE FROM records")
    kinds, made = ("a", "b", ""), []
    while len(made) < 40 and script:
        key = script.choose((b"", b"\xff", b"\xff\xff", b"\x00", b"a")) + script.take(script.number() % 4)
        value = None if script.number() % 4 == 0 else script.take(2)
        made.append(Change(script.choose(kinds), key, value))
    memory.write_soon(*made)
    disk._commit(Commit(made))
    with mock.patch.multiple(trio.lowlevel, checkpoint=_pass_by, checkpoint_if_cancelled=_pass_by):
        questions = {
            (change.kind, prefix, after, limit)
            for change in made
            for prefix in (b"", change.key, change.key[:1])
            for after, limit in ((None, -1), (change.key, 3), (change.key[:1], 0))
        }
        for question in questions:
            assert disk._select(*question) == finished(memory.scan(*question))


@cache
def _disk() -> SqliteStore:
    store = SqliteStore(_scratch() / "scanned.db")
    store._connection.execute("PRAGMA synchronous=OFF")
    return store


async def _pass_by() -> None:
    """Nothing waits here, so nothing needs a scheduler."""


TARGETS = [
    Target("configuration", _configuration, _configurations, (), mutate_text, 10),
    Target("control-lines", _control_lines, _said, (DecodeError,), mutate_text, 10),
    Target("socks", _socks, _socks_answers, (TransportError,), mutate_bytes, 20),
    Target("tor-replies", _tor_replies, _tor_says, (TransportError,), mutate_text, 5),
    Target("tor-control", in_trio(each(_conversation)), alone(_tor_says), (), many(mutate_text), 1),
    Target("database", _database, _databases, (StoreError,), mutate_pages, 1),
    Target("store-scan", _scan, scripts, (), mutate_bytes, 1),
]
