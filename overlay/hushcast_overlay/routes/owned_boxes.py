"""Owned boxes: keeps a link to each host that has something for a route, and hands in what it brings.

The owner opens the links, at moments of its own, and each time hears first how its box stands.
"""

from __future__ import annotations

from functools import partial

import trio

from hushcast_overlay.connector import Connector
from hushcast_overlay.routes.arrivals import Arrivals
from hushcast_overlay.routes.box_remainders import BoxRemainders
from hushcast_overlay.routes.host_link import HostLink
from hushcast_overlay.routes.host_turns import HostTurns, watch
from hushcast_overlay.routes.left_trunks import LeftTrunks
from hushcast_overlay.routes.route import OverlayRoute, TreeInstallation
from hushcast_overlay.routes.route_box import RouteBox
from hushcast_overlay.routes.route_records import RouteRecords
from hushcast_overlay.routes.trees import Trees
from hushcast_overlay.shards.shards import Shards
from hushcast_protocol.base import ground_truth
from hushcast_protocol.base.backoff import Backoff
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.epochs import EPOCHS_A_DAY
from hushcast_protocol.base.errors import PeerError, Refusal
from hushcast_protocol.base.roster import Roster
from hushcast_protocol.base.wire import RelayId
from hushcast_protocol.content.messages import Message
from hushcast_protocol.overlay.box_frames import TopCopies
from hushcast_protocol.overlay.host_list import HostList
from hushcast_protocol.overlay.installations import HostRoot
from hushcast_protocol.overlay.profile import Profile
from hushcast_runtime.context import Context
from hushcast_runtime.logs import log
from hushcast_runtime.transports.base import TransportError


