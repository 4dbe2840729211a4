"""Parcel letters: what a daemon under cover has relays carry out, as errands of its third."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from hushcast_overlay.neighbourhood import Neighbourhood
from hushcast_overlay.rosters import RosterKeeper
from hushcast_overlay.routes.cover.covered_errand import CoveredErrand
from hushcast_overlay.routes.cover.kept_lanes import Lane
from hushcast_protocol.base.errors import Refusal
from hushcast_protocol.base.roster import Relay, Roster
from hushcast_protocol.base.sharding import sharding_for
from hushcast_protocol.base.wire import RelayId
from hushcast_protocol.cover.cover_rules import CoverRules
from hushcast_protocol.overlay.lane_holds import LaneHold, lane_hold
from hushcast_protocol.overlay.leases import Instruction
from hushcast_protocol.overlay.letter_errands import GiveErrand, errand_body
from hushcast_protocol.overlay.letter_parcels import LetterParcel
from hushcast_protocol.overlay.tree import Tree
from hushcast_runtime.environment import Environment

_KEY = 32  # bytes


class ParcelLetters:
    """Makes the errands of one daemon; each is sealed for the epoch in which its third lets it go."""

    def __init__(self, rules: CoverRules, rosters: RosterKeeper, env: Environment) -> None:
        self._rules = rules
        self._rosters = rosters
        self._env = env

    @property
    def relays(self) -> int:
        """How many relays a tree has, about."""
        newest = self._rosters.whole.newest
        return 0 if newest is None else len(newest.relays)

    def tell(
        self,
        parcel: LetterParcel,
        instructions: Mapping[RelayId, Instruction | LaneHold],
        end: Callable[[bool], None],
    ) -> CoveredErrand:
        """Return the errand that has relays carry out what a parcel tells them."""

        async def body(due: int) -> bytes:
            return await self._body(parcel, instructions, due)

        return CoveredErrand(self._env.randomness(_KEY), body, end)

    def hold(
        self,
        lane: Lane,
        end: Callable[[bool], None],
        told: Callable[[bytes], None],
        day: int = 0,
        lease: bytes = bytes(16),
        elements: tuple[bytes, ...] = (),
    ) -> CoveredErrand:
        """Return the errand that tells a host what leads to a box on a day, and of its lane if need be.

        `told` hears the lane's name once the host was told of it by this.
        """
        relay = lane.host.relay
        parcel = LetterParcel(Tree({relay: None}), frozenset([relay]))
        brings_all = True  # so far; it is not known which of several letters came

        async def body(due: int) -> bytes:
            nonlocal brings_all
            errand, network = None, self._rules.network
            is_to_be_told = lane.is_to_be_told(due if elements else None)
            brings_all = brings_all and is_to_be_told
            if is_to_be_told:
                errand = lane.errand.sealed(self._rules, self._relay(relay), self._env.randomness)
            asked = lane_hold(lane.box, network, relay, errand, day, lease, elements)
            return await self._body(parcel, {relay: asked}, due)

        def over(is_done: bool) -> None:
            if is_done and brings_all:
                told(lane.name)
            end(is_done)

        return CoveredErrand(self._env.randomness(_KEY), body, over)

    def check_whole(self, day: int) -> None:
        """Raise `Refusal` where a day is cut into shards: relays would have to be asked who is in one."""
        roster = self._rosters.of_day(day)
        if roster is None or sharding_for(roster.shards, day) is not None:
            raise Refusal("there is no roster with all relays of that day")

    async def _body(
        self, parcel: LetterParcel, instructions: Mapping[RelayId, Instruction | LaneHold], due: int
    ) -> bytes:
        near = self._rosters.whole
        there = parcel.among({relay for relay in parcel.shape.parents if near.relay(relay) is not None})
        roster = _listing(near, there)
        epoch = self._rosters.calendar.epoch(self._rules.released_at(due))
        translation = self._rosters.translation
        randomness = self._env.randomness
        sealed = await self._env.compute(there.sealed, instructions, roster, epoch, randomness, translation)
        return errand_body(GiveErrand(there.top, sealed))

    def _relay(self, relay: RelayId) -> Relay:
        found = self._rosters.whole.relay(relay)
        if found is None:
            raise Refusal("a host is not listed")
        return found


def _listing(near: Neighbourhood, parcel: LetterParcel) -> Roster:
    """Return a roster of those whom a parcel passes, by what is known of each."""
    assert near.newest is not None
    listed = {relay: found for relay in parcel.shape.parents if (found := near.relay(relay)) is not None}
    return replace(near.newest, relays=listed)
