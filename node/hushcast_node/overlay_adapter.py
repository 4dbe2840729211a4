"""The overlay's adapter in a daemon: rosters and the carrier. What serves others is `RelayAdapter`'s."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hushcast_directory.client.pinned_directories import open_source
from hushcast_local.topic_keys import Derive, TopicKeys
from hushcast_node.carrier_adapter import AdapterContext
from hushcast_node.carrier_parts import OverlayParts
from hushcast_overlay.carrier import OverlayCarrier
from hushcast_overlay.connector import Connector
from hushcast_overlay.cut_rosters import count
from hushcast_overlay.keepers.candidate_lists import CandidateLists
from hushcast_overlay.keepers.keeper_questions import KeeperQuestions
from hushcast_overlay.relay.name_work import NameWorkSearch
from hushcast_overlay.relay.registration import Registration
from hushcast_overlay.rosters import RosterKeeper
from hushcast_overlay.routes.arrivals import Arrivals
from hushcast_overlay.routes.audits import Audits
from hushcast_overlay.routes.dropper import Dropper
from hushcast_overlay.routes.installer import Installer
from hushcast_overlay.routes.kept_looks import KeptLooks
from hushcast_overlay.routes.owned_boxes import OwnedBoxes
from hushcast_overlay.routes.probes import Probes
from hushcast_overlay.routes.ready_connections import ReadyConnections
from hushcast_overlay.routes.route_records import RouteRecords
from hushcast_overlay.routes.routes import OverlayRoutes
from hushcast_overlay.routes.trees import Trees
from hushcast_overlay.routes.upkeep import TreeUpkeep
from hushcast_overlay.routes.withdrawals import LeaseWithdrawals
from hushcast_overlay.shards.shard_fetcher import ShardFetcher
from hushcast_overlay.shards.shards import Shards
from hushcast_protocol.base import observations
from hushcast_protocol.base.findings import Finding
from hushcast_protocol.base.roster import Roster
from hushcast_protocol.base.sharding import Sharding
from hushcast_protocol.base.wire import RelayId
from hushcast_protocol.overlay.profile import Root
from hushcast_protocol.overlay.ready_slots import NONE_READY
from hushcast_protocol.shards.assignment import shard_of_relay
from hushcast_runtime.context import Context
from hushcast_runtime.environment import Environment
from hushcast_runtime.other_wires import OtherWires
from hushcast_runtime.transports.base import Listener
from hushcast_runtime.wording import counted

if TYPE_CHECKING:
    from hushcast_node.relay_role import RelayRole
    from hushcast_overlay.routes.cover.cover_carrier import CoverCarrier
    from hushcast_overlay.routes.cover.cover_rounds import CoverRounds
    from hushcast_protocol.cover.hold_rule import HoldRule

SILENT_FOR = 2  # epochs without any answer: a directory that was restarted misses one


class OverlayAdapter:
    """One daemon's place in the overlay; implements `CarrierAdapter`."""

    def __init__(self, parts: OverlayParts, around: AdapterContext) -> None:
        self._parts = parts
        self._around = around
        self._env = around.env
        network, store, counters = parts.network, around.store, around.counters
        self.source = open_source(
            self._env, around.transport, store, network, parts.directories, counters, parts.checks
        )
        """Where rosters come from."""
        self.rosters = RosterKeeper(network, self.source, self._env, store, counters, around.clock)
        self._connector = Connector(around.transport, self._env, self.rosters, self._is_listed, counters)
        fetching = ShardFetcher(network, self._connector, self.source, self._env, counters, parts.reading)
        self.shards = Shards(self.relay_id, self.rosters, self.source, fetching, self._env, store, counters)
        """Which relays serve which topics."""
        self._registration = Registration()
        self._routes: OverlayRoutes | None = None
        self._rounds: CoverRounds | None = None
        self.relay: RelayRole | None = None
        self.listener: Listener | None = None
        """A relay's address."""

    @property
    def routes(self) -> OverlayRoutes:
        """What the overlay keeps routed for this daemon; there are some once `start` has returned."""
        assert self._routes is not None
        return self._routes

    @property
    def relay_id(self) -> RelayId | None:
        """The name that the roster lists a relay by; a client has none."""
        return self._parts.identity.seed.public() if self._parts.identity else None

    @property
    def other_wires(self) -> OtherWires:
        """Whom it met and cannot talk to."""
        return self._connector.other_wires

    @property
    def role(self) -> str:
        """`relay` or `client`."""
        return "relay" if self._parts.identity else "client"

    @property
    def profile_name(self) -> str:
        """Which profile is in use."""
        return self._parts.profile.name

    @property
    def ready(self) -> bool:
        """Tell whether it holds a roster and, as a relay, is registered."""
        registered = self.relay is None or self._registration.done
        return self.rosters.newest is not None and registered

    @property
    def cut_off(self) -> str | None:
        """Why nothing reaches the network from here, by what worked last; `None` where something does."""
        contact, silence = self._connector.contact, self.rosters.silence
        if self.rosters.newest is None or (self.relay is not None and self.relay.peers.open_links()):
            return None
        if contact.is_lost:
            return f"no relay answers: the last {contact.failed} attempts failed"
        epochs = int(min(silence, contact.age) / self.rosters.calendar.epoch_seconds)
        if epochs >= SILENT_FOR:
            return f"neither the directory nor a relay has answered for {counted(epochs, 'epoch')}"
        return None

    def topic_keys(self, env: Environment, derive: Derive) -> TopicKeys:
        """Return what derives the keys of topics."""
        return TopicKeys(self._parts.network.id, env, derive)

    async def start(self, context: Context) -> OverlayCarrier | CoverCarrier:
        """Make the carrier; start a relay, and what keeps rosters fresh."""
        await self.rosters.load()
        if self._parts.cover is not None:
            return await self._start_covered(self._parts.cover, context)
        await self.shards.load()
        candidates = CandidateLists(self.shards, self.rosters, context)
        await candidates.load()
        carrier = self._carrier(candidates, context)
        await self._serve_others(candidates, context)
        context.spawn(self.rosters.run, context)
        self.shards.begin(context)
        if context.tracer.is_on:  # it looks through each roster
            context.spawn(self._trace_rosters, context)
        return carrier

    async def _start_covered(self, hold: HoldRule, context: Context) -> CoverCarrier:
        """Fetch rosters, at moments that follow from nothing, and begin rounds; there is nothing else."""
        # A daemon without cover runs no line of it.
        from hushcast_overlay.routes.cover.daemon_cover import CoverWishes, begin_cover

        context.spawn(self.rosters.run, context)
        profile = self._parts.profile
        wishes = CoverWishes(hold, self._parts.reads_under_cover, profile)
        trees = Trees(None, profile, self.shards, context.env, self._parts.trees, lambda _: False)
        carrier, self._rounds = await begin_cover(wishes, self.rosters, trees, self._connector, context)
        return carrier

    def _is_listed(self, relay: RelayId) -> bool:
        return self.shards.relay(relay) is not None

    def _carrier(self, candidates: CandidateLists, context: Context) -> OverlayCarrier:
        profile, shards, env = self._parts.profile, self.shards, context.env
        records = RouteRecords(context.store)
        connector = self._connector
        installer = Installer(connector, env)
        rule = self._parts.ready if profile.root is not Root.LISTED else NONE_READY

        def ready(messages: float) -> ReadyConnections:
            """Return those of a stream of which all know that it has so many messages a second."""
            return ReadyConnections(rule.beside(messages * profile.origins), connector, shards, context)

        published = ready(0.0)
        context.spawn(published.run)
        dropper = Dropper(profile, shards, connector, env, published)
        trees = Trees(self.relay_id, profile, shards, env, self._parts.trees, candidates.is_kept)
        arrivals = Arrivals(shards.calendar, context)
        boxes = OwnedBoxes(profile, connector, shards, trees, arrivals, records, context)
        self._routes = OverlayRoutes(
            self.relay_id,
            profile,
            boxes,
            TreeUpkeep(profile, shards, trees, installer, boxes, records, context),
            LeaseWithdrawals(installer, boxes, records, shards, context),
            records,
            context,
        )
        routes, questions = self._routes, KeeperQuestions(connector, context)
        audits = Audits(routes, boxes, shards, candidates, questions, context)

        self.rosters.once(candidates.are_needed, candidates.begin)
        self.rosters.once(candidates.are_needed, audits.plan)
        is_relay, is_listed = self.relay_id is not None, profile.root is Root.LISTED
        looks = KeptLooks(candidates, dropper, questions, shards, context)
        hides_relay = is_relay and not is_listed
        probes = Probes(dropper, ready, looks, shards, context, hides_relay, routes)
        can_subscribe = is_relay or not is_listed
        return OverlayCarrier(shards, dropper, self._routes, probes, looks, can_subscribe, connector.contact)

    async def _serve_others(self, candidates: CandidateLists, context: Context) -> None:
        """A client serves nobody."""

    async def _trace_rosters(self, context: Context) -> None:
        while True:
            await self.rosters.changed()
            if (newest := self.rosters.newest) is not None:
                sharding = self.shards.sharding(self._day_of(newest))
                if sharding is not None:  # whom it lists is known once the shard's leaf came
                    await self._env.sleep_until(self.rosters.calendar.epoch_start(newest.epoch))
                context.tracer.observe(self._observed(newest, sharding))

    def _observed(self, roster: Roster, sharding: Sharding | None) -> observations.Roster:
        """Return how many a roster lists; the first of them, or of each shard, notes whom, too."""
        if self.relay is None:
            return observations.Roster(count(roster), None)
        near = None if sharding is None else self.shards.own(self._day_of(roster))
        listing = near.newest if near is not None else None
        relays = (roster if listing is None else listing).relays
        if self.relay.id != min(relays, default=None):
            return observations.Roster(count(roster), None)
        shard = None if sharding is None else self._shard_in(sharding)
        return observations.Roster(count(roster), sorted(relays), shard)

    @property
    def cover(self) -> dict[str, Any] | None:
        """How letters go; `None` without cover."""
        if self._rounds is None:
            return None
        return self._rounds.describe() | {"reads": self._parts.reads_under_cover}

    def examine_cover(self) -> list[Finding]:
        """Warn who reads under cover with a daemon that is not always on."""
        return [] if self._rounds is None else self._rounds.examine()

    def waits_for(self) -> str:
        """Say what is missing until it is ready."""
        if self.rosters.newest is None:
            return "waiting for a roster from the directory"
        return "waiting for the directory to reach the onion service"

    @property
    def registration_problem(self) -> str | None:
        """Why a relay's last descriptor was not taken, in the directory's words; `None`: it was."""
        return self._registration.problem

    @property
    def search(self) -> NameWorkSearch | None:
        """The search for a relay's work, if one goes on."""
        working = self._registration.working
        return None if working is None else working.search

    def describe(self) -> str:
        """Say how many relays the roster lists, or its shards."""
        newest = self.rosters.newest
        if newest is None:
            return "0 relays in the roster"
        listed = counted(count(newest), "relay")
        sharding = self.shards.sharding(self._day_of(newest))
        return f"{listed} in {2**sharding.bits} shards" if sharding else f"{listed} in the roster"

    def status(self) -> dict[str, Any]:
        """Describe roster and relay."""
        relay = self.relay
        return {
            "name": relay.id.hex() if relay else None,
            "address": self.listener.address if self.listener else None,
            "roster": self._describe_roster(),
            "directories": self.source.reached()._asdict(),
            "wire": self._describe_wire(),
            "other_wire": self.other_wires.describe(),
            "registration": self._registration.problem,
            "links": relay.peers.open_links() if relay else 0,
            "difficulty": self.shards.least_difficulty(relay.id) if relay else 0,
            "leases": len(relay.leases.book) if relay else 0,
            "cover": self.cover,
        }

    def _describe_wire(self) -> dict[str, Any] | None:
        wire = self.rosters.wire
        return None if wire is None else wire.describe(self.rosters.calendar)

    def _describe_roster(self) -> dict[str, int] | None:
        newest = self.rosters.newest
        if newest is None:
            return None
        described = {"epoch": newest.epoch, "relays": count(newest), "held": self.rosters.held}
        day = self._day_of(newest)
        if (sharding := self.shards.sharding(day)) is not None:
            described["shards"] = 2**sharding.bits
            if self.relay is not None and self.shards.is_seated(self.relay.id, day):
                described["shard"] = self._shard_in(sharding)
        return described

    def _shard_in(self, sharding: Sharding) -> int:
        assert self.relay is not None
        return shard_of_relay(sharding.beacon, self.relay.id, sharding.bits)

    def _day_of(self, roster: Roster) -> int:
        calendar = self.rosters.calendar
        return calendar.day(calendar.epoch_start(roster.epoch))
