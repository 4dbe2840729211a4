"""A network's cover: what a roster says of it, as lengths and lists that are the same for everybody."""

from __future__ import annotations

from dataclasses import dataclass

from hushcast_protocol.base.epochs import EPOCHS_A_DAY
from hushcast_protocol.base.errors import Refusal
from hushcast_protocol.base.roster import Roster
from hushcast_protocol.base.wire import RelayId
from hushcast_protocol.cover.cover_lists import CoverLists
from hushcast_protocol.cover.cover_rules import CoverRules


@dataclass(frozen=True, slots=True)
class NetworkCover:
    """Cover as daemons and relays have it who hold one roster."""

    rules: CoverRules
    lists: CoverLists
    quarter: int


def has_cover(roster: Roster | None) -> bool:
    """Tell whether a roster's network has cover by its rules; it may have too few relays for it."""
    return roster is not None and bool(roster.cover)


def network_cover(roster: Roster) -> NetworkCover:
    """Return the cover of a network.

    Raises `Refusal` where its rules have none, it is cut into shards (nobody knows all its relays then), or
    has too few relays.
    """
    terms, draw = roster.cover, roster.cover_draw
    if not terms or draw is None:
        raise Refusal("this network has no cover")
    if not roster.relays:
        raise Refusal("cover does not start: the network is cut into shards")
    network = roster.network
    rules = CoverRules(network.id, network.epoch_seconds, terms.round_seconds, terms.width)
    return NetworkCover(rules, CoverLists.drawn(rules, draw.value, able_relays(roster)), draw.quarter)


def able_relays(roster: Roster) -> frozenset[RelayId]:
    """Return the relays of a roster that were listed for long enough, without a gap, to be on a list."""
    least = roster.cover.listed_days * EPOCHS_A_DAY
    return frozenset(one.id for one in roster.relays.values() if roster.epoch - one.since >= least)
