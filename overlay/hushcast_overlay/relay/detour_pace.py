"""Detour pace: when a message goes around a next hop that is away, when it rests, and when it ends.

Where all relays at the top of a tree are away each detour leads to another of them: without a pace a message
would go around among the relays that are left as fast as these can send, until the tree is mended. So from
one relay it goes around one next hop a few times at once, for a way around may lead through a relay below,
and then only after rests; so it does, too, where it has passed many relays already. When that went on for
long enough it ends.
"""

from __future__ import annotations

from collections import OrderedDict
from enum import Enum
from typing import NamedTuple

from hushcast_protocol.content.hops import Hop
from hushcast_protocol.content.messages import Message
from hushcast_protocol.overlay.trail import BITS_A_LABEL, MAX_BITS_SET, Trail

MAX_WALK = 8  # relays that a message has passed at most that still goes around at once
MAX_AT_ONCE = 6  # ways around one next hop: where one in four comes back, 1 in 4,000 needs more
REST = 30.0  # seconds from one way around a next hop to the next: as long as a next hop may be silent
AROUND_WITHIN = 1800.0  # seconds: who is away for a restart, or an upgrade, is back by then
MAX_PACED = 32_768  # messages and next hops whose detours are remembered; 8 MB, 1,000 detours a second


class DetourTurn(Enum):
    """What becomes of a message whose next hop is away."""

    GOES = "another relay has it now"
    RESTS = "it waits here, for its turn or for its next hop"
    ENDS = "it was tried for long enough"


class _Paced(NamedTuple):
    since: float
    ready: float
    times: int


class DetourPace:
    """The messages that went around next hops that are away, at one relay."""

    def __init__(self) -> None:
        self._paced: OrderedDict[tuple[bytes, Hop], _Paced] = OrderedDict()
        self._forgot_until = 0.0  # before this, what is not remembered may have been evicted before its turn

    def turn(self, message: Message, hop: Hop, now: float) -> DetourTurn:
        """Decide on a message that waits for `hop`, at `now` seconds since some moment."""
        popcount = Trail(message.trail).popcount()
        is_far = popcount > MAX_WALK * BITS_A_LABEL
        name = (message.id, hop)
        paced = self._paced.pop(name, None)
        if paced is None:
            paced = _Paced(now, now + REST if is_far or now < self._forgot_until else now, 0)
        if now - paced.since >= AROUND_WITHIN or popcount > MAX_BITS_SET - BITS_A_LABEL:
            turn = DetourTurn.ENDS
        elif now < paced.ready:
            turn = DetourTurn.RESTS
        else:
            times = paced.times + 1
            ready = now + REST if is_far or times >= MAX_AT_ONCE else now
            turn, paced = DetourTurn.GOES, _Paced(paced.since, ready, times)
        self._paced[name] = paced
        if len(self._paced) > MAX_PACED:
            _, evicted = self._paced.popitem(last=False)
            self._forgot_until = max(self._forgot_until, evicted.ready)
        return turn
