"""A daemon's clock: what it gives an environment, what it tells, and Tor's consensus as its witness."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
import trio
import trio.testing

from hushcast_protocol.base.epochs import Calendar
from hushcast_runtime.clock import DaemonClock
from hushcast_runtime.environment import LOOK_EVERY, Environment, simulated_environment, system_environment
from hushcast_runtime.tor.consensus import compare_clock, consensus_span
from hushcast_runtime.transports.base import TransportError

CALENDAR = Calendar(3600)
BEGIN = 10_000.0 * 86_400
YEARS = 10 * 365 * 86_400.0


def set_clock(env: Environment, ahead: float) -> None:
    object.__setattr__(env, "now", lambda: BEGIN + trio.current_time() + ahead)


class FakeTor:
    """Answers as a tor with a consensus of three hours does."""

    def __init__(self) -> None:
        self.valid_after: float | None = BEGIN - 1800

    async def getinfo(self, key: str) -> str:
        await trio.lowlevel.checkpoint()
        if self.valid_after is None:
            raise TransportError("tor is not connected")
        moment = self.valid_after + (0 if key == "consensus/valid-after" else 3 * 3600)
        return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%d %H:%M:%S")


async def test_an_environment_has_the_trusted_time(autojump_clock: trio.testing.MockClock) -> None:
    env = simulated_environment(1, BEGIN, LOOK_EVERY)
    clock = DaemonClock(env, CALENDAR)
    trusted = clock.environment()
    assert not trusted.is_certain()
    clock.witness_roster(CALENDAR.epoch(BEGIN))
    assert trusted.is_certain()
    assert clock.problem() is None
    set_clock(env, YEARS)
    assert trusted.now() == pytest.approx(BEGIN + trio.current_time())
    assert clock.describe() == {"certain": True, "disputed": False, "jump": int(YEARS)}
    assert "jumped by +" in (clock.problem() or "")
    set_clock(env, 0.0)
    await trusted.sleep_until(BEGIN + 1000)
    assert trusted.now() == pytest.approx(BEGIN + 1000)
    assert clock.describe() == {"certain": True, "disputed": False, "jump": 0}


async def test_who_sleeps_until_a_moment_hears_of_a_clock_set_right(
    autojump_clock: trio.testing.MockClock,
) -> None:
    env = simulated_environment(1, BEGIN, LOOK_EVERY)
    set_clock(env, -YEARS)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(env.sleep_until, BEGIN + 600)
        await trio.sleep(1000)
        set_clock(env, 0.0)
        with trio.fail_after(61):
            await env.sleep_until(BEGIN)
    assert trio.current_time() < 1100


async def test_tor_settles_a_jump(autojump_clock: trio.testing.MockClock) -> None:
    env, tor = simulated_environment(1, BEGIN, LOOK_EVERY), FakeTor()
    clock = DaemonClock(env, CALENDAR)
    set_clock(env, YEARS)
    clock.now()
    async with trio.open_nursery() as nursery:
        await nursery.start(compare_clock, clock, tor)
        assert clock.is_disputed
        await trio.sleep(3600)
        assert clock.steady_for() <= CALENDAR.lead / 2, "no roster is signed by such a clock"
        assert "does not agree" in (clock.problem() or "")
        set_clock(env, 0.0)
        await trio.sleep(120)
        assert clock.now() == pytest.approx(BEGIN + trio.current_time())
        assert clock.is_certain()
        nursery.cancel_scope.cancel()


async def test_a_tor_without_a_consensus_is_no_witness() -> None:
    tor = FakeTor()
    assert await consensus_span(tor) == (BEGIN - 1800, BEGIN + 2.5 * 3600)  # type: ignore[arg-type]
    tor.valid_after = None
    assert await consensus_span(tor) is None  # type: ignore[arg-type]


def test_a_machine_knows_how_much_time_has_passed() -> None:
    env = system_environment()
    before = env.elapsed()
    assert env.elapsed() >= before
    assert env.is_certain()
