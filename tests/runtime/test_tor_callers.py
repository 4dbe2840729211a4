"""Who is at the other end of a loopback connection, as the kernel's table of sockets tells it."""

from __future__ import annotations

import os
import time

import pytest
import trio

from hushcast_runtime.tor import callers
from hushcast_runtime.transports.streams import listen_on_loopback, port_of

LISTENER, CALLER = ("127.0.0.1", 40001), ("127.0.0.1", 51000)
HEAD = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"


def line(caller: str, listener: str, state: str, user: str) -> str:
    rest = f"00000000:00000000 00:00000000 00000000 {user:>5}        0 7777 1 0000000000000000 20 4 30 10 -1"
    return f"   1: {caller} {listener} {state} {rest}\n"


@pytest.fixture
def table() -> str:
    """The two ends of one connection of user 105 to a port of user 998, as the kernel writes them."""
    here, there = callers.port_name(*LISTENER), callers.port_name(*CALLER)
    return HEAD + line(here, there, "01", "998") + line(there, here, "01", "105")


def test_ends_are_written_as_the_kernel_writes_them() -> None:
    assert callers.port_name("127.0.0.1", 9050) == "0100007F:235A"


def test_the_user_is_that_of_the_callers_end(table: str) -> None:
    assert callers.user_of(table, CALLER, LISTENER) == 105
    assert callers.user_of(table, LISTENER, CALLER) == 998


def test_sockets_that_are_not_there_or_were_closed_are_nobodys(table: str) -> None:
    assert callers.user_of(table, ("127.0.0.1", 51001), LISTENER) is None
    assert callers.user_of(table, CALLER, ("127.0.0.1", 40002)) is None
    here, there = callers.port_name(*LISTENER), callers.port_name(*CALLER)
    for state in ("05", "06", "08", "0A"):  # what the kernel keeps of a closed socket is shown as user 0's
        assert callers.user_of(HEAD + line(there, here, state, "0"), CALLER, LISTENER) is None


@pytest.mark.parametrize("cut", range(40))
def test_a_table_cut_short_tells_no_other_user(table: str, cut: int) -> None:
    assert callers.user_of(table[: len(table) - 2 * cut], CALLER, LISTENER) in (105, None)


@pytest.mark.parametrize(
    ("user", "users", "told"),
    [
        (105, "         0          0 4294967295\n", True),
        (105, "0 0 1\n998 998 1\n", False),
        (998, "0 0 1\n998 998 1\n", True),
        (callers.OVERFLOW, "0 0 4294967295\n", False),
        (105, "", False),
    ],
)
def test_users_without_a_number_here_are_not_told_apart(user: int, users: str, told: bool) -> None:
    assert callers.can_be_told(user, users) is told


async def test_our_own_connection_is_ours_and_nobody_elses() -> None:
    listener = await listen_on_loopback()
    ours = await trio.open_tcp_stream("127.0.0.1", port_of(listener))
    async with await listener.accept() as accepted:
        assert await callers.is_of(accepted, os.getuid())
        assert not await callers.is_of(accepted, os.getuid() + 1)
        await ours.aclose()
        assert not await callers.is_of(accepted, os.getuid())
    await listener.aclose()


async def test_where_the_table_cannot_be_read_nobody_is_let_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(callers, "_SOCKETS", callers.Path("/nowhere"))
    listener = await listen_on_loopback()
    async with (
        await trio.open_tcp_stream("127.0.0.1", port_of(listener)),
        await listener.accept() as accepted,
    ):
        assert not await callers.is_of(accepted, os.getuid())
    assert not callers.tells_apart(os.getuid())
    await listener.aclose()


async def test_who_asks_meanwhile_shares_the_next_reading(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    readings: list[int] = []

    class Slow:
        def read_text(self) -> str:
            readings.append(asked)
            until = min(asked + 10, 50)
            while asked < until:  # in a given time a busy machine lets fewer ask
                time.sleep(0.001)
            return f"{len(readings)}"

    monkeypatch.setattr(callers, "_SOCKETS", Slow())
    table, got, asked = callers.SocketTable(), [], 0

    async def ask() -> None:
        nonlocal asked
        asked += 1
        number = asked
        text = int(await table.read())
        got.append(text)
        assert readings[text - 1] >= number, "it was read before this one asked"

    async with trio.open_nursery() as nursery:
        for _ in range(50):
            nursery.start_soon(ask)
            await trio.sleep(0.002)
    assert len(got) == 50
    assert len(readings) <= 8
