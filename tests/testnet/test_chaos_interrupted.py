"""A chaos run that is interrupted leaves no fault behind, whenever that is."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
import trio
import trio.testing

from hushcast_testnet import inventory
from hushcast_testnet.chaos.journal import Journal
from hushcast_testnet.chaos.plan import Fault, Kind
from hushcast_testnet.chaos.run import Chaos, _Run

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
