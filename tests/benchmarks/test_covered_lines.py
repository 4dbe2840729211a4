"""The instrument that compares rounds at a SOCKS port: it finds what is there, and nothing else."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import partial

import pytest
import trio

from benchmarks.cover.apartness import apart_by
from benchmarks.cover.lines_over_tor import figures
from benchmarks.cover.sights import Course, apart, rounds_seen
from benchmarks.cover.socks_watch import Piece, SocksWatch
from benchmarks.figures import Effort
from hushcast_protocol.base.cover_terms import LEAST_ROUND
from hushcast_protocol.base.errors import Refusal
from hushcast_runtime.transports.endpoints import Endpoint
from hushcast_runtime.transports.streams import LOOPBACK

DAEMONS, COUNTED, LETTERS, BLOCKS = 10, 10, 16_500, 16_600


def pieces(course: Course, chance: random.Random, later: float, shorter: int) -> Iterator[Piece]:
    """What a daemon's line shows: a fault in rounds that publish, and a machine that is late by some ms."""
    phase = chance.uniform(2, 18)
    for number, _, is_busy in course.kinds():
        at = number * LEAST_ROUND + phase + chance.expovariate(1 / 0.01) + later * is_busy
        yield Piece(at, 0, True, LETTERS - shorter * is_busy)
        yield Piece(at + chance.gauss(0.5, 0.05), 0, False, BLOCKS)
        if chance.random() < 0.5:
            yield Piece(at + chance.uniform(-9, 9), 1 + number, False, 5_000)  # a roster


@pytest.mark.parametrize(
    ("later", "shorter", "least", "most"), [(0.0, 0, 0.4, 0.6), (0.03, 0, 0.8, 1.0), (0.0, 1, 1.0, 1.0)]
)
def test_what_is_there_is_found_and_no_more(later: float, shorter: int, least: float, most: float) -> None:
    chance = random.Random(7)
    rounds = []
    for daemon in range(DAEMONS):
        course = Course(1_000, daemon % 2 == 0, COUNTED)
        rounds += rounds_seen(list(pieces(course, chance, later, shorter)), course, LEAST_ROUND)
    assert sum(one.is_busy for one in rounds) == len(rounds) / 2 == 2 * COUNTED * DAEMONS
    found = apart(rounds)
    assert least <= found.area <= most
    low, high = found.interval
    assert low <= found.area <= high
    assert high - low < 0.15


def test_a_half_of_which_all_rounds_were_missed_is_said_and_is_no_error_of_the_program() -> None:
    course = Course(1_000, True, COUNTED)
    seen = rounds_seen(list(pieces(course, random.Random(7), 0.0, 0)), course, LEAST_ROUND)
    with pytest.raises(Refusal, match="half of the rounds were missed"):
        apart([one for one in seen if one.block < 2])


def test_an_interval_holds_chance_as_often_as_it_says() -> None:
    chance = random.Random(3)

    def rounds() -> list[dict[str, float]]:
        return [{"x": chance.random()} for _ in range(60)]

    intervals = [apart_by("x", (rounds(), rounds())).interval for _ in range(200)]
    assert 0.9 < sum(low < 0.5 < high for low, high in intervals) / len(intervals) < 0.99


async def test_a_watched_port_passes_all_on_and_notes_it() -> None:
    async def echo(stream: trio.SocketStream) -> None:
        await stream.send_all(b"!" + await stream.receive_some())

    async with trio.open_nursery() as nursery:
        (listener,) = await nursery.start(partial(trio.serve_tcp, echo, 0, host=LOOPBACK))
        watch = SocksWatch(Endpoint(host=LOOPBACK, port=listener.socket.getsockname()[1]))
        await nursery.start(watch.run)
        for number in range(2):
            async with await trio.open_tcp_stream(LOOPBACK, watch.port) as stream:
                await stream.send_all(b"x" * 10)
                assert b"".join([part async for part in stream]) == b"!" + b"x" * 10
            seen = [(one.is_upward, one.size) for one in watch.seen if one.connection == number]
            assert seen == [(True, 10), (False, 11)]
        nursery.cancel_scope.cancel()


@pytest.mark.soak
@pytest.mark.tor
@pytest.mark.processes
def test_lines_and_costs_are_measured_over_tor() -> None:
    """A tenth of the work, of which twelve minutes are those within which porters begin."""
    found = {one.figure: one for one in figures(Effort(1, 0.1))}
    assert not [name for name, one in found.items() if one.peer_value is None]
    shorter = next(one for name, one in found.items() if "a byte shorter, bytes up" in name)
    assert shorter.ours == pytest.approx(0.0)
    passed = next(one for name, one in found.items() if name.startswith("letters passed"))
    assert passed.ratio == pytest.approx(1.0, abs=0.1)
