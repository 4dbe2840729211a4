"""A relay's parts, made and wired: each uses those made before it, or by a function one that comes later."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import NamedTuple

from hushcast_overlay.connector import Connector
from hushcast_overlay.keepers.candidate_lists import CandidateLists
from hushcast_overlay.keepers.keeper_questions import KeeperQuestions
from hushcast_overlay.network_covers import NetworkCovers
from hushcast_overlay.relay.admission_control import AdmissionControl
from hushcast_overlay.relay.boxes.box_children import BoxChildren
from hushcast_overlay.relay.boxes.box_lanes import BoxLanes
from hushcast_overlay.relay.boxes.box_links import BoxLinks
from hushcast_overlay.relay.boxes.host_word import HostWord
from hushcast_overlay.relay.boxes.kept_boxes import KeptBoxes
from hushcast_overlay.relay.boxes.owners import OwnerRequests, Owners
from hushcast_overlay.relay.boxes.sought_trunks import SoughtTrunks
from hushcast_overlay.relay.cover.cover_means import CoverMeans, DropMessage, HoldBox
from hushcast_overlay.relay.cover.cover_role import CoverRole
from hushcast_overlay.relay.cover.cover_sends import CoverSends
from hushcast_overlay.relay.detours import Detours
from hushcast_overlay.relay.drops import Drops
from hushcast_overlay.relay.forwarding import Forwarding, TakeListed
from hushcast_overlay.relay.hop_places import HopPlaces
from hushcast_overlay.relay.identity import Identity
from hushcast_overlay.relay.incoming_connections import IncomingConnections
from hushcast_overlay.relay.keepers.hand_ins import HandIns
from hushcast_overlay.relay.keepers.inquiries import Inquiries
from hushcast_overlay.relay.keepers.kept_messages import KeptMessages
from hushcast_overlay.relay.kept_links import KeptLinks
from hushcast_overlay.relay.lease_store import LeaseStore
from hushcast_overlay.relay.missed_trees import MissedTrees
from hushcast_overlay.relay.moved_messages import MovedMessages
from hushcast_overlay.relay.next_hops import NextHops
from hushcast_overlay.relay.own_relay import OwnRelay
from hushcast_overlay.relay.parcels import Parcels
from hushcast_overlay.relay.peers import Peers
from hushcast_overlay.relay.placement import SpoolPlacement
from hushcast_overlay.relay.strangers import Strangers
from hushcast_overlay.relay.times_there import TimesThere
from hushcast_overlay.rosters import RosterKeeper
from hushcast_overlay.shards.shards import Shards
from hushcast_protocol.base.wire import RelayId
from hushcast_protocol.content.messages import Message
from hushcast_protocol.overlay.forwarding import RecentIds, Router
from hushcast_protocol.overlay.frames import ParcelAnswer
from hushcast_protocol.overlay.hops import is_box
from hushcast_protocol.overlay.leases import Lease
from hushcast_protocol.overlay.profile import Profile
from hushcast_protocol.overlay.trail import LABEL_SIZE
from hushcast_runtime.context import Context
from hushcast_runtime.storage.spool import Spool


class OwnDaemon(NamedTuple):
    """What a relay needs of the daemon that it is a role of."""

    rosters: RosterKeeper
    take_listed: TakeListed
    drop: DropMessage


@dataclass(frozen=True, slots=True)
class RelayRole:
    """One relay's part in the overlay."""

    id: RelayId
    leases: LeaseStore
    peers: Peers
    forwarding: Forwarding
    drops: Drops
    parcels: Parcels
    admission: AdmissionControl
    incoming: IncomingConnections
    kept_links: KeptLinks
    candidates: CandidateLists
    there: TimesThere
    kept: KeptMessages
    hand_ins: HandIns
    boxes: KeptBoxes
    box_links: BoxLinks
    host_word: HostWord
    moved: MovedMessages
    sought: SoughtTrunks
    inquiries: Inquiries
    cover: CoverRole

    async def load(self) -> None:
        """Read back leases, and take up the messages that a restart interrupted."""
        await self.leases.load()
        await self.parcels.load()
        await self.there.load()
        await self.kept.load()
        await self.sought.load()
        await self.forwarding.load()
        self.hand_ins.resume()
        await self.boxes.load()
        self.forwarding.resume()  # once all is counted: what is sent may be acknowledged at once
        await self.drops.load()
        self.moved.resume()

    async def begin_epoch(self, is_certain: bool) -> None:
        """Take a fresh trail label, and forget what has lapsed where the time is certain."""
        self.forwarding.begin_epoch()
        self.inquiries.look()
        if is_certain:
            self.there.begin_epoch()
            await self.leases.lapse()
            await self.parcels.lapse()
            await self.forwarding.lapse()
            await self.boxes.lapse()
            await self.kept.lapse()
            self.there.lapse()


