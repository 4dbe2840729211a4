"""`hushcast top`, driven by textual's pilot; real sockets, and a daemon of a few lines behind each."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from running import hushcast
from textual.widgets import DataTable, Static

from hushcast.control_messages import (
    Hello,
    StatusAnswer,
    StatusRequest,
    decode_application_message,
    decode_hello,
    encode_line,
)
from hushcast_cli.operate.dashboard import COLUMNS, Dashboard, _readable, described

STATUS: dict[str, Any] = {
    "ready": True,
    "role": "relay",
    "roster": {"epoch": 7, "relays": 12},
    "links": 3,
    "leases": 4,
    "subscriptions": 0,
    "counters": {"messages_sent": 0, "messages_delivered": 0},
}


@asynccontextmanager
async def daemon(path: Path, status: Callable[[], dict[str, Any]]) -> AsyncIterator[None]:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert decode_hello((await reader.readline()).rstrip(b"\n")) == Hello()
        writer.write(encode_line(Hello()) + b"\n")
        assert decode_application_message((await reader.readline()).rstrip(b"\n")) == StatusRequest(request=1)
        writer.write(encode_line(StatusAnswer(status(), request=1)) + b"\n")
        writer.close()

    async with await asyncio.start_unix_server(answer, path):
        yield


def row(app: Dashboard, name: str) -> dict[str, str]:
    table = app.query_one(DataTable)
    return dict(zip(COLUMNS, (str(cell) for cell in table.get_row(name)), strict=True))


def detail(app: Dashboard) -> str:
    return str(app.query_one("#text", Static).render())


def test_it_shows_every_daemon_and_the_chosen_one_in_detail(tmp_path: Path) -> None:
    sockets = {name: tmp_path / name for name in ("relay-1", "relay-2", "client-1")}
    starting = STATUS | {"ready": False, "roster": None, "role": "client", "tor": {"percent": 45}}

    async def look() -> None:
        async with daemon(sockets["relay-1"], lambda: STATUS), daemon(sockets["client-1"], lambda: starting):
            app = Dashboard(sockets)
            async with app.run_test(size=(120, 50)) as pilot:
                await pilot.pause()
                assert app.sub_title == "1 of 3 daemons are ready"
                first = row(app, "relay-1")
                assert (first["role"], first["state"], first["relays"], first["links"]) == (
                    "relay",
                    "ready",
                    "12",
                    "3",
                )
                assert row(app, "relay-2")["state"] == "away"
                assert row(app, "client-1")["state"] == "starting"
                assert "messages_delivered" in detail(app)
                await pilot.press("down")
                assert "relay-2 does not answer" in detail(app)
                await pilot.press("down")
                assert "percent" in detail(app)
                assert "45 %" in detail(app)
                assert not any(word in detail(app) for word in ("True", "False", "None"))
                await pilot.press("q")
            assert app.return_code == 0

    asyncio.run(look())


@pytest.mark.parametrize(
    ("key", "value", "shown"),
    [
        ("ready", True, "yes"),
        ("ready", False, "no"),
        ("address", None, "–"),
        ("pow", "", "–"),
        ("percent", 100, "100 %"),
        ("jump", -90, "-90 s"),
        ("epoch", 29921922, "29921922"),
        ("messages_sent", 12345, "12,345"),
        ("profile", "hardened", "hardened"),
    ],
)
def test_values_are_for_people(key: str, value: Any, shown: str) -> None:
    assert _readable(key, value) == shown


def test_rates_are_differences_of_counters(tmp_path: Path) -> None:
    counters = {"messages_sent": 100, "messages_delivered": 0}

    async def look() -> None:
        async with daemon(tmp_path / "s", lambda: STATUS | {"counters": dict(counters)}):
            app = Dashboard({"relay-1": tmp_path / "s"})
            async with app.run_test(size=(120, 50)) as pilot:
                await pilot.pause()
                await app.look()
                assert row(app, "relay-1")["sent/s"] == "0.0"
                counters["messages_sent"] += 1_000
                await app.look()
                assert float(row(app, "relay-1")["sent/s"]) > 0
                assert row(app, "relay-1")["got/s"] == "0.0"
                counters["messages_sent"] = 0  # restarted
                await app.look()
                assert row(app, "relay-1")["sent/s"] == "0.0"

    asyncio.run(look())


def test_what_a_daemon_says_does_not_drive_the_terminal(tmp_path: Path) -> None:
    evil = STATUS | {"role": "\x1b[2Jrelay[bold]", "network": "\x1b]0;x\x07"}

    async def look() -> None:
        async with daemon(tmp_path / "s", lambda: evil):
            app = Dashboard({"relay-1": tmp_path / "s"})
            async with app.run_test(size=(120, 50)) as pilot:
                await pilot.pause()
                assert row(app, "relay-1")["role"] == "\\x1b[2Jrelay[bold]"
                assert "\x1b" not in detail(app)

    asyncio.run(look())


@pytest.mark.parametrize("answer", [b"nonsense\n", b"", b'{"event":"status"}\n'])
def test_whoever_speaks_otherwise_is_away(tmp_path: Path, answer: bytes) -> None:
    async def ask() -> None:
        async def say(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readline()
            writer.write(answer)
            writer.close()

        async with await asyncio.start_unix_server(say, tmp_path / "s"):
            assert await described(tmp_path / "s") is None

    asyncio.run(ask())


async def test_it_wants_a_terminal(tmp_path: Path) -> None:
    outcome = await hushcast("top", "--socket", tmp_path / "s")
    assert (outcome.code, outcome.stdout) == (2, b"")
    assert "status --json" in outcome.error


async def test_it_wants_a_testnet_that_is_there(tmp_path: Path) -> None:
    outcome = await hushcast("top", "--dir", tmp_path)
    assert outcome.code == 2
    assert "testnet up" in outcome.error
