"""`hushcast publish`: where the payload comes from, what is printed, how it fails."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path

import pytest
import trio
from fake_daemon import REFUSAL, FakeDaemon
from running import COMMAND, ENOUGH, WITHIN, hushcast

from hushcast_protocol.content.payload_sizes import MAX_PAYLOAD

EVERY_BYTE = bytes(range(256))


async def test_prints_the_receipt(daemon: FakeDaemon) -> None:
    outcome = await hushcast("publish", "t", "hello", "--json", "--socket", daemon.socket)
    assert outcome.code == 0
    (receipt,) = outcome.objects
    assert list(receipt) == ["id", "topic", "receipt"]
    assert len(bytes.fromhex(receipt["id"])) == 32
    assert (receipt["topic"], receipt["receipt"]) == ("t", "accepted")
    assert daemon.published == [("t", b"hello")]


async def test_prints_for_people(daemon: FakeDaemon) -> None:
    outcome = await hushcast("publish", "t", "hello", "--socket", daemon.socket)
    assert outcome.code == 0
    assert outcome.stdout.startswith(b"accepted ")


@pytest.mark.parametrize(
    ("arguments", "stdin", "payload"),
    [
        ([""], b"not read", b""),
        ([], EVERY_BYTE, EVERY_BYTE),
        (["-"], b"piped\n", b"piped\n"),
        ([], b"", b""),
        (["grün"], b"", "grün".encode()),
        ([b"\xff\xfe"], b"", b"\xff\xfe"),
        (["--", "-5"], b"", b"-5"),
        (["--file", "-"], b"piped", b"piped"),
        ([], bytes(MAX_PAYLOAD), bytes(MAX_PAYLOAD)),
    ],
    ids=["empty", "stdin", "dash", "empty stdin", "text", "bytes", "minus", "file dash", "largest"],
)
async def test_payload_arrives_as_it_was_given(
    daemon: FakeDaemon, arguments: list[str | bytes], stdin: bytes, payload: bytes
) -> None:
    outcome = await hushcast("--socket", daemon.socket, "publish", "t", *arguments, stdin=stdin)
    assert (outcome.code, outcome.stderr) == (0, "")
    assert daemon.published == [("t", payload)]


async def test_payload_from_a_file(daemon: FakeDaemon, tmp_path: Path) -> None:
    file = tmp_path / "payload"
    file.write_bytes(EVERY_BYTE)
    outcome = await hushcast("publish", "t", "--file", file, "--socket", daemon.socket)
    assert outcome.code == 0
    assert daemon.published == [("t", EVERY_BYTE)]


async def test_topic_is_normalised(daemon: FakeDaemon) -> None:
    outcome = await hushcast("publish", "u\N{COMBINING DIAERESIS}", "x", "--json", "--socket", daemon.socket)
    assert outcome.objects[0]["topic"] == "ü"


@pytest.mark.parametrize("payload", ["x", "-", ""])
async def test_payload_and_file_are_wrong_usage(tmp_path: Path, payload: str) -> None:
    file = tmp_path / "payload"
    file.touch()
    outcome = await hushcast("publish", "t", payload, "--file", file)
    assert outcome.code == 2
    assert "--file" in outcome.error


async def test_missing_file_is_wrong_usage(tmp_path: Path) -> None:
    outcome = await hushcast("publish", "t", "--file", tmp_path / "none")
    assert outcome.code == 2
    assert "none" in outcome.error


async def test_too_large_is_refused_however_long_it_is(daemon: FakeDaemon) -> None:
    for arguments, stdin in ([], bytes(MAX_PAYLOAD + 1)), (["--file", "/dev/zero"], b""):
        outcome = await hushcast("--socket", daemon.socket, "publish", "t", *arguments, stdin=stdin)
        assert outcome.code == 4
        assert str(MAX_PAYLOAD) in outcome.error
    assert daemon.published == []


async def test_refused_by_the_network(daemon: FakeDaemon) -> None:
    daemon.network.closed = REFUSAL
    outcome = await hushcast("publish", "unreachable", "x", "--json", "--socket", daemon.socket)
    assert (outcome.code, outcome.error, outcome.stdout) == (4, REFUSAL, b"")


async def test_timeout_while_the_network_is_slow(daemon: FakeDaemon) -> None:
    daemon.network.receipts = trio.Event()
    outcome = await hushcast("publish", "t", "x", "--timeout", "0.2", "--socket", daemon.socket)
    assert outcome.code == 124
    assert "0.2 seconds" in outcome.error


@pytest.mark.slow
async def test_timeout_while_stdin_is_slow(daemon: FakeDaemon) -> None:
    process = await trio.lowlevel.open_process(
        [*COMMAND, "publish", "t", "--timeout", "0.2", "--socket", str(daemon.socket)],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stderr is not None
    with trio.fail_after(WITHIN):
        async with process.stdin, process.stderr:
            stderr = b"".join([part async for part in process.stderr])
            assert await process.wait() == 124
    assert stderr.startswith(b"hushcast: 0.2 seconds")
    assert stderr.count(b"\n") == 1


@pytest.mark.slow
async def test_closed_stdin_is_a_failure(daemon: FakeDaemon) -> None:
    done = await trio.run_process(
        ["sh", "-c", 'exec "$@" <&-', "sh", *COMMAND, "--socket", daemon.socket, "publish", "t"],
        capture_stderr=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.startswith(b"hushcast: standard input is closed")
    assert daemon.published == []


async def test_each_line_is_a_message(daemon: FakeDaemon) -> None:
    lines = [b"%d" % number for number in range(100)]
    stdin = b"\n".join([*lines, b"\xff", b"", b"no end"])
    outcome = await hushcast("publish", "t", "--lines", "--json", "--socket", daemon.socket, stdin=stdin)
    assert outcome.code == 0
    assert [payload for _, payload in daemon.published] == [*lines, b"\xff", b"", b"no end"]
    assert len({told["id"] for told in outcome.objects}) == 103
    assert {told["receipt"] for told in outcome.objects} == {"accepted"}


@pytest.mark.slow
async def test_a_line_is_published_before_the_next_is_there(daemon: FakeDaemon) -> None:
    command = [*COMMAND, "--socket", str(daemon.socket), "publish", "t", "--lines"]
    process = await trio.lowlevel.open_process(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    with trio.fail_after(WITHIN):
        for line in (b"one", b"two"):
            await process.stdin.send_all(line + b"\n")
            assert (await process.stdout.receive_some()).startswith(b"accepted ")
        await process.stdin.aclose()
        assert await process.wait() == 0
    assert [payload for _, payload in daemon.published] == [b"one", b"two"]


async def test_lines_of_a_file_and_one_that_is_too_large(daemon: FakeDaemon, tmp_path: Path) -> None:
    file = tmp_path / "lines"
    file.write_bytes(b"fits\n" + bytes(MAX_PAYLOAD + 1) + b"\n")
    outcome = await hushcast("publish", "t", "--lines", "--file", str(file), "--socket", daemon.socket)
    assert outcome.code == 4
    assert "too large" in outcome.error
    assert daemon.published == [("t", b"fits")]


@pytest.mark.slow
@pytest.mark.parametrize(("how", "code"), [("daemon", 3), ("interrupt", 130)])
async def test_lines_that_wait_in_the_outbox_are_told_when_it_ends_early(
    daemon: FakeDaemon, how: str, code: int
) -> None:
    daemon.network.receipts = trio.Event()
    command = [*COMMAND, "--socket", str(daemon.socket), "publish", "t", "--lines", "--json"]
    process = await trio.lowlevel.open_process(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    with trio.fail_after(WITHIN):
        await process.stdin.send_all(b"one\ntwo\nthree\n")
        while daemon.service.status()["outbox"] < 3:  # noqa: ASYNC110 - another process
            await trio.sleep(0.01)
        if how == "daemon":
            daemon.stop()
        else:
            process.send_signal(signal.SIGINT)
        told = b"".join([part async for part in process.stdout])
        assert await process.wait() == code
    receipts = [json.loads(line)["receipt"] for line in told.splitlines()]
    assert receipts.count("queued") >= 2, "of the last one the program need not have heard"


@pytest.mark.slow
async def test_a_timeout_says_how_many_lines_stay(daemon: FakeDaemon) -> None:
    daemon.network.receipts = trio.Event()
    outcome = await hushcast(
        *("publish", "t", "--lines", "--timeout", ENOUGH, "--socket", daemon.socket), stdin=b"one\ntwo\n"
    )
    assert outcome.code == 124
    assert "2 messages stay in the outbox, so do not publish them again" in outcome.error


async def test_lines_and_a_payload_exclude_each_other(daemon: FakeDaemon) -> None:
    outcome = await hushcast("publish", "t", "payload", "--lines", "--socket", daemon.socket)
    assert outcome.code == 2
    assert "--lines" in outcome.error
