"""The page of a testnet: what it serves, what it refuses, and what a browser makes of it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest
import trio
from click.testing import CliRunner

import hushcast
from hushcast_cli.main import cli
from hushcast_testnet import testnet
from hushcast_testnet.inventory import load
from hushcast_testnet.watch.follower import MOST, Follower
from hushcast_testnet.watch.overlay_picture import OverlayPicture
from hushcast_testnet.watch.page_server import MAX_ASKING, serve

ROOT = Path(__file__).parents[2]
DRIVER = Path(__file__).with_name("look_at_page.py")
KEYS = {name: (name[-1] * 64) for name in ("relay-1", "relay-2", "relay-3")}
MAILBOX = "f" * 64
FIGURES: dict[str, Any] = {
    "published": 0,
    "delivered": 0,
    "transmissions": 0,
    "probe_transmissions": 0,
    "delay_p50": None,
}


def picture() -> OverlayPicture:
    made = OverlayPicture()
    for name, key in KEYS.items():
        made.take(name, {"kind": "started", "node": key, "role": "relay"})
    made.take("client-1", {"kind": "started", "node": "client-1", "role": "client"})
    made.take("client-1", {"kind": "subscribed", "topic": "t", "mailbox": MAILBOX, "time": 0.0})
    tree = {KEYS["relay-1"]: None, KEYS["relay-2"]: KEYS["relay-1"], KEYS["relay-3"]: KEYS["relay-1"]}
    made.take("client-1", {"kind": "installed", "mailbox": MAILBOX, "day": 7, "tree": tree})
    return made


def test_a_tree_is_shown_by_names() -> None:
    assert picture().tree(MAILBOX) == {"relay-1": None, "relay-2": "relay-1", "relay-3": "relay-1"}
    assert picture().tree("0" * 64) is None
    assert picture().subscriptions() == [{"id": MAILBOX, "topic": "t", "owner": "client-1", "relays": 3}]


def test_the_newest_tree_counts_and_an_ended_subscription_none() -> None:
    made = picture()
    made.take(
        "client-1", {"kind": "installed", "mailbox": MAILBOX, "day": 8, "tree": {KEYS["relay-2"]: None}}
    )
    assert made.tree(MAILBOX) == {"relay-2": None}
    made.take("client-1", {"kind": "unsubscribed", "topic": "t", "mailbox": MAILBOX, "time": 9.0})
    assert made.subscriptions() == []
    assert made.tree(MAILBOX) is None


def test_moves_are_told_once_and_figures_add_up() -> None:
    made = picture()
    made.take("relay-2", {"kind": "drop", "message": "ab" * 32, "time": 10.0})
    made.take("relay-2", {"kind": "sent", "message": "ab" * 32, "time": 10.1, "next": KEYS["relay-1"]})
    made.take("relay-1", {"kind": "sent", "message": "ab" * 32, "time": 10.2, "next": MAILBOX})
    made.take("client-1", {"kind": "delivered", "message": "ab" * 32, "time": 10.3, "tokens": []})
    made.take("client-1", {"kind": "delivered", "message": "ab" * 32, "time": 10.4, "topic": "t"})
    made.take("client-2", {"kind": "published", "message": "ab" * 32, "topic": "t", "origins": ["x"]})
    made.take("client-2", {"kind": "published", "message": "cd" * 32, "topic": "t", "origins": []})
    ways = [(move["from"], move["to"]) for move in made.moves()]
    assert ways == [("", "relay-2"), ("relay-2", "relay-1"), ("relay-1", MAILBOX)]
    assert made.moves() == []
    assert made.figures() == FIGURES | {"published": 1, "delivered": 1, "transmissions": 2, "delay_p50": 0.4}
    assert made.load() == {"relay-1": (1, 0), "relay-2": (1, 0)}


def test_the_follower_reads_whole_lines_once(tmp_path: Path) -> None:
    follower = Follower(tmp_path)
    file = tmp_path / "relay-1.truth.jsonl"
    assert list(follower.new()) == []
    file.write_text('{"a": 1}\n{"a": 2}\n{"a"')
    assert list(follower.new()) == [("relay-1", {"a": 1}), ("relay-1", {"a": 2})]
    assert list(follower.new()) == []
    with file.open("a") as more:
        more.write(': 3}\n{"half\n{"a": 4}\n')
    assert list(follower.new()) == [("relay-1", {"a": 3}), ("relay-1", {"a": 4})]
    with file.open("a") as more:
        more.write("[5]\nnull\n")
    assert list(follower.new()) == []


def test_the_follower_goes_by_time_across_files(tmp_path: Path) -> None:
    (tmp_path / "relay-1.observations.jsonl").write_text('{"time": 1}\n{"time": 4}\n')
    (tmp_path / "relay-2.observations.jsonl").write_text('{"time": 2}\n{"time": 3}\n')
    (tmp_path / "client-1.truth.jsonl").write_text('{"time": 2}\n')
    seen = [(name, record["time"]) for name, record in Follower(tmp_path).new()]
    assert seen == [("relay-1", 1), ("relay-2", 2), ("client-1", 2), ("relay-2", 3), ("relay-1", 4)]


NO_RECORDS = (
    "[" * 100_000,
    *('{"time": "x"}', '{"time": null}', '{"time": 1e999}', '{"time": -1e300}', '{"kind": ["sent"]}'),
    *('{"kind": "sent", "tokens": 5}', '{"kind": "subscribed", "mailbox": [1]}', '{"tree": {"a": 1}}'),
)
LACKING = (
    *('{"kind": "started"}', '{"kind": "sent"}', '{"kind": "installed", "tree": {}}', '{"kind": "asked"}'),
    *('{"kind": "handed"}', '{"kind": "opened"}'),
)


def test_the_follower_passes_over_what_no_daemon_writes(tmp_path: Path) -> None:
    lines = "".join(f"{line}\n" for line in (*NO_RECORDS, '{"time": 2}'))
    (tmp_path / "relay-1.truth.jsonl").write_text(lines)
    os.mkfifo(tmp_path / "relay-2.truth.jsonl")
    assert list(Follower(tmp_path).new()) == [("relay-1", {"time": 2})]


def test_a_line_without_an_end_does_not_hold_up_its_file(tmp_path: Path) -> None:
    (tmp_path / "relay-1.truth.jsonl").write_bytes(b"x" * (2 * MOST + 9) + b'\n{"a": 1}\n')
    follower = Follower(tmp_path)
    assert [list(follower.new()) for _ in range(4)] == [[], [], [("relay-1", {"a": 1})], []]


@pytest.mark.parametrize("carrier", ["overlay", "central", "brokers"])
async def test_the_page_goes_on_over_lines_that_lack_what_their_kind_has(empty: Path, carrier: str) -> None:
    (empty / "testnet.json").write_bytes(
        msgspec.json.encode(msgspec.structs.replace(load(empty), carrier=carrier))
    )
    (empty / "traces").mkdir()
    (empty / "traces" / "edge-1.truth.jsonl").write_text("".join(f"{line}\n" for line in LACKING))
    async with served(empty) as port, await trio.open_tcp_stream("127.0.0.1", port) as stream:
        await stream.send_all(get("/events", f"127.0.0.1:{port}").replace("\n", "\r\n").encode())
        data = b""
        with trio.fail_after(30):
            while b"data: " not in data and (piece := await stream.receive_some()):
                data += piece
        assert b"data: " in data


@pytest.fixture
def empty(tmp_path: Path) -> Path:
    """A testnet without daemons: enough to serve a page of."""
    (tmp_path / "testnet.json").write_text(
        json.dumps({"transport": "tcp", "epoch": 30, "began": 0.0, "members": [], "tor": None})
    )
    return tmp_path


@asynccontextmanager
async def served(directory: Path) -> AsyncIterator[int]:
    ports: list[int] = []
    up = trio.Event()

    def ready(url: str) -> None:
        assert url.startswith("http://127.0.0.1:")
        ports.append(int(url.rstrip("/").rpartition(":")[2]))
        up.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve, directory, 0, ready, print)
        await up.wait()
        yield ports[0]
        nursery.cancel_scope.cancel()


async def answer(port: int, request: str) -> bytes:
    with trio.fail_after(30):
        async with await trio.open_tcp_stream("127.0.0.1", port) as stream:
            await stream.send_all(request.replace("\n", "\r\n").encode())
            data = b""
            with suppress(trio.BrokenResourceError):  # it closed before it had read all
                while piece := await stream.receive_some():
                    data += piece
            return data


def get(path: str, host: str, method: str = "GET") -> str:
    return f"{method} {path} HTTP/1.1\nHost: {host}\n\n"


@pytest.mark.parametrize("path", ["/", "/page.css", "/page.js", "/drawing.js", "/chart.js", "/icon.svg"])
async def test_its_files_are_served_with_a_policy_that_lets_nothing_out(empty: Path, path: str) -> None:
    async with served(empty) as port:
        said = await answer(port, get(path, f"127.0.0.1:{port}"))
        assert said.startswith(b"HTTP/1.1 200")
        assert b"Content-Security-Policy: default-src 'self'" in said
        assert said == await answer(port, get(path, f"localhost:{port}"))


def test_who_watches_what_is_down_is_told(
    empty: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        "hushcast_testnet.watch.page_server.watch", lambda directory, port, ready, progress: ready("there")
    )
    told = CliRunner().invoke(cli, ["testnet", "watch", "--dir", str(empty)])
    assert told.exit_code == 0
    assert capfd.readouterr().out == "there\n"
    assert "nothing of the testnet" in told.stderr


@pytest.mark.parametrize("host", ["example.org", "127.0.0.1", "localhost", "127.0.0.1:1", ""])
async def test_another_name_is_refused(empty: Path, host: str) -> None:
    async with served(empty) as port:
        for path in ("/", "/events"):
            assert (await answer(port, get(path, host))).startswith(b"HTTP/1.1 421")


async def test_nothing_else_is_answered(empty: Path) -> None:
    async with served(empty) as port:
        us = f"127.0.0.1:{port}"
        assert (await answer(port, get("/", us, "POST"))).startswith(b"HTTP/1.1 405")
        for path in ("/../testnet.json", "/testnet.json", "/page", "/%2e%2e/testnet.json"):
            assert (await answer(port, get(path, us))).startswith(b"HTTP/1.1 404")
        assert await answer(port, "nonsense\n\n") == b""
        assert await answer(port, "GET / HTTP/1.1\nX: " + "y" * 100_000 + "\n\n") == b""


async def test_silent_connections_keep_nobody_from_the_page(empty: Path) -> None:
    async with served(empty) as port:
        silent = [await trio.open_tcp_stream("127.0.0.1", port) for _ in range(3 * MAX_ASKING)]
        assert (await answer(port, get("/", f"127.0.0.1:{port}"))).startswith(b"HTTP/1.1 200")
        for stream in silent:
            await stream.aclose()


async def test_who_watches_in_silence_keeps_nobody_from_watching(
    empty: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hushcast_testnet.watch.page_server.MAX_VIEWERS", 1)
    async with served(empty) as port, await trio.open_tcp_stream("127.0.0.1", port) as silent:
        events = get("/events", f"127.0.0.1:{port}").replace("\n", "\r\n").encode()
        await silent.send_all(events)
        assert (await silent.receive_some()).startswith(b"HTTP/1.1 200")
        async with await trio.open_tcp_stream("127.0.0.1", port) as stream:
            await stream.send_all(events)
            with trio.fail_after(30):
                assert (await stream.receive_some()).startswith(b"HTTP/1.1 200")
                while await silent.receive_some():  # it has made room
                    pass


async def test_events_tell_the_state(empty: Path) -> None:
    async with served(empty) as port, await trio.open_tcp_stream("127.0.0.1", port) as stream:
        await stream.send_all(get("/events", f"127.0.0.1:{port}").replace("\n", "\r\n").encode())
        data = b""
        with trio.fail_after(30):
            while b"\n\n" not in data:
                data += await stream.receive_some()
    state = json.loads(data.partition(b"data: ")[2].partition(b"\n\n")[0])
    assert state["ready"] is False
    assert state["nodes"] == []
    assert state["figures"] == FIGURES
    assert (state["messages"], state["way"], state["tree"]) == ([], None, None)


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Path]:
    directory = tmp_path / "net"
    testnet.up(directory, 6, 2, "tcp", 60)
    yield directory
    testnet.down(directory)


async def converse(directory: Path) -> None:
    """Subscribe with one client, publish five messages with the other, wait until all have come."""
    sockets = {m.name: Path(m.socket or "") for m in testnet.load(directory).members}
    with trio.fail_after(120):
        async with (
            hushcast.connect(sockets["client-1"]) as reader,
            hushcast.connect(sockets["client-2"]) as writer,
            reader.subscribe("watched") as messages,
        ):
            for number in range(5):
                await writer.publish("watched", str(number))
            for _ in range(5):
                await anext(messages)


@pytest.mark.first
@pytest.mark.processes
@pytest.mark.skipif(shutil.which("chromedriver") is None, reason="NO CHROMIUM: the page was not looked at")
def test_a_browser_shows_every_daemon_and_the_figures_of_status(running: Path, tmp_path: Path) -> None:
    shot = tmp_path / "page.png"
    trio.run(converse, running)
    done = subprocess.run(
        [sys.executable, str(DRIVER), str(running), str(shot), "5"],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout.splitlines()[-1])
    status = testnet.status(running)
    assert seen["console"] == []
    assert seen["elsewhere"] == []
    assert seen["names"] == [node["name"] for node in status["nodes"]]
    assert seen["drawn"] == sorted(seen["names"])
    assert seen["pids"] == [str(node["pid"]) for node in status["nodes"]]
    assert seen["states"] == ["ready"] * 8
    assert seen["facts"] == {
        "transport": "tcp",
        "epoch": "60 s",
        "directory's pid": str(status["directory"]["pid"]),
    }
    assert seen["figures"]["daemons ready"] == "8 of 8"
    assert seen["figures"]["published"] == "5"
    assert seen["figures"]["delivered"] == "5"
    assert int(seen["figures"]["transmissions of messages"]) >= 5
    assert seen["figures"]["median delay"].endswith("s")
    assert seen["edges"] == 6 + 2  # of a tree of all relays, and to the origins
    assert seen["taken"] >= 1
    assert seen["first"] == seen["phone"]["first"] == "The tree"
    assert seen["probe_bars"] == 0
    assert "probes" not in seen["caption"]
    assert seen["contrast"] != seen["dark"]
    assert seen["messages"] == ["“watched”"] * 5
    assert (seen["followed"], seen["chosen"]) == (True, 1)
    assert seen["focused"] == ["A", "SUMMARY", "INPUT", "INPUT", "BUTTON"]
    told = dict(seen["stations"])
    assert told["client-2"].startswith("publisher")
    assert told["client-1"].startswith("subscriber")
    assert any(role.startswith("origin") for role in told.values())
    assert seen["boxes"] == sorted(name for name, _ in seen["stations"])
    assert "client-2 published it on “watched”" in seen["summary"]
    assert "client-1 got it" in seen["summary"]
    assert seen["bars"] >= 1
    for screen in (seen, seen["phone"]):
        assert screen["sideways"] <= 0
        assert screen["lowest"] >= 44
    assert shot.stat().st_size > 20_000
