"""A daemon under cover with a fault, for who watches its line to find: `python -m benchmarks.cover.fault`.

Letters of a round in which one has a message go 30 ms later. What it takes then are a node's arguments.
"""

from __future__ import annotations

import sys

import trio

from hushcast_node.program import NODE
from hushcast_overlay.routes.cover.cover_rounds import CoverRounds, Prepared
from hushcast_runtime.processes.start import main

_LATER = 0.03  # seconds
_hand_in = CoverRounds._hand_in


async def _later(rounds: CoverRounds, number: int, prepared: Prepared) -> None:
    await trio.sleep(_LATER * any(planned.key is not None for planned, _ in prepared))
    await _hand_in(rounds, number, prepared)


if __name__ == "__main__":
    CoverRounds._hand_in = _later  # type: ignore[method-assign]
    main(sys.argv, NODE)
