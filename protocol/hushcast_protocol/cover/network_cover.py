"""A network's cover: what a roster says of it, as lengths and lists that are the same for everybody."""

from __future__ import annotations

from dataclasses import dataclass

from hushcast_protocol.base.cover_terms import CoverDraw
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


def rules_by(roster: Roster | None) -> CoverRules | None:
    """Return the lengths that a roster's network has by its rules; it may have too few relays for lists."""
    if roster is None or not roster.cover or roster.cover_draw is None:
        return None
    network, terms = roster.network, roster.cover
    return CoverRules(network.id, network.epoch_seconds, terms.round_seconds, terms.width)


def network_cover(roster: Roster) -> NetworkCover:
    """Return the cover of a network.

    Raises `Refusal` where its rules have none, it is cut into shards (nobody knows all its relays then), or
    has too few relays.
    """
    rules, draw = rules_by(roster), roster.cover_draw
    if rules is None or draw is None:
        raise Refusal("this network has no cover")
    if not roster.relays:
        raise Refusal("cover does not start: the network is cut into shards")
    return NetworkCover(rules, CoverLists.drawn(rules, draw.value, able_relays(roster, draw)), draw.quarter)


def able_relays(roster: Roster, draw: CoverDraw) -> frozenset[RelayId]:
    """Return the relays of a roster that may be on a list.

    They were listed for long enough, without a gap, when the value was drawn: who came later may have made
    his name for it.
    """
    if not (least := roster.cover.listed_days * EPOCHS_A_DAY):
        return frozenset(roster.relays)
    return frozenset(one.id for one in roster.relays.values() if draw.epoch - one.since >= least)
