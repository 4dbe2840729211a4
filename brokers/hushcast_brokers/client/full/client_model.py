"""A client under `full`: each word of each day is asked for under layers, at the edge broker in use."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import trio

from hushcast_brokers.client.attachment_records import AttachedSubscription, AttachmentRecord
from hushcast_brokers.client.client_model import FilterRequest
from hushcast_brokers.client.full.openings import Openings
from hushcast_brokers.held_tree import HeldTree
from hushcast_protocol.base import ground_truth, observations
from hushcast_protocol.base.crypto.hashes import LABEL, Domain, digest
from hushcast_protocol.base.crypto.secrets import AgreementKey
from hushcast_protocol.base.errors import AuthenticationError, Refusal
from hushcast_protocol.base.wire import PublicKey
from hushcast_protocol.brokers.broker_tree import BrokerTree
from hushcast_protocol.brokers.frames import AnonymityTerms
from hushcast_protocol.brokers.full.item_labels import read_labels
from hushcast_protocol.brokers.full.layer_keys import Keyring
from hushcast_protocol.brokers.full.layer_positions import LayerPositions
from hushcast_protocol.brokers.full.layered_word import LayeredWord
from hushcast_protocol.brokers.full.published_names import element_name
from hushcast_protocol.brokers.full.word_holder import WordHolder
from hushcast_protocol.brokers.network import BrokersNetwork
from hushcast_protocol.brokers.privacy import read_privacy
from hushcast_protocol.content.messages import Message
from hushcast_runtime.carriers.carrier import RoutedInterest, Tokens
from hushcast_runtime.context import Context

# As parts of a day: the words of tomorrow are asked for at a moment of each daemon's own before it begins.
EARLIEST_RENEWAL, LATEST_RENEWAL = 1 / 6, 1 / 16
LOOK_EVERY = 60.0  # seconds between looks at the clock, which may be set


class _Interest(NamedTuple):
    wanted: RoutedInterest
    terms: AnonymityTerms
    words: dict[int, tuple[bytes, ...]]
    """By day; none before they are learnt."""
    asked: Sequence[AttachedSubscription]
    """What was asked for before a restart, until words are learnt."""


class FullClientModel:
    """The words of one daemon's interests (`ClientModel`)."""

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
        self._placed: tuple[BrokerTree | None, LayerPositions | None] = None, None

    def check(self, terms: AnonymityTerms) -> None:
        """Raise `Refusal` for terms: no edge broker reads conditions here."""
        if terms.k > 1:
            raise Refusal(
                "`--k` needs an edge broker that reads conditions, and brokers of this network read none "
                '(privacy = "full"): leave it out, or use a network whose privacy is clear or community'
            )

    async def load(self) -> None:
        """Know what may come of what was asked for before a restart."""
        await self._openings.load()

    def resume(
        self, wanted: RoutedInterest, terms: AnonymityTerms, asked: Sequence[AttachedSubscription]
    ) -> bool:
        """Go on asking for what was asked for; its words are to be learnt anew."""
        self._interests[wanted.name] = _Interest(wanted, terms, {}, asked)
        return False

    async def learn(self, wanted: RoutedInterest, terms: AnonymityTerms) -> None:
        """Learn the words of the days that are asked for now."""
        before = self._interests.get(wanted.name)
        interest = before or _Interest(wanted, terms, {}, ())
        words = await self._words(interest)
        self._interests[wanted.name] = _Interest(wanted, terms, interest.words | words, ())

    def forget(self, route: bytes) -> None:
        """Ask no more for an interest."""
        self._interests.pop(route, None)

    def wishes(self) -> Mapping[bytes, FilterRequest]:
        """Return what is asked for, a name for each interest, day and word."""
        found = {}
        for route, interest in self._interests.items():
            for one in interest.asked:
                found[one.name] = FilterRequest(route, one.terms, partial(_as_before, one.name))
            for day, words in interest.words.items():
                for word in words if not self._is_over(day) else ():
                    name = digest(Domain.ASKED, route, day.to_bytes(8, "big"), word, size=LABEL)
                    found[name] = FilterRequest(
                        route, interest.terms, partial(self._item, interest.wanted, day, word)
                    )
        return found

    def opened(self, message: Message) -> Iterable[tuple[bytes, Message]]:
        """Return whose a message is, and what is in it; raise `PeerError` where nobody asked for it."""
        routes, inside = self._openings.opened(read_labels(message.tokens), message)
        self._tracer.observe(observations.Opened(message.id, inside.id))
        return [(route, inside) for route in routes]

    def kept_word(self, tokens: Tokens) -> bytes:
        """Return the name of the day's trunk, as messages have it."""
        return element_name(self._action.element(tokens.trunk))

    def is_routed(self, asked: Sequence[AttachedSubscription]) -> bool:
        """Tell whether all words of today are routed."""
        today = self._calendar.day(self._env.now())
        now = [one for one in asked if isinstance(one.item, LayeredWord) and one.item.day == today]
        return bool(now) and all(one.is_routed for one in now)

    def may_lack(self, asked: AttachedSubscription) -> bool:
        """Return that each word is needed."""
        return False

    def is_over(self, asked: AttachedSubscription) -> bool:
        """Tell whether all forget what was asked for, as its day has lapsed."""
        return isinstance(asked.item, LayeredWord) and self._is_over(asked.item.day)

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

    def _item(
        self, wanted: RoutedInterest, day: int, word: bytes, kept: AttachmentRecord
    ) -> LayeredWord | None:
        """Return a word as it is asked for at an edge broker; nothing where the tree does not list that."""
        above = self._above(kept.edge)
        if above is None:
            return None
        place = kept.key, day, above
        if (holding := self._holders.get(place)) is None:
            own = AgreementKey(digest(Domain.CLIENT_DAY, day.to_bytes(8, "big"), key=kept.seed.reveal()))
            keys = Keyring(self._action, own, self._network)
            holding = self._holders[place] = _Holding(
                own, keys, WordHolder(keys, above, self._layers, day), {}
            )
            self._note_agreed(holding, above[: self._layers])
        item = holding.items.get(word)
        if item is None:
            item = holding.items[word] = holding.holder.item(word)
        if self._openings.add(item, holding.own, wanted.name) and self._tracer.is_on:
            element = self._action.element(word)
            topic = wanted.interest.topic.name
            self._tracer.tell(ground_truth.Wanted(topic, day, item.name, holding.keys.public, element))
        return item

    def _above(self, edge: PublicKey) -> tuple[PublicKey, ...] | None:
        tree = self._tree.newest
        if tree is None or edge not in tree.brokers:
            return None
        if tree is not self._placed[0]:
            try:
                self._placed = tree, LayerPositions(tree)
            except AuthenticationError:
                self._placed = tree, None
        return None if self._placed[1] is None else self._placed[1].above_client(edge)

    def _note_agreed(self, holding: _Holding, targets: Iterable[PublicKey]) -> None:
        day, keys = holding.holder.day, holding.keys
        for target in targets if self._tracer.is_on else ():
            key = keys.shared(target, day).route.reveal()
            self._tracer.observe(observations.Agreed(day, keys.public, target, key))


class _Holding(NamedTuple):
    """A holder, and what it made."""

    own: AgreementKey
    keys: Keyring
    holder: WordHolder
    items: dict[bytes, LayeredWord]


def _as_before(name: bytes, kept: AttachmentRecord) -> LayeredWord | None:
    """Return what was asked for before a restart, where it was."""
    one = kept.asked.get(name)
    return one.item if one is not None and isinstance(one.item, LayeredWord) else None
