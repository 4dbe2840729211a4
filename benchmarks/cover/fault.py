"""A daemon under cover with a fault, for who watches its line to find: `python -m benchmarks.cover.fault`.

Letters go 30 ms later where one of the round has a message or an errand in it, or where a message came since
the round before. What it takes then are a node's arguments.
"""

from __future__ import annotations

import sys

import trio

from hushcast_node.program import NODE
from hushcast_overlay.routes.arrivals import Arrivals
from hushcast_overlay.routes.cover.cover_rounds import CoverRounds, Prepared
from hushcast_overlay.routes.route import OverlayRoute
from hushcast_protocol.base.wire import RelayId
from hushcast_protocol.content.messages import Message
from hushcast_runtime.processes.start import main

_LATER = 0.03  # seconds
_hand_in = CoverRounds._hand_in
_take = Arrivals.take
_came: list[Message] = []


async def _later(rounds: CoverRounds, number: int, prepared: Prepared) -> None:
    has_message = any(planned.key is not None for planned, _ in prepared)
    await trio.sleep(_LATER * (has_message or bool(_came)))
    _came.clear()
    await _hand_in(rounds, number, prepared)


async def _note(arrivals: Arrivals, route: OverlayRoute, messages: list[Message], host: RelayId) -> None:
    _came.extend(messages)
    await _take(arrivals, route, messages, host)


if __name__ == "__main__":
    CoverRounds._hand_in = _later  # type: ignore[method-assign, assignment]
    Arrivals.take = _note  # type: ignore[method-assign, assignment]
    main(sys.argv, NODE)
