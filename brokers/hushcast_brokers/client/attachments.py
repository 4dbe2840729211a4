"""Attachments: the edge broker that this daemon uses, drawn once and kept, and those that it has left."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

import trio

from hushcast_brokers.client.attachment import Attachment, ClientParts
from hushcast_brokers.client.attachment_records import AttachedSubscription, AttachmentRecord
from hushcast_brokers.client.client_model import FilterRequest
from hushcast_brokers.client.usable_tree import reach_root
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.wire import PublicKey
from hushcast_protocol.brokers.broker_tree import ListedBroker
from hushcast_protocol.brokers.frames import BrokerVerdict
from hushcast_protocol.content.messages import Message
from hushcast_runtime.logs import log

EDGE_PATIENCE = 600.0  # seconds that an edge broker may be out of reach before another one is drawn
ATTACH_WITHIN = 30.0  # seconds after a restart in which a daemon attaches, at a random moment
LOOK_EVERY = 60.0  # seconds between looks at who was out of reach for how long


class Attachments:
    """All attachments of one daemon; nearly always one."""

    def __init__(
        self,
        parts: ClientParts,
        take: Callable[[list[Message]], Awaitable[None]],
        changed: Callable[[], None],
        refused: Callable[[AttachedSubscription, BrokerVerdict], bool],
        accepted: Callable[[AttachedSubscription], None],
    ) -> None:
        """As those of `Attachment`."""
        self.current: Attachment | None = None
        self._left: list[Attachment] = []
        self._parts = parts
        self._env = parts.context.env
        self._take = take
        self._heard = changed
        self._refused = refused
        self._accepted = accepted
        self._wishes: Mapping[bytes, FilterRequest] = {}
        self._turned_away: dict[PublicKey, float] = {}
        self._is_last_try = False
        self._settling = trio.Lock()
        self._looks = trio.Event()

    async def load(self) -> None:
        """Take up what a restart interrupted, at a moment that nothing else of this daemon shares."""
        for kept in await self._parts.records.load():
            if kept.left_at is None:
                self.current = self._begun(kept, self._env.uniform(0.0, ATTACH_WITHIN))
            else:
                self._left.append(self._begun(kept, self._env.uniform(0.0, ATTACH_WITHIN)))
        self._parts.context.spawn(self._run)
        self._parts.context.spawn(self._hear_of_trees)

    def asked(self, route: bytes) -> list[AttachedSubscription]:
        """Return what was asked for an interest, wherever anything was."""
        places = [*self._left, *([self.current] if self.current else [])]
        return [one for place in places for one in place.asked_for(route)]

    def is_reached(self) -> bool:
        """Tell whether the edge broker in use is there."""
        return self.current is not None and self.current.is_reached

    def reached_for(self) -> float:
        """Seconds for which the edge broker in use has been there; 0 while it is not."""
        return 0.0 if self.current is None else self.current.reached_for

    def choice(self) -> list[ListedBroker]:
        """Return the edge brokers that may be used: all of the tree, or the one that is pinned."""
        tree, pinned = self._parts.tree.newest, self._parts.pinned
        edges = tree.edges if tree is not None else []
        return [edge for edge in edges if pinned in (None, edge.key)]

    async def settle(self, wishes: Mapping[bytes, FilterRequest]) -> None:
        """Have just this routed, by name; durable on return. Edge brokers are told in the background."""
        self._wishes = wishes
        async with self._settling:
            wishes = self._wishes
            for place in list(self._left):
                if place in self._left:  # or it was finished with meanwhile
                    await self._end(place, wishes)
            if self.current is None and wishes:
                await self._draw()
            if self.current is not None:
                await self._end(self.current, wishes)
                await self._ask(self.current, wishes)

    async def _ask(self, place: Attachment, wishes: Mapping[bytes, FilterRequest]) -> None:
        new = []
        for name, wish in wishes.items():
            one, item = place.kept.asked.get(name), wish.item(place.kept)
            if item is None or (one is not None and (one.is_ending or one.item == item)):
                continue
            if one is None:
                one = place.kept.asked[name] = AttachedSubscription(name, wish.route, item, wish.terms)
            else:
                one.replace(item)
            new.append(one)
        if new:
            await self._parts.records.keep_asked(place.kept, new)
            place.look()

    async def _end(self, place: Attachment, wishes: Mapping[bytes, FilterRequest]) -> None:
        asked = [one for one in place.kept.asked.values() if one.name not in wishes]
        for one in asked:
            if self._parts.reading.is_over(one):
                place.forget(one)
        over = [one for one in asked if not one.is_ending and one.name in place.kept.asked]
        for one in over:
            one.ending.set()
        if over:
            await self._parts.records.keep_asked(place.kept, over)
            place.look()

    async def _run(self) -> None:
        """Turn to another edge broker when it has to be, and finish with those that were left."""
        while True:
            self._looks = trio.Event()
            for place in list(self._left):
                self._finish(place)
            if self.current is None:
                await self.settle(self._wishes)
            elif await self._is_to_turn(self.current):
                await self._turn(self.current)
            with trio.move_on_after(LOOK_EVERY):
                await self._looks.wait()

    async def _hear_of_trees(self) -> None:
        while True:
            await self._parts.tree.changed()
            self._looks.set()

    def _changed(self, place: Attachment) -> None:
        if place.turned_away is not None or not place.is_needed:
            self._looks.set()
        self._heard()

    def _finish(self, place: Attachment) -> None:
        """Forget one that was left, once it knows nothing of this daemon, or had a day to be told so."""
        left_at, calendar = place.kept.left_at or 0.0, self._parts.network.calendar
        is_over = calendar.lapse(calendar.day(left_at) + 1) <= self._env.now() and self._env.is_certain()
        if is_over or not place.is_needed or not self._is_listed(place):
            self._left.remove(place)
            place.scope.cancel()
            self._parts.records.forget(place.kept)
            for one in place.kept.asked.values():
                one.gone.set()

    def _is_listed(self, place: Attachment) -> bool:
        tree = self._parts.tree.newest
        return tree is not None and place.kept.edge in {edge.key for edge in tree.edges}

    async def _is_to_turn(self, place: Attachment) -> bool:
        """Tell whether another edge broker is to be used from now on."""
        if place.turned_away is not None:
            self._turned_away[place.kept.edge] = self._env.elapsed()
            return True
        if self._parts.pinned is not None:
            return place.kept.edge != self._parts.pinned
        if not self._is_listed(place):
            return self._parts.tree.newest is not None
        if self._is_expelled(place):
            return True
        # Where the root does not answer either, it is this daemon that is cut off, or all brokers are away.
        is_away = place.away_for > EDGE_PATIENCE and await reach_root(self._parts)
        if not is_away or place.away_for <= EDGE_PATIENCE:  # or it came back while the root was asked
            self._is_last_try = False
            return False
        was_tried, self._is_last_try = self._is_last_try, True
        place.look()  # it may be back as well: there is a minute for that
        return was_tried

    def _is_expelled(self, place: Attachment) -> bool:
        """Tell whether terms take an edge broker of the community, and another one alone is in it."""
        member = self._parts.membership
        if member is None or member.has(place.kept.edge):
            return False
        has_terms = any(one.terms.k > 1 for one in place.kept.asked.values() if not one.is_ending)
        return has_terms and any(member.has(edge.key) for edge in self.choice())

    async def _turn(self, old: Attachment) -> None:
        """Leave an edge broker for another one, durably and in one commit; where there is none, stay."""
        if (edge := self._drawn(old)) is None:
            if (verdict := old.turned_away) is not None:
                for one in list(old.kept.asked.values()):
                    if not one.is_accepted and self._refused(one, verdict):
                        old.forget(one)
            return
        log.warning("another edge broker is used from now on")
        async with self._settling:
            kept = AttachmentRecord(edge.key, Seed.draw(self._env.randomness))
            asked = [one for one in old.kept.asked.values() if not one.is_ending]
            for one in asked:
                item = self._wishes[one.name].item(kept) if one.name in self._wishes else one.item
                if item is not None:
                    again = AttachedSubscription(one.name, one.route, item, one.lasting_terms)
                    again.was_accepted = one.was_accepted or one.is_accepted
                    kept.asked[one.name] = again
            old.kept.left_at = self._env.now()
            await self._parts.records.keep(old.kept, kept)
            self._left.append(old)
            self.current = self._begun(kept, 0.0)
        old.leave()
        self._looks.set()

    async def _draw(self) -> None:
        if (edge := self._drawn(None)) is not None:
            kept = AttachmentRecord(edge.key, Seed.draw(self._env.randomness))
            await self._parts.records.keep(kept)
            self.current = self._begun(kept, 0.0)

    def _drawn(self, instead_of: Attachment | None) -> ListedBroker | None:
        recent = self._env.elapsed() - EDGE_PATIENCE
        barred = {key for key, moment in self._turned_away.items() if moment > recent}
        if instead_of is not None:
            barred.add(instead_of.kept.edge)
        edges = [edge for edge in self.choice() if edge.key not in barred]
        member = self._parts.membership
        in_community = [edge for edge in edges if member is not None and member.has(edge.key)]
        found = self._env.sample(in_community or edges, 1)
        return found[0] if found else None

    def _begun(self, kept: AttachmentRecord, pause: float) -> Attachment:
        place = Attachment(self._parts, kept, self._take, self._changed, self._refused, self._accepted)
        self._parts.context.spawn(place.run, pause)
        return place
