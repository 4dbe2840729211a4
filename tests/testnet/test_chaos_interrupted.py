"""A chaos run that is interrupted leaves no fault behind, whenever that is."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from pathlib import Path

import pytest
import trio
import trio.testing

from hushcast_testnet import inventory
from hushcast_testnet.chaos import chaos_run as run_module
from hushcast_testnet.chaos.chaos_run import Chaos, _Run, run_chaos
from hushcast_testnet.chaos.fault_plan import Fault, Kind
from hushcast_testnet.chaos.journal import Journal

TAKES = 5.0  # seconds to stop a daemon, or to start it


class Daemons:
    """Implements `Breaker` with daemons that run or do not."""

    kinds: Sequence[Kind] = ("stop",)

    def __init__(self) -> None:
        self.stopped: set[str] = set()

    async def begin(self, fault: Fault) -> None:
        self.stopped.add(fault.target)
        await trio.sleep(TAKES)

    async def end(self, fault: Fault) -> None:
        await trio.sleep(TAKES)
        self.stopped.discard(fault.target)


@pytest.mark.parametrize("after", [0.5, 1.0 + TAKES / 2, 1.0 + TAKES + 1.0, 1.0 + TAKES + 10.0 + 1.0])
async def test_whatever_was_stopped_is_started(
    tmp_path: Path, after: float, autojump_clock: trio.testing.MockClock
) -> None:
    member = inventory.Member("relay-1", "relay", str(tmp_path), str(tmp_path), str(tmp_path))
    breaker, journal = Daemons(), Journal(tmp_path / "journal", trio.current_time)
    run = _Run(
        tmp_path, inventory.Testnet("tcp", 60, 0.0, [member], None), breaker, Chaos(), lambda text: None
    )
    with trio.move_on_after(after):
        await run._break(Fault("stop", "relay-1", 1.0, 11.0), journal)
    journal.close()
    assert breaker.stopped == set()


class Impatient(Daemons):
    """Somebody presses Ctrl-C while a daemon is stopped, and again while it is started."""

    async def begin(self, fault: Fault) -> None:
        self.stopped.add(fault.target)
        os.kill(os.getpid(), signal.SIGINT)
        await trio.lowlevel.checkpoint()

    async def end(self, fault: Fault) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        await trio.lowlevel.checkpoint()
        self.stopped.discard(fault.target)


class Silence:
    """No traffic at all."""

    def __init__(self, *_: object) -> None:
        pass

    async def listen(self, _: object, *, task_status: trio.TaskStatus[None]) -> None:
        task_status.started()

    async def publish(self, *_: object) -> None:
        await trio.sleep_forever()


def test_ctrl_c_does_not_come_between_a_fault_and_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    member = inventory.Member("relay-1", "relay", str(tmp_path), str(tmp_path), str(tmp_path))
    breaker = Impatient()
    for name, value in {
        "load": lambda _: inventory.Testnet("tcp", 60, 0.0, [member], None),
        "ProcessBreaker": lambda _: breaker,
        "ChaosTraffic": Silence,
        "plan": lambda *_: [Fault("stop", "relay-1", 0.0, 60.0)],
    }.items():
        monkeypatch.setattr(run_module, name, value)
    with pytest.raises(KeyboardInterrupt):
        run_chaos(tmp_path, Chaos())
    assert breaker.stopped == set()
