"""An attachment: one daemon at one edge broker, under a key of its own: what it asks there, what comes."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

import trio

from hushcast_brokers.client.attachment_records import (
    AttachedSubscription,
    AttachmentRecord,
    AttachmentRecords,
)
from hushcast_brokers.client.client_model import ClientModel
from hushcast_brokers.client.community.membership import Membership
from hushcast_brokers.held_tree import HeldTree
from hushcast_brokers.tree_request import BrokerContact
from hushcast_brokers.upstream import Parent, Upstream
from hushcast_protocol.base import ground_truth
from hushcast_protocol.base.crypto.proof_of_work import mint
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.errors import HushcastError
from hushcast_protocol.base.wire import PublicKey, Wire
from hushcast_protocol.brokers.filter_routes import NOTHING, table_digest
from hushcast_protocol.brokers.frames import (
    AskCharters,
    BrokerVerdict,
    Communities,
    ExposureReport,
    Join,
    NewCharter,
    ParentHello,
    Subscribe,
    Unsubscribe,
)
from hushcast_protocol.brokers.network import BrokersNetwork
from hushcast_protocol.content.messages import Message
from hushcast_runtime.carriers.contact import Contact
from hushcast_runtime.context import Context
from hushcast_runtime.logs import log
from hushcast_runtime.transports.base import Transport, TransportError

TRIED_AGAIN_AFTER = 60.0  # seconds after which a request that was refused is made again
AFTER_TREE = 5.0  # seconds after which it is where one end held another tree, and is told the newer one
LEFT_WITHIN = 60.0  # seconds for which messages are taken from one that is left because another is pinned


@dataclass(frozen=True)
class ClientParts:
    """What the attachments of one daemon share."""

    network: BrokersNetwork
    root: BrokerContact
    tree: HeldTree
    transport: Transport
    records: AttachmentRecords
    context: Context
    reading: ClientModel
    root_contact: Contact
    """What became of this daemon's last attempts at the root."""
    pinned: PublicKey | None = None
    """The one edge broker that the configuration allows, if it does not leave the choice to chance."""
    membership: Membership | None = None
    """In a network of communities."""

    def root_now(self) -> BrokerContact:
        """Return the root where the newest tree says that it is."""
        if (tree := self.tree.newest) is None:
            return self.root
        wire = self.tree.wire(self.context.env.now()).now
        return BrokerContact(self.root.key, tree.brokers[self.root.key].address, wire)


