"""Circuits are closed one by one, after what they were for has ended, and none of anybody else's."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
import trio.testing

from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_runtime.tor import circuits
from hushcast_runtime.tor.circuits import LINGER, Circuits
from hushcast_runtime.tor.replies import ReplySplitter
from hushcast_runtime.tor.settings import TorSettings
from hushcast_runtime.tor.transport import TorTransport
from hushcast_runtime.transports.base import TransportError
from hushcast_testnet.tor.private_tor import TorNetwork

OURS, THEIRS = "cAclWQIMsBJHr_3lhDXikApu", "PxBaa0w5lCuQaA04C5HpxJgH"
TARGET = f"{'b' * 56}.onion:7411"


def told(status: str, circuit: int, user: str = OURS) -> bytes:
    """What tor 0.4.9 says of a stream."""
    return (
        f'650 STREAM 15 {status} {circuit} {TARGET} REASON=DONE SOCKS_USERNAME="{user}" SOCKS_PASSWORD="a"'
        " CLIENT_PROTOCOL=SOCKS5 NYM_EPOCH=0 SESSION_GROUP=-4 ISO_FIELDS=SOCKS_USERNAME,SOCKS_PASSWORD\r\n"
    ).encode()


class Control:
    """A control connection that notes what it is asked, and when."""

    def __init__(self, answer: bytes | None = b"250 OK\r\n") -> None:
        self.lost = trio.Event()
        self.asked: dict[str, float] = {}
        self._answer = answer

    async def ask(self, command: str) -> Any:
        await trio.lowlevel.checkpoint()
        self.asked[command] = trio.current_time()
        if self._answer is None:
            raise TransportError("the control connection to tor is lost")
        (reply,) = ReplySplitter().feed(self._answer)
        return reply


@asynccontextmanager
async def running(control: Any) -> AsyncIterator[Circuits]:
    used = Circuits(OURS, os.urandom)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(used.run, control)
        await trio.testing.wait_all_tasks_blocked()
        yield used
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("status", ["CLOSED", "FAILED"])
async def test_a_circuit_is_closed_a_while_after_its_stream(
    autojump_clock: trio.testing.MockClock, status: str
) -> None:
    control = Control()
    async with running(control) as used:
        for circuit in range(1, 41):
            assert used.take(told(status, circuit))
        began = trio.current_time()
        await trio.sleep(LINGER[1] + 1)
    assert control.asked.keys() == {f"CLOSECIRCUIT {circuit} IfUnused" for circuit in range(1, 41)}
    after = sorted(moment - began for moment in control.asked.values())
    assert LINGER[0] <= after[0] < after[-1] <= LINGER[1]
    assert after[-1] - after[0] > (LINGER[1] - LINGER[0]) / 2, "each at a moment of its own"


async def test_streams_that_go_on_are_elsewhere_or_anothers_close_nothing(
    autojump_clock: trio.testing.MockClock,
) -> None:
    control = Control()
    async with running(control) as used:
        for status in ("NEW", "SENTCONNECT", "SUCCEEDED", "DETACHED"):
            assert used.take(told(status, 4))
        assert used.take(told("CLOSED", 4, THEIRS))
        assert used.take(told("FAILED", 0)), "it came to no circuit"
        assert used.take(b"650 STREAM 15 CLOSED 4 192.0.2.1:80 REASON=DONE\r\n"), "whose, it does not say"
        await trio.sleep(LINGER[1] + 1)
    assert control.asked == {}


async def test_other_replies_are_left_to_be_parsed() -> None:
    used = Circuits(OURS, os.urandom)
    splitter = ReplySplitter(used.take)
    said = told("NEW", 0) + b"650 STATUS_CLIENT NOTICE CIRCUIT_ESTABLISHED\r\n250 OK\r\n" + told("CLOSED", 1)
    pieces = [said[begin : begin + 7] for begin in range(0, len(said), 7)]
    assert len([reply for piece in pieces for reply in splitter.feed(piece)]) == 2


async def test_so_many_wait_and_no_more(
    autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(circuits, "MAX_ENDED", 3)
    control = Control(answer=None)  # which stops none of them
    async with running(control) as used:
        for circuit in range(1, 9):
            used.take(told("CLOSED", circuit))
        await trio.sleep(LINGER[1] + 1)
        assert len(control.asked) == 3
        used.take(told("CLOSED", 9))
        await trio.sleep(LINGER[1] + 1)
        assert len(control.asked) == 4, "there is room again"


@pytest.mark.parametrize(
    ("answer", "lines"), [(b'552 Unknown circuit "4"\r\n', 0), (b"510 Command filtered\r\n", 1)]
)
async def test_a_filter_that_forbids_it_is_told_of_once(
    autojump_clock: trio.testing.MockClock, log_lines: list[dict[str, Any]], answer: bytes, lines: int
) -> None:
    async with running(Control(answer)) as used:
        for circuit in range(4, 8):
            used.take(told("CLOSED", circuit))
        await trio.sleep(LINGER[1] + 1)
    assert [line["level"] for line in log_lines] == ["warning"] * lines
    assert used.refused == bool(lines)


async def test_with_the_connection_it_ends(autojump_clock: trio.testing.MockClock) -> None:
    control, used = Control(), Circuits(OURS, os.urandom)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(used.run, control)
        await trio.testing.wait_all_tasks_blocked()
        used.take(told("CLOSED", 4))
        control.lost.set()
    used.take(told("CLOSED", 5))
    assert control.asked == {}


@pytest.mark.tor
async def test_a_circuit_that_another_stream_uses_stays(tor_network: TorNetwork) -> None:
    control, socks = tor_network.clients[0].endpoints()
    transport = TorTransport(TorSettings(control=control, socks=socks))

    async def echo(stream: trio.abc.Stream) -> None:
        async with stream:
            while data := await stream.receive_some(1):
                await stream.send_all(data)

    async with trio.open_nursery() as nursery:
        with trio.fail_after(60):
            await nursery.start(transport.run)
            listener = await transport.listen(Seed.draw(os.urandom))
            nursery.start_soon(listener.serve, echo)
            await listener.published()
            first, second = [await transport.connect(listener.address, "together") for _ in range(2)]
            await first.aclose()
            await trio.sleep(LINGER[1] + 1)
            await second.send_all(b"x")
            assert await second.receive_some(1) == b"x"
            await second.aclose()
        nursery.cancel_scope.cancel()
