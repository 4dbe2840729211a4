"""A daemon's cover, made of its parts: it begins where the network has cover, or not at all."""

from __future__ import annotations

from dataclasses import dataclass

from hushcast_overlay.connector import Connector
from hushcast_overlay.rosters import RosterKeeper
from hushcast_overlay.routes.cover.cover_carrier import CoverCarrier
from hushcast_overlay.routes.cover.cover_rounds import CoverRounds
from hushcast_overlay.routes.cover.covered_messages import CoveredMessages
from hushcast_overlay.routes.cover.covered_reader import CoveredReader
from hushcast_overlay.routes.cover.covered_routes import CoveredRoutes
from hushcast_overlay.routes.cover.kept_chain import KeptChain
from hushcast_overlay.routes.cover.kept_lanes import KeptLanes
from hushcast_overlay.routes.cover.parcel_letters import ParcelLetters
from hushcast_overlay.routes.cover.porter_link import PorterLink
from hushcast_overlay.routes.cover.presence_records import PresenceRecords
from hushcast_overlay.routes.route_records import RouteRecords
from hushcast_overlay.routes.trees import Trees
from hushcast_protocol.base.errors import Refusal, UsageError
from hushcast_protocol.cover.cover_rules import CoverRules
from hushcast_protocol.cover.hold_rule import HoldRule
from hushcast_protocol.cover.network_cover import network_cover
from hushcast_protocol.overlay.profile import Profile
from hushcast_runtime.context import Context
from hushcast_runtime.logs import log


@dataclass(frozen=True)
class CoverWishes:
    """What whoever runs a daemon wants of its cover."""

    hold: HoldRule
    reads: bool
    """Whether it may subscribe; it has lanes either way."""
    profile: Profile


async def begin_cover(
    wishes: CoverWishes, rosters: RosterKeeper, trees: Trees, connector: Connector, context: Context
) -> tuple[CoverCarrier, CoverRounds]:
    """Begin a daemon's rounds once there is a roster; raise `UsageError` where its network has no cover."""
    log.info("cover is new, measured in a lab and tried by nobody else: docs/cover.md says what is open")
    rules, calendar = await _rules(rosters, context), rosters.calendar
    chain, presence = (
        KeptChain(context),
        PresenceRecords(rules, wishes.hold, wishes.reads, calendar, context),
    )
    messages, lanes = CoveredMessages(rules, calendar, presence, context), KeptLanes(rules, context)
    for kept in (chain, presence, messages, lanes):
        await kept.load()
    letters = ParcelLetters(rules, rosters, context.env)
    records = RouteRecords(context.store)
    routes = CoveredRoutes(wishes.profile, trees, lanes, messages, letters, records, context)
    reader = CoveredReader(rules, lanes, routes, messages, letters, context)
    rounds = CoverRounds(rules, chain, messages, reader, PorterLink(connector, context), rosters, context)
    context.spawn(rounds.run)
    return CoverCarrier(rosters, messages, routes if wishes.reads else None), rounds


async def _rules(rosters: RosterKeeper, context: Context) -> CoverRules:
    """Wait for a roster, and return the rules by it; one of before is not what ends a start."""
    await rosters.fresh()
    while True:
        newest = rosters.newest
        if newest is not None:
            try:
                return network_cover(newest).rules
            except Refusal as refusal:
                if newest.epoch >= rosters.calendar.epoch(context.env.now()):
                    raise UsageError(f"cover.on: {refusal}; nothing was sent") from None
        await rosters.changed()
