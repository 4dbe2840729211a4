"""Which roster daemons act on, and which relays keep seats; one short roster changes neither."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import dataclass, replace

from hushcast_protocol.base.roster import Relay, Roster
from hushcast_protocol.base.wire import RelayId

UNSEAT_AFTER = 3  # rosters in a row that lack a relay before it loses its seats in trees
STEEP_LOSS = 3  # a roster that lacks more than one in so many of the relays acted on is held
LEAST_LOSS = 3  # relays; a roster that lacks fewer is acted on, however small the network
MAX_HELD = 6  # rosters in a row that are held; the next one is believed


@dataclass(frozen=True, slots=True)
class RosterStanding:
    """The newest roster of the chain and, while that is held, the earlier one to act on instead."""

    roster: Roster
    acted: Roster
    held: int = 0
    """Rosters in a row, this one included, that were not acted on."""


@dataclass(frozen=True)
class Seating:
    """What the rosters say of seats in trees at a moment."""

    listed: Mapping[RelayId, Relay]
    """The relays that are given a seat."""
    kept: Set[RelayId]
    """The relays that keep the seat they have: those listed, and those that were until lately."""


def is_steep(before: Collection[RelayId], after: Collection[RelayId]) -> bool:
    """Tell whether more relays are missing than plausibly disappear within an epoch."""
    lost = len(set(before) - set(after))
    return lost >= LEAST_LOSS and STEEP_LOSS * lost > len(before)


def follow(last: RosterStanding | None, roster: Roster) -> RosterStanding:
    """Return where daemons stand with the next roster of the chain; `last` is `None` at its beginning.

    A roster that lacks too many of the relays acted on is held, for `MAX_HELD` rosters at most.
    """
    if last is None or last.held >= MAX_HELD or not is_steep(last.acted.relays, roster.relays):
        return RosterStanding(roster, roster)
    return RosterStanding(roster, _with_news(last.acted, roster), last.held + 1)


def restored(roster: Roster, acted: Roster, held: int) -> RosterStanding:
    """Return a standing as it was before a restart; `acted` is the roster of that time, as published."""
    return RosterStanding(roster, _with_news(acted, roster) if held else roster, held)


def seating(standings: Sequence[RosterStanding]) -> Seating:
    """Return who has a seat by rosters in their order, one at least, of which the last is in force."""
    kept = frozenset().union(*(standing.acted.relays for standing in standings[-UNSEAT_AFTER:]))
    return Seating(standings[-1].acted.relays, kept)


def _with_news(acted: Roster, roster: Roster) -> Roster:
    """Return the roster acted on, with what a later one says of the same relays."""
    return replace(
        acted, relays={relay: roster.relays.get(relay, old) for relay, old in acted.relays.items()}
    )
