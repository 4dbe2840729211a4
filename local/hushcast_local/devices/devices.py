"""Devices: what a daemon does for a person who has several of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hushcast_local.devices.circle_records import (
    OwnCircle,
    circle_change,
    entry_change,
    load_circle,
)
from hushcast_local.devices.device_circle import DeviceCircle
from hushcast_local.devices.hidden_topics import HiddenTopics
from hushcast_local.devices.invitations import Invitations
from hushcast_local.devices.subscription_plan import SubscriptionPlan
from hushcast_local.subscriber import Subscriber
from hushcast_local.subscription import LocalSubscription
from hushcast_protocol.base.crypto.secrets import AgreementKey, Seed
from hushcast_protocol.base.epochs import Calendar
from hushcast_protocol.base.errors import Refusal, UsageError
from hushcast_protocol.content.bodies import fingerprint
from hushcast_protocol.content.predicates import Predicate, parse_where, write_where
from hushcast_protocol.content.topics import Interest, Topic, parse_topic, write_link
from hushcast_protocol.devices.carried_links import CarriedLink
from hushcast_protocol.devices.circle_secrets import first_keys, is_hidden_topic
from hushcast_protocol.devices.shared_entries import (
    MAX_TITLE,
    AuthorValue,
    DeviceValue,
    EntryKind,
    SharedEntry,
    SubscriptionValue,
    ended_subscription,
    subscription_place,
)
from hushcast_runtime.context import Context
from hushcast_runtime.logs import log

NO_CIRCLE = "this device shares nothing with others: `hushcast device invite` or `join` begins that"


class Devices:
    """What applications ask of a daemon about devices, and what it tells other devices of theirs."""

    def __init__(
        self,
        topics: HiddenTopics,
        subscriber: Subscriber,
        network: bytes,
        calendar: Calendar,
        context: Context,
    ) -> None:
        """`network` is the network's id."""
        self.plan = SubscriptionPlan(subscriber, calendar, context)
        self.plan.is_ended = self._is_ended
        self._topics = topics
        self._subscriber = subscriber
        self._calendar = calendar
        self._context = context
        self._env = context.env
        self._invitations = Invitations(topics, network, context)
        self._circle: DeviceCircle | None = None
        subscriber.on_read = self._note_read

    async def load(self) -> None:
        """Take up what a restart interrupted."""
        own = await load_circle(self._context.store, self._calendar.day(self._env.now()))
        if own is not None:
            self._live(own)
        await self.plan.load()  # what was to end meanwhile ends, if the circle says so
        if own is None:
            await self._topics.close_others([])
            return
        for entry in own.state:
            self._follow(entry, False)
        await self._share_held(revive=False)

    @property
    def held(self) -> list[LocalSubscription]:
        """The subscriptions that applications have, oldest first."""
        return [one for one in self._subscriber.subscriptions if not is_hidden_topic(one.interest.topic)]

    def links(self) -> list[CarriedLink]:
        """Return the links of all subscriptions, to be carried to another device."""
        return [
            CarriedLink(
                write_link(held.interest.topic),
                write_where(held.interest.predicate),
                None if held.terms is None else dict(held.terms),
            )
            for held in self.held
        ]

    async def bring(self, links: Sequence[CarriedLink], within: float | None = None) -> tuple[int, int]:
        """Plan subscriptions to all links that are not held; return how many those are, and how many are.

        Each begins at a moment drawn within so many seconds, or within the plan's usual time. Durable on
        return. Raises `UsageError` where one is no link, and `Refusal` where they are too many.
        """
        wanted = [(link.interest(), link.terms) for link in links]
        new = [(interest, terms) for interest, terms in wanted if not self.plan.holds(interest)]
        for interest, terms in new:
            await self.plan.add(interest, terms, within)
        return len(new), len(wanted) - len(new)

    async def invite(self, title: str) -> tuple[str, float]:
        """Return a link by which one device joins, and until when (Unix seconds) it is good.

        Where this device is in no circle yet, one begins, in which it has this title. Raises `UsageError` and
        `Refusal`.
        """
        if self._present is None:
            own = OwnCircle(
                Seed.draw(self._env.randomness),
                AgreementKey.draw(self._env.randomness),
                first_keys(self._env.randomness),
            )
            own.state.write(own.seed, DeviceValue(_checked(title), own.agreement.public()))
            await self._begin(own)
        circle = self.circle
        return await self._invitations.invite(circle.own, self._admit)

    async def join(self, link: str, title: str) -> None:
        """Join the circle that a link invites to; durable on return. Raises `UsageError` and `Refusal`."""
        _checked(title)
        if self._present is not None:
            raise Refusal("this device shares with others already: `hushcast device leave` ends that")
        own = await self._invitations.accept(link, title, self._calendar.day(self._env.now()))
        if self._present is not None:
            raise Refusal("this device has joined others meanwhile")
        await self._begin(own)

    async def leave(self) -> None:
        """Forget the circle, and what was shared in it; what is subscribed to stays. Raises `Refusal`."""
        circle, self._circle = self.circle, None
        await circle.end()

    async def remove(self, named: str) -> str:
        """Remove the device with this title, or fingerprint's beginning; return its title.

        Raises `UsageError` where it is none or several, and `Refusal` where it is this one.
        """
        circle = self.circle
        living = circle.own.state.living()
        found = [
            key
            for key, value in living.items()
            if value.title == named or (len(named) >= 4 and fingerprint(key).startswith(named))
        ]
        if len(found) != 1:
            raise UsageError(
                f"{len(found) or 'no'} devices are called so: `hushcast device list` shows their fingerprints"
            )
        if found[0] == circle.own.key:
            raise Refusal("that is this device: `hushcast device leave` leaves, and remove it on another one")
        await circle.remove(found[0])
        return living[found[0]].title

    def describe(self) -> list[dict[str, Any]]:
        """Describe the devices of the circle; nothing where there is none."""
        circle = self._present
        if circle is None:
            return []
        own = circle.own
        return [
            {
                "name": value.title,
                "fingerprint": fingerprint(key),
                "this": key == own.key,
                "removed": value.is_removed,
                "heard": circle.heard_at(key),
            }
            for key, value in sorted(own.state.devices().items(), key=lambda one: (one[1].title, one[0]))
        ]

    async def share_author(self, title: str, seed: Seed | None) -> None:
        """Share an author's key with the other devices, or share it no more; raise `Refusal`."""
        if seed is None:
            self.author(title)
            await self.circle.write(AuthorValue(title, bytes(Seed.LENGTH), True))
        else:
            await self.circle.write(AuthorValue(_checked(title), seed.reveal()))

    def authors(self) -> list[dict[str, Any]]:
        """Describe the authors' keys that are shared."""
        shared = sorted(self.circle.own.state.authors(), key=lambda one: one.title)
        return [{"name": one.title, "fingerprint": fingerprint(Seed(one.seed).public())} for one in shared]

    def author(self, title: str) -> Seed:
        """Return the key that is shared under a title; raise `Refusal` where there is none."""
        found = [one.seed for one in self.circle.own.state.authors() if one.title == title]
        if not found:
            raise Refusal("no author's key is shared by this name: `hushcast device keys` lists them")
        return Seed(found[0])

    def is_read_elsewhere(self, message_id: bytes) -> bool:
        """Tell whether any device was shown a message or is done with it, as far as it has told."""
        circle = self._present
        return circle is not None and circle.is_read(message_id)

    @property
    def circle(self) -> DeviceCircle:
        """The circle that this device is in; raises `Refusal` where it is in none."""
        circle = self._present
        if circle is None:
            raise Refusal(NO_CIRCLE)
        return circle

    @property
    def _present(self) -> DeviceCircle | None:
        return None if self._circle is None or self._circle.is_over else self._circle

    async def note_begun(self, held: LocalSubscription) -> None:
        """Tell the other devices of a subscription that an application has begun here."""
        circle = self._present
        if circle is None:
            return
        link, where = write_link(held.interest.topic), write_where(held.interest.predicate)
        known = circle.own.state.subscription(link, where)
        if known is not None and not known.is_ended:
            return
        try:
            terms = None if held.terms is None else dict(held.terms)
            await circle.write(SubscriptionValue(link, where, held.name, terms))
        except Refusal:
            log.warning("a subscription is not shared with other devices: they share too many")

    async def end(self, topic: Topic, predicate: Predicate | None) -> bool:
        """Have other devices end subscriptions to a topic, and begin none that are planned; tell of any."""
        was_planned = await self.plan.take_back(topic, predicate)
        circle = self._present
        if circle is None:
            return was_planned
        link = write_link(topic)
        where = None if predicate is None else write_where(predicate)
        for value in circle.own.state.subscriptions():
            if value.link == link and where in (None, value.where) and not value.is_ended:
                await circle.write(ended_subscription(value.link, value.where))
        return was_planned

    async def _begin(self, own: OwnCircle) -> None:
        await self._context.store.write(circle_change(own), *map(entry_change, own.state))
        self._live(own)
        await self._share_held(revive=True)
        for entry in own.state:
            self._follow(entry, False)

    def _live(self, own: OwnCircle) -> None:
        self._circle = DeviceCircle(own, self._topics, self._calendar, self._context, self._follow)
        self._context.spawn(self._circle.run)

    async def _share_held(self, revive: bool) -> None:
        """Share what is subscribed to here; with `revive` also what others have ended."""
        for held in self.held:
            link, where = write_link(held.interest.topic), write_where(held.interest.predicate)
            is_new = self.circle.own.state.subscription(link, where) is None
            if revive or (is_new and subscription_place(link, where) not in self.circle.own.untold):
                await self.note_begun(held)

    async def _admit(self, entry: SharedEntry) -> None:
        await self.circle.admit(entry)

    def _note_read(self, topic: Topic, message_id: bytes) -> None:
        circle = self._present
        if circle is not None and not is_hidden_topic(topic):
            circle.note_read(message_id)

    def _follow(self, entry: SharedEntry, has_fallen: bool) -> None:
        """Do here what another device did, at a moment of its own; where its word fell, begin it no more."""
        if entry.kind is EntryKind.SUBSCRIPTION:
            self._context.spawn(self._follow_subscription, entry.read(), has_fallen)

    async def _follow_subscription(self, value: SubscriptionValue, has_fallen: bool) -> None:
        if value.is_ended:
            if not has_fallen:
                await self._follow_end(value.name)
            return
        try:
            topic = parse_topic(value.link)
            interest = Interest(topic, parse_where(value.where, topic.attributes))
            if has_fallen and interest in self.plan.interests:
                await self.plan.take_back(topic, interest.predicate)
            elif not has_fallen and not self.plan.holds(interest):
                await self.plan.add(interest, value.terms, self.plan.followed, value.name)
        except (UsageError, Refusal):
            log.warning("a subscription of another device cannot be taken over")

    async def _follow_end(self, place: bytes) -> None:
        held = [one.interest for one in self.held]
        for interest in (*held, *self.plan.interests):
            link, where = write_link(interest.topic), write_where(interest.predicate)
            if subscription_place(link, where) == place:
                await self.plan.add_end(interest)

    def _is_ended(self, interest: Interest) -> bool:
        circle = self._present
        link, where = write_link(interest.topic), write_where(interest.predicate)
        known = None if circle is None else circle.own.state.subscription(link, where)
        return known is not None and known.is_ended  # nobody began it again meanwhile


def _checked(title: str) -> str:
    if not 1 <= len(title) <= MAX_TITLE or not title.isprintable():
        raise UsageError(f"a device's name has 1 to {MAX_TITLE} characters that can be printed")
    return title
