"""Reading under `full`: each word of each day is asked for under layers, at the edge broker in use."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import trio

from hushcast_brokers.attachment_records import Asked, Kept
from hushcast_brokers.full.openings import Openings
from hushcast_brokers.held_tree import HeldTree
from hushcast_brokers.reading import Wish
from hushcast_protocol.base import observed, told
from hushcast_protocol.base.errors import AuthenticationError, Refusal
from hushcast_protocol.base.hashes import LABEL, Domain, digest
from hushcast_protocol.base.secrets import AgreementKey
from hushcast_protocol.base.wire import PublicKey
from hushcast_protocol.brokers.frames import Terms
from hushcast_protocol.brokers.full.holder import Holder
from hushcast_protocol.brokers.full.items import Layered
from hushcast_protocol.brokers.full.keys import Keyring
from hushcast_protocol.brokers.full.labels import read_labels
from hushcast_protocol.brokers.full.places import Places
from hushcast_protocol.brokers.network import BrokersNetwork
from hushcast_protocol.brokers.privacy import read_privacy
from hushcast_protocol.brokers.tree import BrokerTree
from hushcast_protocol.content.messages import Message
from hushcast_runtime.carrier import Wanted
from hushcast_runtime.context import Context

# As parts of a day: the words of tomorrow are asked for at a moment of each daemon's own before it begins.
EARLIEST_RENEWAL, LATEST_RENEWAL = 1 / 6, 1 / 16
LOOK_EVERY = 60.0  # seconds between looks at the clock, which may be set


class _Interest(NamedTuple):
    wanted: Wanted
    terms: Terms
    words: dict[int, tuple[bytes, ...]]
    """By day; none before they are learnt."""
    asked: Sequence[Asked]
    """What was asked for before a restart, until words are learnt."""


class FullReading:
    """The words of one daemon's interests (`reading.Reading`)."""

    def __init__(self, network: BrokersNetwork, tree: HeldTree, context: Context) -> None:
        privacy = read_privacy(network.profile)
        self._network = network.id
        self._calendar = network.calendar
        self._action, self._layers = privacy.action, privacy.layers
        self._tree = tree
        self._env = context.env
        self._tracer = context.tracer
        self._openings = Openings(privacy.action, network.id, context.store)
        self._interests: dict[bytes, _Interest] = {}
        self._holders: dict[tuple[PublicKey, int, tuple[PublicKey, ...]], _Holding] = {}
        self._renewal = context.env.uniform(LATEST_RENEWAL, EARLIEST_RENEWAL) * self._calendar.day_seconds
        self._placed: tuple[BrokerTree | None, Places | None] = None, None

    def check(self, terms: Terms) -> None:
        """Raise `Refusal` for terms: no edge broker reads conditions here."""
        if terms.k > 1:
            raise Refusal(
                "`--k` needs an edge broker that reads conditions, and brokers of this network read none "
                '(privacy = "full"): leave it out, or use a network whose privacy is clear or community'
            )

    async def load(self) -> None:
        """Know what may come of what was asked for before a restart."""
        await self._openings.load()

    def resume(self, wanted: Wanted, terms: Terms, asked: Sequence[Asked]) -> bool:
        """Go on asking for what was asked for; its words are to be learnt anew."""
        self._interests[wanted.name] = _Interest(wanted, terms, {}, asked)
        return False

    async def learn(self, wanted: Wanted, terms: Terms) -> None:
        """Learn the words of the days that are asked for now."""
        before = self._interests.get(wanted.name)
        interest = before or _Interest(wanted, terms, {}, ())
        words = await self._words(interest)
        self._interests[wanted.name] = _Interest(wanted, terms, interest.words | words, ())

    def forget(self, route: bytes) -> None:
        """Ask no more for an interest."""
        self._interests.pop(route, None)

    def wishes(self) -> Mapping[bytes, Wish]:
        """Return what is asked for, a name for each interest, day and word."""
        found = {}
        for route, interest in self._interests.items():
            for one in interest.asked:
                found[one.name] = Wish(route, one.terms, partial(_as_before, one.name))
            for day, words in interest.words.items():
                for word in words if not self._is_over(day) else ():
                    name = digest(Domain.ASKED, route, day.to_bytes(8, "big"), word, size=LABEL)
                    found[name] = Wish(route, interest.terms, partial(self._item, interest.wanted, day, word))
        return found

    def opened(self, message: Message) -> Iterable[tuple[bytes, Message]]:
        """Return whose a message is, and what is in it; raise `PeerError` where nobody asked for it."""
        routes, inside = self._openings.opened(read_labels(message.tokens), message)
        self._tracer.observe(observed.Opened(message.id, inside.id))
        return [(route, inside) for route in routes]

    def is_routed(self, asked: Sequence[Asked]) -> bool:
        """Tell whether all words of today are routed."""
        today = self._calendar.day(self._env.now())
        now = [one for one in asked if isinstance(one.item, Layered) and one.item.day == today]
        return bool(now) and all(one.is_routed for one in now)

    def may_lack(self, asked: Asked) -> bool:
        """Return that each word is needed."""
        return False

    def is_over(self, asked: Asked) -> bool:
        """Tell whether all forget what was asked for, as its day has lapsed."""
        return isinstance(asked.item, Layered) and self._is_over(asked.item.day)

    async def run(self, settle: Callable[[], Awaitable[None]]) -> None:
        """Learn the words of days to come, forget those that lapsed, and follow the tree."""
        while True:
            tree = self._tree.newest
            await self._renew()
            await settle()
            if tree is self._tree.newest:
                with trio.move_on_after(self._until_next_look()):
                    await self._tree.changed()

    async def _renew(self) -> None:
        for interest in list(self._interests.values()):
            if interest.words and not all(day in interest.words for day in self._days()):
                interest.words.update(await self._words(interest))  # of no use if it ended meanwhile
            for day in [day for day in interest.words if self._is_over(day)]:
                interest.words.pop(day, None)
        self._openings.forget(self._is_over)
        self._holders = {place: one for place, one in self._holders.items() if not self._is_over(place[1])}

    async def _words(self, interest: _Interest) -> dict[int, tuple[bytes, ...]]:
        """Return the words of the days that are asked for now, and not known yet."""
        missing = [day for day in self._days() if day not in interest.words]
        return {day: (await interest.wanted.tokens(day)).entries for day in missing}

    def _days(self) -> list[int]:
        """Return the days whose words are asked for now."""
        now = self._env.now()
        days = list(self._calendar.open_days(now))
        tomorrow = self._calendar.day(now) + 1
        if tomorrow not in days and self._calendar.day_start(tomorrow) - self._renewal <= now:
            days.append(tomorrow)
        return days

    def _until_next_look(self) -> float:
        now = self._env.now()
        tomorrow = self._calendar.day_start(self._calendar.day(now) + 1)
        moments = (tomorrow - self._renewal, tomorrow - self._calendar.grace, self._calendar.next_middle(now))
        return min([LOOK_EVERY, *(moment - now for moment in moments if moment > now)])

    def _is_over(self, day: int) -> bool:
        return self._env.is_certain() and self._calendar.lapse(day) <= self._env.now()

    def _item(self, wanted: Wanted, day: int, word: bytes, kept: Kept) -> Layered | None:
        """Return a word as it is asked for at an edge broker; nothing where the tree does not list that."""
        above = self._above(kept.edge)
        if above is None:
            return None
        place = kept.key, day, above
        if (holding := self._holders.get(place)) is None:
            own = AgreementKey(digest(Domain.CLIENT_DAY, day.to_bytes(8, "big"), key=kept.seed.reveal()))
            keys = Keyring(self._action, own, self._network)
            holding = self._holders[place] = _Holding(own, keys, Holder(keys, above, self._layers, day), {})
            self._note_agreed(holding, above[: self._layers])
        item = holding.items.get(word)
        if item is None:
            item = holding.items[word] = holding.holder.item(word)
        if self._openings.add(item, holding.own, wanted.name) and self._tracer.is_on:
            element = self._action.element(word)
            topic = wanted.interest.topic.name
            self._tracer.tell(told.Wanted(topic, day, item.name, holding.keys.public, element))
        return item

    def _above(self, edge: PublicKey) -> tuple[PublicKey, ...] | None:
        tree = self._tree.newest
        if tree is None or edge not in tree.brokers:
            return None
        if tree is not self._placed[0]:
            try:
                self._placed = tree, Places(tree)
            except AuthenticationError:
                self._placed = tree, None
        return None if self._placed[1] is None else self._placed[1].above_client(edge)

    def _note_agreed(self, holding: _Holding, targets: Iterable[PublicKey]) -> None:
        day, keys = holding.holder.day, holding.keys
        for target in targets if self._tracer.is_on else ():
            key = keys.shared(target, day).route.reveal()
            self._tracer.observe(observed.Agreed(day, keys.public, target, key))


class _Holding(NamedTuple):
    """A holder, and what it made."""

    own: AgreementKey
    keys: Keyring
    holder: Holder
    items: dict[bytes, Layered]


def _as_before(name: bytes, kept: Kept) -> Layered | None:
    """Return what was asked for before a restart, where it was."""
    one = kept.asked.get(name)
    return one.item if one is not None and isinstance(one.item, Layered) else None
