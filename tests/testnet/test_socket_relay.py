"""The relay between daemons in containers and their tors: whatever one side opens is there on the other."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest
import trio

from hushcast_runtime.transports.base import TransportError
from hushcast_runtime.transports.streams import listen_on_socket
from hushcast_testnet.containers import socket_relay
from hushcast_testnet.containers.socket_relay import PAIRS_FILE, SocketFolders
from hushcast_testnet.path_proxy import CONTROL, PathConditions, set_conditions


async def echo(stream: trio.SocketStream) -> None:
    with suppress(trio.BrokenResourceError):
        async for data in stream:
            await stream.send_all(data)


async def until_there(path: Path) -> None:
    with trio.fail_after(30):
        while not path.exists():  # noqa: ASYNC110 - a file sets no event
            await trio.sleep(0.01)


async def reached(path: Path) -> trio.SocketStream:
    while True:
        # On a busy machine a door is seen before it listens.
        with suppress(ConnectionRefusedError):
            return await trio.open_unix_socket(path)
        await trio.sleep(0.01)


async def answered(path: Path, within: float = 30) -> bool:
    with trio.move_on_after(within), suppress(trio.BrokenResourceError):
        async with await reached(path) as stream:
            await stream.send_all(b"x")
            return bool(await stream.receive_some(1) == b"x")
    return False


@pytest.fixture
async def sides(tmp_path: Path) -> AsyncIterator[tuple[Path, Path]]:
    """The directories of a daemon and of its tor, mirrored."""
    daemon, tor = tmp_path / "daemon", tmp_path / "tor"
    daemon.mkdir()
    tor.mkdir()
    pairs = [SocketFolders("relay-1", str(daemon), str(tor))]
    (tmp_path / PAIRS_FILE).write_bytes(msgspec.json.encode(pairs))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(socket_relay.serve, tmp_path)
        for opened in (tor / "control", tor / "socks", daemon / "1.sock"):
            nursery.start_soon(trio.serve_listeners, echo, [await listen_on_socket(opened)])
        (tor / "cookie").write_bytes(b"first")
        for mirrored in (daemon / "control", daemon / "socks", daemon / "cookie", tor / "1.sock"):
            await until_there(mirrored)
        yield daemon, tor
        nursery.cancel_scope.cancel()


async def test_each_side_reaches_what_the_other_opened(sides: tuple[Path, Path]) -> None:
    daemon, tor = sides
    assert await answered(daemon / "control")
    assert await answered(daemon / "socks")
    assert await answered(tor / "1.sock")
    assert not (daemon / "2.sock").exists()


async def test_a_cookie_is_the_one_that_tor_has_now(sides: tuple[Path, Path]) -> None:
    daemon, tor = sides
    assert (daemon / "cookie").read_bytes() == b"first"
    (tor / "cookie").write_bytes(b"second")
    with trio.fail_after(30):
        while (daemon / "cookie").read_bytes() != b"second":  # noqa: ASYNC110
            await trio.sleep(0.01)


async def test_conditions_meet_all_but_control(sides: tuple[Path, Path]) -> None:
    daemon, tor = sides
    control = daemon.parent / CONTROL
    await set_conditions(control, PathConditions("relay-1", cut=True))
    assert not await answered(daemon / "socks", within=0.5)
    assert not await answered(tor / "1.sock", within=0.5)
    assert await answered(daemon / "control")
    await set_conditions(control, PathConditions("relay-1"))
    assert await answered(daemon / "socks")
    assert await answered(tor / "1.sock")


async def test_another_daemons_conditions_are_its_own(sides: tuple[Path, Path]) -> None:
    daemon, _ = sides
    await set_conditions(daemon.parent / CONTROL, PathConditions("relay-2", cut=True))
    assert await answered(daemon / "socks")


async def test_a_door_that_nobody_answers_any_more_leads_nowhere(sides: tuple[Path, Path]) -> None:
    _, tor = sides
    stale = await listen_on_socket(sides[0] / "2.sock")
    await until_there(tor / "2.sock")
    await stale.aclose()
    assert not await answered(tor / "2.sock")


async def test_a_door_that_cannot_be_made_yet_is_made_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    daemon, tor = tmp_path / "daemon", tmp_path / "tor"
    daemon.mkdir()
    failed = trio.Event()

    async def listen(path: Path) -> trio.SocketListener:
        try:
            return await listen_on_socket(path)
        except TransportError:
            failed.set()
            raise

    monkeypatch.setattr(socket_relay, "listen_on_socket", listen)
    (tmp_path / PAIRS_FILE).write_bytes(
        msgspec.json.encode([SocketFolders("relay-1", str(daemon), str(tor))])
    )
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.serve_listeners, echo, [await listen_on_socket(daemon / "1.sock")])
        nursery.start_soon(socket_relay.serve, tmp_path)
        with trio.fail_after(30):
            await failed.wait()
        tor.mkdir()
        await until_there(tor / "1.sock")
        assert await answered(tor / "1.sock")
        nursery.cancel_scope.cancel()
