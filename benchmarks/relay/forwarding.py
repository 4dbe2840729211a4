"""Figure: 1 KiB messages that one daemon process forwards a second on loopback, beside brokers and gossip."""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, suppress
from pathlib import Path
from typing import Protocol

import trio

from benchmarks.figures import Effort, Figure, PeerMissing, alternate_async, at_least, missing, times_faster
from benchmarks.peers import amqtt, gossipsub, mosquitto
from benchmarks.relay.throughput import overlay
from hushcast_runtime.exception_groups import innermost

FAN_OUT = 10
_OURS, _SPOOL, _FAN = "spool off", "spool on", "10 out"
_AMQTT, _MOSQUITTO, _GOSSIPSUB = "amqtt, QoS 0", "mosquitto, QoS 0", "py-libp2p gossipsub"
_MESSAGES = {_OURS: 5000, _SPOOL: 5000, _FAN: 1500, _AMQTT: 4000, _MOSQUITTO: 40_000, _GOSSIPSUB: 400}


class _Side(Protocol):
    cpu: float

    async def measure(self, count: int) -> float: ...


def figures(effort: Effort) -> Iterator[Figure]:
    """Measure all sides in turn; each is idle while another is measured."""
    yield from trio.run(_measure, effort)


async def _measure(effort: Effort) -> list[Figure]:
    with tempfile.TemporaryDirectory(prefix="hushcast-bench-") as place:
        directory = Path(place)
        async with AsyncExitStack() as stack:
            running: dict[str, _Side] = {}
            gone: dict[str, PeerMissing] = {}
            for name, start in _sides(directory).items():
                try:
                    running[name] = await stack.enter_async_context(start())
                except* PeerMissing as reasons:
                    gone[name] = innermost(reasons)
            cpu: dict[str, list[float]] = {name: [] for name in running}
            turns = {name: _turn(side, name, effort, cpu) for name, side in running.items()}
            for turn in turns.values():
                await _ignoring_missing(turn)  # nothing counts before everything has run once
            for values in cpu.values():
                values.clear()
            rates: dict[str, float | PeerMissing] = {**await alternate_async(effort.runs, turns), **gone}
        return _table(rates, {name: statistics.median(values) for name, values in cpu.items() if values})


def _sides(directory: Path) -> dict[str, Callable[[], AbstractAsyncContextManager[_Side]]]:
    return {
        _OURS: lambda: overlay(1, None, directory / "off.log"),
        _AMQTT: lambda: amqtt.start(1, directory),
        _SPOOL: lambda: overlay(1, directory / "state.db", directory / "on.log"),
        _MOSQUITTO: lambda: mosquitto.start(1, directory),
        _FAN: lambda: overlay(FAN_OUT, None, directory / "fan.log"),
        _GOSSIPSUB: lambda: gossipsub.start(),
    }


def _turn(
    side: _Side, name: str, effort: Effort, cpu: dict[str, list[float]]
) -> Callable[[], Awaitable[float]]:
    async def turn() -> float:
        rate = await side.measure(effort.amount(_MESSAGES[name]))
        cpu[name].append(side.cpu)
        return rate

    return turn


async def _ignoring_missing(turn: Callable[[], Awaitable[float]]) -> None:
    with suppress(PeerMissing):  # it says so again when it counts
        await turn()


def _table(rates: dict[str, float | PeerMissing], cpu: dict[str, float]) -> list[Figure]:
    ours, spooled, fanned = (_rate(rates[name]) for name in (_OURS, _SPOOL, _FAN))
    plain = "1 KiB messages forwarded a second, spool off: at least times"
    table = [
        _beside(plain, ours, _AMQTT, rates, 6),
        at_least(
            "1 KiB messages forwarded a second, spool on, next hops that answer at once: at least times",
            spooled,
            "spool off",
            ours,
            0.5,
        ),
        _beside(plain, ours, _MOSQUITTO, rates, 0.25),
        _beside(plain, ours, _GOSSIPSUB, rates, 10),
        at_least(
            f"deliveries a second, 1 in and {FAN_OUT} out, spool off: at least times",
            FAN_OUT * fanned,
            "1 in and 1 out",
            ours,
            2.5,
        ),
    ]
    cost = "CPU of the process a message, µs, whoever else uses the machine: times cheaper"
    for name in (_AMQTT, _MOSQUITTO, _GOSSIPSUB):
        if name in cpu:
            table.append(times_faster(f"{cost}, spool off", cpu[_OURS], name, cpu[name], None))
    if _AMQTT in cpu:
        table.append(times_faster(f"{cost}, spool on", cpu[_SPOOL], _AMQTT, cpu[_AMQTT], None))
    table.append(
        times_faster(f"{cost}, a delivery of 1 in and 10 out", cpu[_FAN] / FAN_OUT, "1 out", cpu[_OURS], None)
    )
    return table


def _beside(
    figure: str, ours: float, peer: str, rates: dict[str, float | PeerMissing], target: float
) -> Figure:
    rate = rates[peer]
    if isinstance(rate, PeerMissing):
        return missing(figure, ours, peer, rate, target)
    return at_least(figure, ours, peer, rate, target)


def _rate(value: float | PeerMissing) -> float:
    if isinstance(value, PeerMissing):  # the daemon itself could not be measured
        raise value
    return value