def make_relay(
    identity: Identity,
    profile: Profile,
    shards: Shards,
    candidates: CandidateLists,
    connector: Connector,
    daemon: OwnDaemon,
    context: Context,
) -> RelayRole:
    """Make the parts of a relay, and wire them."""
    env, counters, relay = context.env, context.counters, identity.seed.public()
    spool = Spool(context.store)
    leases = LeaseStore(identity, shards.calendar, context)
    router = Router(relay, profile, leases.book, RecentIds(env.elapsed()), env.randomness(LABEL_SIZE))
    detours = Detours(relay, shards, leases, router, spool, env, counters) if profile.detours else None

    # No coroutines: the frame of one would keep what it was given for as long as it waits.
    def take_forwards(messages: list[Message], previous: bytes) -> Awaitable[list[int]]:
        return forwarding.take(messages, previous)

    def take_parcel(sealed: bytes, previous: bytes) -> Awaitable[ParcelAnswer]:
        return parcels.take(sealed, previous)

    def take_for_boxes(messages: list[Message], child: bytes) -> Awaitable[list[int]]:
        return forwarding.take(messages, child, only=is_box)

    there = TimesThere(shards.calendar, context)
    kept = KeptMessages(relay, candidates, shards.calendar, there, context)
    places, takes = HopPlaces(leases, shards), (take_forwards, kept.take, take_parcel)
    own = OwnRelay(places, *takes, lambda frame, relay: cover.take(frame, relay))
    peers = Peers(identity.seed, connector, spool, detours, own, context)
    placing = SpoolPlacement(spool, detours, router, env, counters)
    sought = SoughtTrunks(candidates, shards.calendar, context)
    boxes = KeptBoxes(leases, spool, sought, BoxLanes(spool, context), context)
    host_word, children = HostWord(identity, shards), BoxChildren(leases, take_for_boxes, context)
    box_links = BoxLinks(boxes, host_word, spool, context)
    next_hops = NextHops(peers, boxes, box_links)
    forwarding = Forwarding(router, spool, placing, next_hops, shards.calendar, daemon.take_listed, context)
    hand_ins = HandIns(relay, candidates, kept, spool, next_hops, context)
    questions = KeeperQuestions(connector, context, relay, kept.answer)
    inquiries = Inquiries(sought, candidates, questions, spool, next_hops, hand_ins, context)
    drops = Drops(profile, forwarding, hand_ins, spool, MissedTrees(relay, shards, there), context)
    kept_links = KeptLinks(leases, peers, shards.calendar, context)
    moved = MovedMessages(leases, router, spool, next_hops, context)
    lease_came, box_came = _hearers(kept_links, drops, moved)
    parcels = Parcels(identity, shards, leases, peers, lease_came, lambda *asked: cover.hold(*asked), context)

    def fullness() -> float:
        return max(one.fullness() for one in (leases.book, parcels, boxes, cover))

    admission = AdmissionControl(relay, shards, env, fullness)
    hold_box = boxes.lanes, _hold_box(boxes, box_came)
    cover = _cover(identity, admission, peers, connector, shards, daemon, hold_box, context)
    strangers = Strangers(admission, drops, parcels, shards.serving, kept, cover, context)
    requests = OwnerRequests(relay, shards, boxes, admission, box_came, inquiries.sought, context)
    owners = Owners(boxes, box_links, requests, strangers, context)
    incoming = IncomingConnections(identity.seed, connector, shards, peers, strangers, owners, children)
    own_parts = (relay, leases, peers, forwarding, drops, parcels, admission)
    around = (incoming, kept_links, candidates, there, kept, hand_ins)
    return RelayRole(*own_parts, *around, boxes, box_links, host_word, moved, sought, inquiries, cover)


def _cover(
    identity: Identity,
    admission: AdmissionControl,
    peers: Peers,
    connector: Connector,
    shards: Shards,
    daemon: OwnDaemon,
    hold_box: tuple[BoxLanes, HoldBox],
    context: Context,
) -> CoverRole:
    """Return a relay's part in cover."""
    sends, covers = CoverSends(peers, context), NetworkCovers(daemon.rosters)
    means = CoverMeans(identity, covers, admission, sends, connector, shards, daemon.drop, *hold_box, context)
    return CoverRole(means, daemon.rosters)


def _hold_box(boxes: KeptBoxes, box_came: Callable[[Lease], None]) -> HoldBox:
    """Return what makes boxes whose owners open no links."""

    async def hold_box(box: bytes, lease: Lease | None, paid: bool) -> None:
        if (held := await boxes.hold(box, lease, paid)) is not None:
            box_came(held)

    return hold_box


def _hearers(
    kept_links: KeptLinks, drops: Drops, moved: MovedMessages
) -> tuple[Callable[[Lease], None], Callable[[Lease], None]]:
    """Return who hears of leases that parcels have installed, and of those for boxes."""

    def lease_came(lease: Lease) -> None:
        kept_links.prepare(lease.hop)
        box_came(lease)

    def box_came(lease: Lease) -> None:
        drops.take_up(lease)
        moved.took(lease)

    return lease_came, box_came