class Attachment:
    """One of them; implements `UpstreamOwner`."""

    def __init__(
        self,
        parts: ClientParts,
        kept: AttachmentRecord,
        take: Callable[[list[Message]], Awaitable[None]],
        changed: Callable[[Attachment], None],
        refused: Callable[[AttachedSubscription, BrokerVerdict], bool],
        accepted: Callable[[AttachedSubscription], None],
    ) -> None:
        """`take` is durable on return; `changed` hears that something stands otherwise than before.

        `accepted` hears what is routed from now on.

        `refused` returns whether what was refused is to be asked no more.
        """
        self.kept = kept
        self.scope = trio.CancelScope()
        self.turned_away: BrokerVerdict | None = None
        """Why the edge broker does not serve this daemon, if it does not."""
        self._parts = parts
        self._env = parts.context.env
        self._take = take
        self._changed = changed
        self._refused = refused
        self._accepted = accepted
        self._upstream = Upstream(parts.network, parts.tree, self, parts.transport, parts.context)
        self._least_k = 1
        self._looks = trio.Event()
        self._is_left = trio.Event()
        if kept.left_at is not None:
            self._is_left.set()
        # Of a clock that stands while the machine sleeps: only then is it the edge broker that was away.
        self._reached_at = trio.current_time()
        self._opened_at = math.inf

    @property
    def is_reached(self) -> bool:
        """Tell whether the edge broker is there."""
        return self._upstream.is_open

    @property
    def reached_for(self) -> float:
        """Seconds for which the edge broker has been there; 0 while it is not."""
        return max(0.0, trio.current_time() - self._opened_at) if self.is_reached else 0.0

    @property
    def is_needed(self) -> bool:
        """Tell whether there is anything to be had or said."""
        return bool(self.kept.asked)

    @property
    def away_for(self) -> float:
        """Seconds since the edge broker was last reached, or nothing was to be had there."""
        if self.is_reached or not self.is_needed:
            self._reached_at = trio.current_time()
        return trio.current_time() - self._reached_at

    @property
    def cut_off(self) -> str | None:
        """Why nothing comes from the edge broker, by what worked last; `None`: something does, or may."""
        contact = self._upstream.contact
        is_wanted = any(not one.is_ending for one in self.kept.asked.values())
        if self.is_reached or not is_wanted or not contact.is_lost:
            return None
        return f"the edge broker does not serve this daemon: the last {contact.failed} attempts failed"

    def asked_for(self, route: bytes) -> list[AttachedSubscription]:
        """Return what is asked here for an interest."""
        return [one for one in self.kept.asked.values() if one.route == route]

    def look(self) -> None:
        """See to it that what is to be asked is asked now."""
        self._looks.set()
        self._upstream.look()

    async def run(self, pause: float) -> None:
        """Keep attached, from `pause` seconds on, while anything is asked there; until cancelled."""
        with self.scope:
            await trio.sleep(pause)
            self._reached_at = trio.current_time()
            await self._upstream.run()

    def parent(self) -> Parent | None:
        """Return the edge broker, while anything is asked there, unless another one has to be used."""
        if self.kept.left_at is None and self._parts.pinned not in (None, self.kept.edge):
            return None
        tree = self._parts.tree.newest
        broker = tree.brokers.get(self.kept.edge) if tree is not None else None
        if broker is None or broker.role != "edge" or not self.is_needed:
            return None
        return Parent(BrokerContact(broker.key, broker.address), self.kept.seed)

    def others(self) -> Sequence[BrokerContact]:
        """Return the root, while the edge broker is needed and not reached."""
        return (self._parts.root_now(),) if self.is_needed else ()

    async def opened(self, standing: ParentHello) -> None:
        """Ask for what the edge broker does not have, and go on doing so until the link ends."""
        self._opened_at = trio.current_time()
        self._parts.context.tracer.tell(ground_truth.Attached(self.kept.key))
        asked = self.kept.asked.values()
        self._least_k = standing.k
        for one in asked:
            one.least_k = standing.k
            if one.k == 1:
                one.is_shown = None  # nobody asks any more: it was said for another minimum
        if standing.digest != table_digest(one.entry for one in asked if one.is_accepted):
            for one in asked:
                one.doubt()
        if standing.digest == NOTHING:
            await self._join(standing.difficulty)
        self.turned_away = None
        self._changed(self)
        await self._keep_asking()

    async def linked(self) -> None:
        """Ask for newer charters, in a network of communities."""
        if (membership := self._parts.membership) is not None:
            self._upstream.say(AskCharters(membership.charters.known))

    async def take(self, messages: list[Message]) -> None:
        """Hand in what came; durable on return. What is not taken comes again over another link."""
        try:
            await self._take(messages)
        except HushcastError as error:  # the disk, perhaps
            log.warning("messages were not taken", reason=str(error))
        except Exception:
            log.exception("messages met an error of this program")
        else:
            return
        self._parts.context.counters.add("internal_errors")
        raise TransportError("messages were not taken")

    def exposed(self, exposed: ExposureReport) -> None:
        """Note how a subscription stands."""
        if (one := self.kept.asked.get(exposed.name)) is not None:
            one.is_shown = exposed.is_shown
            self._changed(self)

    def charters(self, frame: Communities | NewCharter) -> None:
        """Hear of communities."""
        if self._parts.membership is not None:
            self._parts.membership.heard(frame)

    def leave(self) -> None:
        """Take what comes by the edge broker while the day lasts, and have it forget this daemon then."""
        self._is_left.set()

    async def _keep_asking(self) -> None:
        busy: set[bytes] = set()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._finish)
            while True:
                self._looks = trio.Event()
                for one in self._unsettled():
                    if one.name not in busy:
                        busy.add(one.name)
                        nursery.start_soon(self._ask, one, busy)
                await self._looks.wait()

    def _unsettled(self) -> list[AttachedSubscription]:
        return [one for one in self.kept.asked.values() if one.is_ending or not one.is_accepted]

    async def _join(self, difficulty: int) -> None:
        """Become a client of an edge broker that does not know this daemon; pay if it wants work for it."""
        stamp = None
        if difficulty:
            epoch = self._parts.network.calendar.epoch(self._env.now())
            us, edge = self.kept.key, self.kept.edge
            stamp = await self._env.compute(mint, edge, epoch, us, difficulty, self._env.randomness)
        verdict = await self._upstream.ask(lambda serial: Join(serial, stamp))
        if verdict == "stamp":
            raise TransportError("the edge broker asks for more work than it said before")
        if verdict != "accepted":
            self.turned_away = verdict
            self._changed(self)
            await trio.sleep(TRIED_AGAIN_AFTER)
            raise TransportError("the edge broker does not serve this daemon")

    async def _ask(self, one: AttachedSubscription, busy: set[bytes]) -> None:
        """Make one request, and note what became of it."""
        is_ending, item = one.is_ending, one.item
        one.least_k = self._least_k

        def request(serial: int) -> Wire:
            if is_ending:
                return Unsubscribe(serial, one.name)
            return Subscribe(serial, one.name, item, one.terms)

        verdict = await self._upstream.ask(request)
        if verdict == "unknown":
            raise TransportError("the edge broker has forgotten this daemon")
        if self.kept.asked.get(one.name) is not one:
            pass  # its day has lapsed meanwhile, and nobody knows of it any more
        elif verdict == "accepted" and not is_ending:
            one.is_accepted = one.item is item  # or another is to be asked for by now
            self._parts.records.keep_soon(self.kept, one)
            self._accepted(one)
        elif verdict == "accepted":
            self.forget(one)
        elif not is_ending and self._refused(one, verdict):
            one.ending.set()  # it is held there, where it is further up that there was no room
            self._parts.records.keep_soon(self.kept, one)
        elif is_ending:
            await trio.sleep(TRIED_AGAIN_AFTER)
        else:
            with trio.move_on_after(AFTER_TREE if verdict == "tree" else TRIED_AGAIN_AFTER):
                await one.ending.wait()
        busy.discard(one.name)
        self._looks.set()
        self._changed(self)

    def forget(self, one: AttachedSubscription) -> None:
        """Know nothing of a request any more, nor, with the last one, the key that it was made under."""
        del self.kept.asked[one.name]
        self._parts.records.forget_asked(self.kept, one)
        one.gone.set()
        if not self.kept.asked and self._parts.pinned is None and self.kept.left_at is None:
            self._parts.records.renew(self.kept, Seed.draw(self._env.randomness))
            self._upstream.look()

    async def _finish(self) -> None:
        """Once the edge broker is left, take what may still come until its day is over; then end all."""
        await self._is_left.wait()
        assert self.kept.left_at is not None
        # That it is silent does not tell that nothing waits further up, for brokers that are away.
        calendar = self._parts.network.calendar
        if self._parts.pinned is None:
            await self._env.sleep_until(calendar.lapse(calendar.day(self.kept.left_at)))
        else:  # and no other than that one is to know this daemon
            await trio.sleep(LEFT_WITHIN)
        for one in self.kept.asked.values():
            one.ending.set()
        await self._parts.records.keep(self.kept)
        self.look()
