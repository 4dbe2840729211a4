"""A relay whose daemons need not wait: `python -m benchmarks.cover.prompt_relay`, with a node's arguments.

As a porter it begins within a few rounds to pass a daemon's letters, and to show the bills of its lanes;
others draw a moment of the next day for each. Of a round nothing is changed.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from hushcast_node.program import NODE
from hushcast_protocol.base.crypto.secrets import Randomness
from hushcast_protocol.base.wire import RelayId
from hushcast_protocol.cover.cover_rules import CoverRules
from hushcast_protocol.cover.lane_porter import LanePorter
from hushcast_protocol.cover.porter_queue import PorterQueue
from hushcast_runtime.processes.start import main

_BEGINS = 2  # rounds after a daemon came
_init = PorterQueue.__init__
_shown = LanePorter.shown
_first_shown: dict[LanePorter, int] = {}


def _begin_soon(queue: PorterQueue, rules: CoverRules, now: int, randomness: Randomness) -> None:
    _init(queue, rules, now, randomness)
    queue.begins = now + _BEGINS


def _show_soon(lanes: LanePorter, now: int) -> list[tuple[RelayId, bytes]]:
    """Return one bill in each of the first rounds, which have no stamp in common, and then as ever."""
    place = now - _first_shown.setdefault(lanes, now)
    soon: Sequence[tuple[RelayId, bytes]] = lanes.bills[place : place + 1]
    return [*soon, *_shown(lanes, now)]


if __name__ == "__main__":
    PorterQueue.__init__ = _begin_soon  # type: ignore[method-assign, assignment]
    LanePorter.shown = _show_soon  # type: ignore[method-assign, assignment]
    main(sys.argv, NODE)
