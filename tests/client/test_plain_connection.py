"""Questions without an event loop: the same answers and errors as with one."""

from __future__ import annotations

import json
import math
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import anyio
import pytest

import hushcast
from hushcast.control_messages import MAX_ANSWER
from hushcast.plain_connection import ask_plainly
from hushcast.questions import Questions

HELLO = b'{"op": "hello", "version": 2, "oldest": 2}\n'
STATUS = b'{"event": "status", "status": {"new": 1}, "request": 1, "more": 2}\n'
REFUSAL = b'{"event": "failed", "kind": "refused", "reason": "too many programs are connected"}\n'
PATIENT = 30.0  # seconds: none of the tests takes as long


@contextmanager
def daemon_at(path: Path, say: Callable[[socket.socket], object]) -> Iterator[Path]:
    """Have one program that connects be told things, in a thread, until it has heard enough and goes."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        listener.settimeout(PATIENT)

        def serve() -> None:
            connection, _ = listener.accept()
            with connection, suppress(ConnectionError):
                connection.settimeout(PATIENT)
                say(connection)

        thread = threading.Thread(target=serve)
        thread.start()
        yield path
        thread.join(PATIENT)


def after_hello(*pieces: bytes) -> Callable[[socket.socket], None]:
    """Return a daemon that answers the first question with these pieces, one write each."""

    def say(connection: socket.socket) -> None:
        lines = connection.makefile("rb")
        lines.readline()
        connection.sendall(HELLO)
        lines.readline()
        for piece in pieces:
            connection.sendall(piece)

    return say


def status_at(path: Path, seconds: float = PATIENT) -> dict[str, object]:
    return ask_plainly(path, lambda daemon: daemon.status(), seconds)


def test_a_later_daemon_may_say_more_and_lines_come_in_any_pieces(tmp_path: Path) -> None:
    elses = b'{"event": "ended", "request": 7}\n'
    for number, pieces in enumerate([[STATUS], [STATUS[:9], STATUS[9:]], [elses + STATUS[:-1], b"\n"]]):
        with daemon_at(tmp_path / str(number), after_hello(*pieces)) as path:
            assert status_at(path) == {"new": 1}


def test_one_question_may_ask_several_things(tmp_path: Path) -> None:
    def say(connection: socket.socket) -> None:
        lines = connection.makefile("rb")
        lines.readline()
        connection.sendall(HELLO)
        for line in lines:
            asked = json.loads(line)
            known = (
                {"event": "status", "status": {}} if asked["op"] == "status" else {"event": "of the future"}
            )
            connection.sendall(json.dumps({**known, "request": asked["request"]}).encode() + b"\n")

    async def both(daemon: Questions) -> dict[str, object]:
        with pytest.raises(hushcast.OtherVersion, match="of the future"):
            await daemon.subscriptions()
        return await daemon.status()

    with daemon_at(tmp_path / "s", say) as path:
        assert ask_plainly(path, both) == {}


@pytest.mark.parametrize(
    ("said", "kind", "told"),
    [
        (b'{"op": "hello", "version": 3}\n', hushcast.OtherVersion, "no daemon of this version"),
        (REFUSAL, hushcast.Refusal, "too many programs"),
        (b"", hushcast.NoDaemon, "stopped or was restarted"),
        (HELLO, hushcast.NoDaemon, "stopped or was restarted"),
        (HELLO + b"x" * (MAX_ANSWER + 65_536), hushcast.NoDaemon, "stopped or was restarted"),
        (HELLO + b"\xff\n", hushcast.OtherVersion, "another version"),
        (HELLO + b'{"event": "status", "status": {}}\n', hushcast.OtherVersion, "does not understand"),
        (HELLO + b'{"event": "ended", "request": 1}\n', hushcast.OtherVersion, "another question"),
        (
            HELLO + b'{"event": "failed", "kind": "usage", "reason": "why", "request": 1}\n',
            hushcast.UsageError,
            "why",
        ),
    ],
)
def test_what_goes_wrong_is_told_as_with_a_loop(
    tmp_path: Path, said: bytes, kind: type[Exception], told: str
) -> None:
    def say(connection: socket.socket) -> None:
        connection.recv(4096)
        connection.sendall(said)
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(4096):
            pass

    errors = []
    for number, ask in enumerate([status_at, status_in_loop]):
        with daemon_at(tmp_path / str(number), say) as path, pytest.raises(kind, match=told) as raised:
            ask(path)
        errors.append((type(raised.value), str(raised.value)))
    assert errors[0] == errors[1]


def status_in_loop(path: Path) -> None:
    async def ask() -> None:
        async with hushcast.connect(path, reconnect=False, timeout=PATIENT) as daemon:
            await daemon.status()

    anyio.run(ask)


def test_who_is_not_there_is_told_as_with_a_loop(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with socket.socket(socket.AF_UNIX) as ended:
        ended.bind(str(tmp_path / "ended"))
    for path in (tmp_path / "nowhere", tmp_path / "file", tmp_path / "ended", tmp_path / ("x" * 120)):
        told = []
        for ask in (status_at, status_in_loop):
            with pytest.raises(hushcast.NoDaemon) as raised:
                ask(path)
            told.append(str(raised.value))
        assert told[0] == told[1]


@pytest.mark.parametrize("seconds", [1e10, 1e300])
def test_a_limit_that_no_socket_takes_is_none(tmp_path: Path, seconds: float) -> None:
    with daemon_at(tmp_path / "s", after_hello(STATUS)) as path:
        assert ask_plainly(path, Questions.status, seconds) == {"new": 1}


def test_a_daemon_that_does_not_answer_takes_no_longer_than_asked(tmp_path: Path) -> None:
    heard = threading.Event()
    with daemon_at(tmp_path / "s", lambda _: heard.wait(PATIENT)) as path:
        with pytest.raises(hushcast.TimedOut, match=r"0\.05 s"):
            status_at(path, 0.05)
        heard.set()


def test_one_that_drips_takes_no_longer_either(tmp_path: Path) -> None:
    over = threading.Event()

    def drip(connection: socket.socket) -> None:
        while not over.wait(0.01):
            connection.sendall(b" ")

    with daemon_at(tmp_path / "s", drip) as path:
        with pytest.raises(hushcast.TimedOut):
            status_at(path, 0.1)
        over.set()


def test_what_needs_a_loop_is_no_plain_question(tmp_path: Path) -> None:
    async def waits(_: Questions) -> None:
        await Suspended()

    with daemon_at(tmp_path / "s", after_hello()) as path, pytest.raises(RuntimeError, match="a loop"):
        ask_plainly(path, waits, math.inf)


class Suspended:
    """What only a loop ends."""

    def __await__(self) -> Iterator[None]:
        yield


@pytest.mark.slow
def test_it_loads_no_loop() -> None:
    script = (
        "import sys\n"
        "from pathlib import Path\n"
        "from hushcast.errors import NoDaemon\n"
        "from hushcast.plain_connection import ask_plainly\n"
        "try: ask_plainly(Path('/nowhere'), lambda daemon: daemon.status())\n"
        "except NoDaemon: pass\n"
        "others = {'trio', 'anyio', 'asyncio', 'nacl', 'hashlib'}\n"
        "assert not others & sys.modules.keys(), others & sys.modules.keys()\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, b"")
