"""Coverage of one route: its probes and their outcome."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from hushcast_protocol.base.roster import MAX_RELAYS
from hushcast_protocol.base.wire import RelayId
from hushcast_protocol.overlay.coverage import (
    Judgement,
    Losses,
    MessageForm,
    ProbeCopy,
    ProbePath,
    judged,
    judged_in_steps,
    share,
    weight,
)
from hushcast_runtime.few_at_once import FewAtOnce
from hushcast_runtime.time_slices import in_steps

MAX_PROBES = 8192  # outcomes remembered for one route: four for each relay of a full roster; 2 MB
MAX_SHUNNED = 0.25  # share of the relays; no network with more bad ones would work anyway


@dataclass(eq=False)
class ProbeInFlight:
    """A probe whose copies are being dropped, or may yet arrive; hears how the drops go (`dropper.py`)."""

    sent: float
    form: MessageForm
    tried: list[RelayId] = field(default_factory=list)
    """The origins that it was handed to, those included that gave no receipt."""
    taken: list[RelayId] = field(default_factory=list)
    """Those that gave one."""
    copies: dict[RelayId, ProbePath] = field(default_factory=dict)
    """Their ways, and what an outcome at each stands for, once all drops have ended."""
    weights: dict[RelayId, float] = field(default_factory=dict)
    has_come: bool = False
    """Whether the subscriber has it, by whichever way."""
    came_by: set[RelayId] = field(default_factory=set)
    """The relays that brought copies, by the subscriber's own eyes or a host's word."""
    dropped: bool = False
    is_unseen: bool = False
    """Whether it may have come by relays of which nobody told: it tells of no way."""

    def note_try(self, origin: RelayId) -> None:
        """Note that it is being handed to an origin."""
        self.tried.append(origin)

    def note_receipt(self, origin: RelayId) -> None:
        """Note that an origin has taken it."""
        self.taken.append(origin)

    def note_failure(self, reason: str) -> None:
        """Take notice that an origin gave no receipt: nothing follows from it."""

    def note_dropped(self, ways: Mapping[RelayId, ProbePath]) -> None:
        """Note that all drops have ended, and the ways of all origins at this time."""
        self.copies = {origin: ways[origin] for origin in self.tried if origin in ways}
        self.weights = {origin: weight(origin, ways, len(self.copies)) for origin in self.copies}
        self.dropped = True

    def is_whole(self) -> bool:
        """Tell whether all copies came by their own ways, so that there is nothing to wait for."""
        if not self.dropped or not self.has_come:
            return False
        return self.is_unseen or not any(way.tops.isdisjoint(self.came_by) for way in self.copies.values())


class _Whole(NamedTuple):
    """Whether a probe came at all, by whichever of its origins."""

    arrived: bool
    sent: float


@dataclass(eq=False)
class OverlayCoverage:
    """What a daemon knows of how much of the network reaches one of its routes."""

    _under_way: dict[bytes, ProbeInFlight] = field(default_factory=dict)
    _outcomes: deque[ProbeCopy] = field(default_factory=lambda: deque(maxlen=MAX_PROBES))
    _whole: deque[_Whole] = field(default_factory=lambda: deque(maxlen=MAX_PROBES))
    _untaken: deque[float] = field(default_factory=lambda: deque(maxlen=MAX_PROBES))
    """When probes were sent that no relay took: lost, but by nobody who could be blamed for it."""
    _tree_since: float = 0.0
    _concluded: int = 0
    """How many probes have been judged."""
    _judgement: Judgement = field(default_factory=Judgement)
    _judged_at: int = 0
    """How many had been when relays were judged by them."""
    _judging: FewAtOnce = field(default_factory=FewAtOnce)
    _is_watched: bool = True
    """Whether it is told by which relays copies come."""

    def begin(self, message: bytes, now: float, form: MessageForm) -> ProbeInFlight:
        """Note a probe that will be dropped now: it may arrive before the first receipt."""
        self._under_way[message] = ProbeInFlight(now, form, is_unseen=not self._is_watched)
        return self._under_way[message]

    def withdraw(self, message: bytes) -> None:
        """Forget a probe that was never handed to anybody."""
        self._under_way.pop(message, None)

    def untaken(self, message: bytes) -> None:
        """Note that no origin gave a receipt for a probe, though some were tried."""
        if (probe := self._under_way.pop(message, None)) is not None and not probe.has_come:
            self._untaken.append(probe.sent)

    def settle(self, message: bytes, ways: Mapping[RelayId, ProbePath]) -> None:
        """Note that all drops of a probe have ended; `ways` are those of all origins."""
        if (probe := self._under_way.get(message)) is not None:
            probe.note_dropped(ways)
            self._conclude_early(message, probe)

    def arrived(self, message: bytes) -> None:
        """Note that a message came, which may be a probe of this subscription, or a repeat."""
        if (probe := self._under_way.get(message)) is not None:
            probe.has_come = True
            self._conclude_early(message, probe)

    def came_by(self, message: bytes, relay: RelayId) -> None:
        """Note that a relay brought a copy of a message."""
        if (probe := self._under_way.get(message)) is not None and len(probe.came_by) < MAX_RELAYS:
            probe.came_by.add(relay)
            self._conclude_early(message, probe)

    def watch(self, is_watched: bool) -> None:
        """Take notice of whether it is told, from now on, by which relays copies come."""
        if self._is_watched and not is_watched:
            self.lose_sight()
        self._is_watched = is_watched

    def lose_sight(self) -> None:
        """Take notice that some copies came of which nobody told by which relays."""
        for probe in self._under_way.values():
            probe.is_unseen = True

    def give_up(self, before: float) -> None:
        """Judge the probes that were sent before a moment by what has come of them."""
        for message in [name for name, probe in self._under_way.items() if probe.sent < before]:
            self._conclude(self._under_way.pop(message))

    def _conclude_early(self, message: bytes, probe: ProbeInFlight) -> None:
        if probe.is_whole():
            self._conclude(self._under_way.pop(message))

    def _conclude(self, probe: ProbeInFlight) -> None:
        # What came by no relay, or by some and is not here, is a host's doing: it says nothing of their ways.
        if probe.is_unseen or probe.has_come != bool(probe.came_by):
            self._outcomes.append(ProbeCopy((), probe.has_come, probe.sent))
        elif not probe.copies:
            return
        else:
            self._note_ways(probe)
        self._whole.append(_Whole(probe.has_come, probe.sent))
        self._concluded += 1

    def _note_ways(self, probe: ProbeInFlight) -> None:
        for origin, arrived in judged(probe.copies, probe.taken, probe.came_by).items():
            way, stands_for = probe.copies[origin].relays, probe.weights[origin]
            self._outcomes.append(ProbeCopy(way, arrived, probe.sent, stands_for, probe.form))

    def tree_changed(self, moment: float) -> None:
        """Note that ways changed: from this moment on the share is that of the new tree."""
        self._tree_since = max(self._tree_since, moment)

    async def judge(self) -> None:
        """Judge all relays by the outcomes remembered, if there are new ones; other tasks go on meanwhile.

        A full memory takes seconds of a processor, in steps of some ms.
        """
        async with self._judging:
            if self._judged_at != self._concluded:
                concluded = self._concluded
                self._judgement = await in_steps(judged_in_steps(self._outcomes))
                self._judged_at = concluded

    def suspects(self) -> Sequence[RelayId]:
        """Return the relays that seemed to lose messages when they were judged last, the surest first."""
        return self._judgement.suspects

    def shunned(self, relays: Collection[RelayId]) -> list[RelayId]:
        """Return the suspects among some relays, which trees of these avoid.

        Where they are many, nobody: it is then more likely that this daemon's own end is at fault.
        """
        found = [relay for relay in self.suspects() if relay in relays]
        return found if len(found) <= MAX_SHUNNED * len(relays) else []

    def losses(self) -> Mapping[RelayId, Losses]:
        """Return how many copies of probes each relay lost and passed on, when they were judged last."""
        return self._judgement.losses

    def describe(self) -> dict[str, Any]:
        """Return the share of origins that reach the subscription, its 95 % interval, and the suspects.

        `probes` counts the drops that were judged, and each probe that no relay took as one that was lost;
        `delivered` is the share of probes that came by one of their origins at least, as publications do.
        """
        lost = [ProbeCopy((), False, sent) for sent in self._untaken if sent >= self._tree_since]
        counted = [probe for probe in self._outcomes if probe.sent >= self._tree_since] + lost
        whole = [probe.arrived for probe in self._whole if probe.sent >= self._tree_since]
        whole += [False] * len(lost)
        middle, low, high = share(counted) if counted else (0.0, 0.0, 1.0)
        return {
            "probes": len(counted),
            "share": round(middle, 4) if counted else None,
            "low": round(low, 4),
            "high": round(high, 4),
            "delivered": round(sum(whole) / len(whole), 4) if whole else None,
            "suspects": [relay.hex() for relay in self.suspects()],
        }