class OwnedBoxes:
    """The boxes that hosts keep for one daemon."""

    def __init__(
        self,
        profile: Profile,
        connector: Connector,
        shards: Shards,
        trees: Trees,
        arrivals: Arrivals,
        records: RouteRecords,
        context: Context,
    ) -> None:
        self._profile = profile
        self._connector = connector
        self._shards = shards
        self._trees = trees
        self._calendar = shards.calendar
        self._arrivals = arrivals
        self._records = records
        self._remainders = BoxRemainders(shards, records, context)
        self._trunks = LeftTrunks(shards, trees, records, context)
        self.turns = HostTurns(shards, trees, records, context, self.begin)
        """Which host of each is used."""
        self._env = context.env
        self._counters = context.counters
        self._tracer = context.tracer
        self._spawn = context.spawn
        self._kept: dict[bytes, RouteBox] = {}

    async def of_day(self, route: OverlayRoute, day: int) -> None:
        """See to the box that messages of a day come to; draw one, and its hosts, if there is none.

        It is on disk before anybody hears of it. Raises what `Shards.find` does, and `Refusal` where no
        relay is listed.
        """
        if (box := route.box) is not None and self._shards.is_cut(day) and not self._trees.are_planted(day):
            # To know a shard is to ask there each epoch, while the owner is there: only to draw a host.
            hosts = box.hosts.look((), day, self._env.sample, box.answers(day))
            if hosts.relays == box.hosts.relays and not hosts.is_over:
                await self.turns.use(route.wanted.name, box, route, hosts)
                self.begin(route.wanted.name, box, route)
                return
        trunk = (await route.wanted.tokens(day)).trunk if self._shards.is_cut(day) else b""  # takes a while
        roster = (await self._shards.find(day, trunk, route.copy)).current()
        roster_day = roster.epoch // EPOCHS_A_DAY
        if box is None:
            if not roster.relays:
                raise Refusal("no relay is listed that could be a host")
            hosts = HostList.drawn(roster.relays, roster_day, self._env.sample)
            box = route.end = RouteBox(Seed.draw(self._env.randomness), hosts)
            self._tracer.tell(ground_truth.Subscribed(route.topic, box.key))
        else:
            answers = box.answers(roster_day) if self._shards.is_cut(day) else None
            hosts = box.hosts.look(roster.relays, roster_day, self._env.sample, answers)
            await self.turns.use(route.wanted.name, box, route, hosts)
        await self._note_addresses(route.wanted.name, box, roster)
        self.begin(route.wanted.name, box, route)

    def begin(self, name: bytes, box: RouteBox, route: OverlayRoute | None, resumed: bool = False) -> None:
        """Attend to the hosts of a box; `route` is what it is for, unless that has ended."""
        self._kept[box.key] = box
        for relay in {*box.hosts.relays, *box.at}:
            if relay not in box.attended and (box.is_ended or self._has_to_do(box, route, relay)):
                box.attended.add(relay)
                delay = self._env.uniform(0.0, self._shards.manner.attach_within) if resumed else 0.0
                self._spawn(self._attend, name, box, route, relay, delay)

    async def hold(
        self,
        route: OverlayRoute,
        planned: TreeInstallation,
        *,
        task_status: trio.TaskStatus[bool] = trio.TASK_STATUS_IGNORED,
    ) -> bool:
        """Have a host hold what leads to a box by a tree; return whether it does.

        Reports started once it was asked to, or was before, or not, as there is no link to it: what it is
        asked for afterwards it does afterwards. Where the root is a listed relay there is nothing to hold.
        Raises `Refusal` where the host does not want to, `TransportError` where it did not answer.
        """
        box, root = route.box, planned.installation.root
        if not isinstance(root, HostRoot):
            task_status.started(True)
            return True
        assert box is not None
        known = box.host(root.relay)
        if (link := known.link) is None:
            task_status.started(False)
            return False
        hold = planned.installation.hold(self._profile, planned.former)
        if known.held < hold.day or known.due:
            known.held, known.due = max(known.held, hold.day), 0.0
            await self._records.keep_box(route.wanted.name, box)
        if known.elements.get(hold.lease) == hold.elements:
            task_status.started(True)
            return True
        try:
            refused = await link.hold(hold, partial(task_status.started, True))
        except TransportError:
            link.end()
            raise
        await self._check(route, box, link, refused)
        known.elements[hold.lease] = hold.elements
        if known.confirmed < hold.day:
            known.confirmed = hold.day
            await self._records.keep_box(route.wanted.name, box)
        await self.turns.use(route.wanted.name, box, route, box.hosts.answered(root.relay))
        self._trunks.begin(box, route, link)
        return True

    async def seek(self, route: OverlayRoute) -> None:
        """Have the host in use, if it is there, ask keepers for all that a box lacks. Raises as `hold`."""
        box, today = route.box, self._calendar.day(self._env.now())
        if box is None or (link := box.link(box.hosts.current)) is None:
            return
        known = box.host(link.host.id)
        if known.held < today or known.due:
            known.held, known.due = max(known.held, today), 0.0
            await self._records.keep_box(route.wanted.name, box)
        if link.sought is None or link.sought < today:
            await self._check(route, box, link, await self._trunks.leave(box, route, link))
            await self.turns.use(route.wanted.name, box, route, box.hosts.answered(link.host.id))
        self._trunks.begin(box, route, link)

    async def _check(self, route: OverlayRoute, box: RouteBox, link: HostLink, refused: str | None) -> None:
        """Note what a host answered; raise `Refusal` where it does not want to."""
        box.host(link.host.id).refuses = refused is not None
        if refused is not None:
            if refused == "stamp":
                link.end()  # over the next link it says which stamps it asks for now
            await self.turns.note_failure(route.wanted.name, box, route, link.host.id)
            raise Refusal(f"a host does not take what is for a box: {refused}")

    def link(self, root: object) -> HostLink | None:
        """Return the link to the host that is the root of an installation, if there is one."""
        if not isinstance(root, HostRoot) or (box := self._kept.get(root.box.public())) is None:
            return None
        return box.link(root.relay)

    def end(self, name: bytes, box: RouteBox) -> None:
        """Have the hosts of a box forget it; its record says already that it has ended."""
        box.is_ended = True
        self.begin(name, box, None)
        box.changed.tell()
        for relay, known in box.at.items():
            if known.link is not None:
                self._spawn(self._forget_at, name, box, relay, known.link)

    async def close_lapsed(self, route: OverlayRoute, wanted: list[int]) -> None:
        """End a box that no day needs, and in which nothing waits: `wanted` are those to be installed now.

        Whoever calls is certain of the time, and has forgotten the trees of days gone by.
        """
        box = route.box
        if box is None or wanted or route.towards(box.seed):
            return
        if any(known.held >= 0 for known in box.at.values()):
            return
        route.end = None
        box.is_ended = True
        await self._records.keep_box(route.wanted.name, box)
        self._tracer.tell(ground_truth.Unsubscribed(route.topic, box.key))
        self.end(route.wanted.name, box)

    async def _attend(
        self, name: bytes, box: RouteBox, route: OverlayRoute | None, relay: RelayId, delay: float
    ) -> None:
        """Keep a link to a host while the box has to do with it."""
        manner = self._shards.manner
        backoff = Backoff(manner.first_pause, manner.longest_pause, self._env.randomness)
        await trio.sleep(delay)
        while self._has_to_do(box, route, relay):
            await self._remainders.give_up(name, box, route, relay)
            if not self._is_wanted(box, route, relay):
                with trio.move_on_after(self._remainders.until_due(box.host(relay))):
                    await box.changed.wait()
                continue
            began = self._env.elapsed()
            await self._visit(name, box, route, relay)
            pause = backoff.next()
            if self._env.elapsed() - began > manner.longest_pause:
                backoff.reset()
                pause = self._env.uniform(
                    0.0, self._shards.manner.attach_within
                )  # others' links may have ended with this one
            with trio.move_on_after(pause if self._is_wanted(box, route, relay) else 0.0):
                await box.retry.wait()
        box.attended.discard(relay)
        if box.is_ended and not box.attended:
            self._kept.pop(box.key, None)
            await self._records.drop_box(name, box)

    def _has_to_do(self, box: RouteBox, route: OverlayRoute | None, relay: RelayId) -> bool:
        if self._is_wanted(box, route, relay):
            return True
        return not box.is_ended and (relay in box.hosts.relays or box.host(relay).held >= 0)

    async def _note_addresses(self, name: bytes, box: RouteBox, roster: Roster) -> None:
        """Keep where hosts are reached that a roster lists, before anybody hears of the box."""
        is_new = not box.at
        for relay in box.hosts.relays:
            known, listed = box.host(relay), roster.relays.get(relay)
            known.listed = listed
            if listed is not None and known.address != listed.address:
                known.address, is_new = listed.address, True
        if is_new:
            await self._records.keep_box(name, box)

    def _is_wanted(self, box: RouteBox, route: OverlayRoute | None, relay: RelayId) -> bool:
        """Tell whether there is to be a link: to hosts that are needed, or may hold what is to be fetched."""
        known = box.host(relay)
        if box.is_ended or route is None:
            return self._remainders.is_kept(known) and not known.has_forgotten
        return self._remainders.is_due(known) or self._is_needed(box, route, relay)

    def _is_needed(self, box: RouteBox, route: OverlayRoute, relay: RelayId) -> bool:
        """Tell whether a host is used, or to be, or trees lead there until relays are told of the other."""
        leads = any(planned.host == relay for planned in route.towards(box.seed))
        return leads or box.hosts.needs(relay, self._env.now(), self.turns.patience(box, route))

    async def _visit(self, name: bytes, box: RouteBox, route: OverlayRoute | None, relay: RelayId) -> None:
        """Open a link to a host, and take what it brings until the link ends."""
        known = box.host(relay)
        if (listed := self._shards.relay(relay)) is not None:
            known.address = listed.address
        today = self._calendar.day(self._env.now())
        try:
            if known.address is None:
                raise TransportError("no roster lists it")
            link = await HostLink.opened(box.seed, relay, known.address, self._connector, self._spawn)
            self._ask_ahead(box, route, relay, link)
            await link.hear()
        except (TransportError, PeerError) as error:
            log.info("a host was not reached", reason=str(error))
            known.link = None
            known.tried(today, has_answered=False)
            await self.turns.note_failure(name, box, route, relay)
            return
        known.link = link
        known.tried(today, has_answered=True)
        try:
            watch(box, route)
            await self._greet(name, box, route, relay, link)
            await link.serve(partial(self._take, box, route, relay), partial(self._note_copies, route))
        except (TransportError, PeerError) as error:
            log.info("the link to a host ended", reason=str(error))
        except Exception:  # the disk, perhaps: the messages come again
            self._counters.add("internal_errors")
            log.exception("a link to a host met an error of this program")
        finally:
            if known.link is link:
                known.link = None
            watch(box, route)
            await link.aclose()

    def _ask_ahead(self, box: RouteBox, route: OverlayRoute | None, relay: RelayId, link: HostLink) -> None:
        """Have a host that can have nothing of a box asked for all at once: how it stands is no news."""
        known = box.host(relay)
        if route is None or known.listed is None or not known.is_new or relay != box.hosts.current:
            return
        link.take_for(known.listed)
        known.link = link
        route.stirred.set()

    async def _greet(
        self, name: bytes, box: RouteBox, route: OverlayRoute | None, relay: RelayId, link: HostLink
    ) -> None:
        """Take notice of how a box stands."""
        known, standing = box.host(relay), link.standing
        known.elements = {
            lease: elements for lease, elements in known.elements.items() if lease in standing.leases
        }
        if box.is_ended or route is None:
            self._spawn(self._forget_at, name, box, relay, link)
            return
        await self._remainders.note_seen(name, box, route, relay)
        is_needed = partial(self._is_needed, box, route, relay)
        self._spawn(self._remainders.watch, name, box, route, link, is_needed)
        await self._remainders.note_standing(name, box, route, relay, standing)
        # One that refused is given another chance once the second has been used for it.
        if not known.refuses or box.hosts.in_use:
            await self.turns.use(name, box, route, box.hosts.answered(relay))
        if standing.leases or standing.sought is not None:
            self._trunks.begin(box, route, link)
        if relay != box.hosts.relays[0]:
            box.retry.tell()  # whether the first is still away decides which of both is used
        route.stirred.set()

    async def _take(
        self, box: RouteBox, route: OverlayRoute | None, host: RelayId, messages: list[Message]
    ) -> None:
        if route is not None and not box.is_ended:
            await self._arrivals.take(route, messages, host)

    def _note_copies(self, route: OverlayRoute | None, told: TopCopies) -> None:
        if route is None:
            return
        for copy in told.copies:
            route.coverage.came_by(copy.message, copy.relay)
        if not told.is_whole:
            route.coverage.lose_sight()

    async def _forget_at(self, name: bytes, box: RouteBox, relay: RelayId, link: HostLink) -> None:
        """Tell a host that a box is done with, and leave its link a moment for withdrawals."""
        try:
            await link.forget()
        except TransportError as error:
            log.info("a host did not hear that a box is done with", reason=str(error))
        else:
            box.host(relay).has_forgotten = True
            await self._records.keep_box(name, box)
            await trio.sleep(self._shards.manner.ended_within)
        link.end()
