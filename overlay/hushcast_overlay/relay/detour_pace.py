"""Detour pace: when a message goes around a next hop that is away, when it rests, and when it ends.

Where all relays at the top of a tree are away each detour leads to another of them: without a pace a message
would go around among the relays that are left as fast as these can send, until the tree is mended. So from
one relay it goes around one next hop a few times at once, for a way around may lead through a relay below,
and then only after rests; so it does, too, where it has passed many relays already. When that went on for
long enough it ends.

What rests is remembered until it goes. Where there is no room for more, each next hop has a share: one with
more than its share keeps those that it has, and what else waits for it rests until there is room; one with
less takes room of the one that has the most. Next hops that no roster lists have one share together, for
strangers make up as many as they like.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from hushcast_protocol.content.hops import Hop
from hushcast_protocol.content.messages import Message
from hushcast_protocol.overlay.trail import BITS_A_LABEL, MAX_BITS_SET, trail_bits

MAX_WALK = 8  # relays that a message has passed at most that still goes around at once
MAX_AT_ONCE = 6  # ways around one next hop: where one in four comes back, 1 in 4,000 needs more
REST = 30.0  # seconds from one way around a next hop to the next: as long as a next hop may be silent
AROUND_WITHIN = 1800.0  # seconds: who is away for a restart, or an upgrade, is back by then
MAX_PACED = 32_768  # messages and next hops whose detours are remembered; 8 MB
# Seconds after which one that has not come by is forgotten where there is no room: what rests is looked at
# once or twice a minute. So 360 detours a second that do not come back leave room for others.
GONE_AFTER = 3 * REST


class DetourTurn(Enum):
    """What becomes of a message whose next hop is away."""

    GOES = "another relay has it now"
    RESTS = "it waits here, for its turn or for its next hop"
    ENDS = "it was tried for long enough"


class _Paced(NamedTuple):
    since: float
    ready: float
    times: int
    seen: float

    def is_over(self, popcount: int, now: float) -> bool:
        """Tell whether this was of a message dropped before, now that it is here with such a trail."""
        return now - self.seen >= AROUND_WITHIN or (self.times > 0 and popcount <= BITS_A_LABEL)


_Name = tuple[bytes, Hop]  # a message's id, and its next hop


class DetourPace:
    """The messages that went around next hops that are away, at one relay."""

    def __init__(self) -> None:
        self._paced: dict[Hop | None, dict[_Name, _Paced]] = {}  # by next hop, all that are not listed as one
        self._count = 0
        self._looked = -GONE_AFTER  # when those that have not come by were forgotten

    def __len__(self) -> int:
        """Return how many are remembered."""
        return self._count

    def turn(self, message: Message, hop: Hop, is_listed: bool, now: float) -> DetourTurn:
        """Decide on a message that waits for `hop`, at `now` seconds since some moment.

        `is_listed` if a roster lists that next hop. What ends is forgotten, so that it begins anew when it is
        dropped here anew. So does what has passed no relay but this one though it went around before, or has
        not come by for as long as it may go around.
        """
        popcount = trail_bits(message.trail).bit_count()
        is_far = popcount > MAX_WALK * BITS_A_LABEL
        share, name = hop if is_listed else None, (message.id, hop)
        paced = self._paced.get(share, {}).get(name)
        if paced is not None and paced.is_over(popcount, now):
            paced = _Paced(now, now, 0, now)
        if paced is None:
            if popcount <= MAX_BITS_SET - BITS_A_LABEL and not self._has_room(share, now):
                return DetourTurn.RESTS
            paced = _Paced(now, now + REST if is_far else now, 0, now)
        if now - paced.since >= AROUND_WITHIN or popcount > MAX_BITS_SET - BITS_A_LABEL:
            self._forget(share, name)
            return DetourTurn.ENDS
        if now < paced.ready:
            turn, paced = DetourTurn.RESTS, paced._replace(seen=now)
        else:
            times = paced.times + 1
            ready = now + REST if is_far or times >= MAX_AT_ONCE else now
            turn, paced = DetourTurn.GOES, _Paced(paced.since, ready, times, now)
        held = self._paced.setdefault(share, {})
        self._count += name not in held
        held[name] = paced
        return turn

    def _has_room(self, share: Hop | None, now: float) -> bool:
        """Make room for one more; tell whether there is some."""
        if self._count < MAX_PACED:
            return True
        if now - self._looked >= REST:
            self._looked = now
            self._forget_gone(now)
            if self._count < MAX_PACED:
                return True
        if len(self._paced.get(share, ())) * (len(self._paced) + (share not in self._paced)) >= MAX_PACED:
            return False
        most = max(self._paced, key=lambda other: len(self._paced[other]))
        self._forget(most, next(reversed(self._paced[most])))  # those before it have waited longer
        return True

    def _forget_gone(self, now: float) -> None:
        for share, held in list(self._paced.items()):
            for name in [name for name, paced in held.items() if now - paced.seen >= GONE_AFTER]:
                self._forget(share, name)

    def _forget(self, share: Hop | None, name: _Name) -> None:
        held = self._paced.get(share, {})
        if held.pop(name, None) is not None:
            self._count -= 1
            if not held:
                del self._paced[share]
