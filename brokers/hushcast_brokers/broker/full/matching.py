"""Matching under `full`: items under layers in rows, labels in place of tokens (`matching.Matching`)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from functools import partial
from itertools import islice

import trio

from hushcast_brokers.broker.advertising import Advertising
from hushcast_brokers.broker.full.factors import LayerFactors
from hushcast_brokers.broker.full.full_records import FormerLabel, FullRecords
from hushcast_brokers.broker.full.hand_up import HandingUp
from hushcast_brokers.broker.full.interests import FullInterests
from hushcast_brokers.broker.full.layered_table import LayeredTable
from hushcast_brokers.broker.matching import DroppedItems, Place
from hushcast_brokers.held_tree import HeldTree
from hushcast_brokers.upstream import Upstream
from hushcast_protocol.base import observations
from hushcast_protocol.base.crypto.key_agreement import agreement_key
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.errors import AuthenticationError, Refusal
from hushcast_protocol.base.wire import PublicKey
from hushcast_protocol.brokers.broker_tree import BrokerTree
from hushcast_protocol.brokers.child_advertisements import ChildAdvertisements
from hushcast_protocol.brokers.filters import Filter
from hushcast_protocol.brokers.full.aggregation import AskFactors, Factors
from hushcast_protocol.brokers.full.comparable_item import ComparableItem
from hushcast_protocol.brokers.full.day_rows import ItemOrigin, OnwardRoute
from hushcast_protocol.brokers.full.hand_up import turned_back
from hushcast_protocol.brokers.full.item_labels import ItemLabel, as_tokens, read_labels
from hushcast_protocol.brokers.full.layer_keys import Keyring
from hushcast_protocol.brokers.full.layer_positions import LayerPositions
from hushcast_protocol.brokers.full.layered_word import LayeredWord
from hushcast_protocol.brokers.full.outer_message import content_of, labels_of, streamed
from hushcast_protocol.brokers.full.rows import Rows
from hushcast_protocol.brokers.items import Item, ItemChanges
from hushcast_protocol.brokers.network import BrokersNetwork
from hushcast_protocol.brokers.privacy import read_privacy
from hushcast_protocol.brokers.tomography.broker_statements import Client
from hushcast_protocol.content.messages import Message
from hushcast_runtime.context import Context
from hushcast_runtime.logs import log

_EXPIRED_AT_ONCE = 1024  # items of the parent's that are forgotten in one piece: some 2 ms
_TURN = 4  # bytes that tell a place from what it was before


class FullMatching:
    """What one broker knows under `full`."""

    hands_up = True

    def __init__(
        self, network: BrokersNetwork, seed: Seed, held: HeldTree, advertising: Advertising, context: Context
    ) -> None:
        self._privacy = read_privacy(network.profile)
        self._calendar = network.calendar
        self._seat = seed.public()
        self._is_root = self._seat == network.root
        self._keys = Keyring(self._privacy.action, agreement_key(seed), network.id)
        self._held = held
        self._advertising = advertising
        self._env = context.env
        self._tracer = context.tracer
        self._records = FullRecords(self._privacy.action, context.store)
        self._rows: Rows | None = None
        self._former: dict[bytes, FormerLabel] = {}
        self._former_of: dict[
            tuple[PublicKey, bytes], ItemOrigin
        ] = {}  # the same from below, by child and name
        self._turns: dict[tuple[PublicKey, bytes], bytes] = {}  # how often an item was asked for again
        self.handing: HandingUp | None = None
        self._shown: dict[bytes, int] = {}  # days of what the parent has, by name
        self._below, clients = LayeredTable(), LayeredTable()
        self._tables = (self._below, clients)
        self._factors = LayerFactors(self._keys, self._privacy.layers, self._records, self.advertise, context)
        self._factors.agreed = self._note_agreed
        self._is_begun = False
        self._changes = 0
        self._placed: tuple[BrokerTree | None, LayerPositions | None] = None, None
        self._last: tuple[Message, dict[Place, tuple[OnwardRoute, ItemLabel]]] | None = None
        self._agreed: set[tuple[int, PublicKey]] = set()
        self.advertised = ChildAdvertisements(self._below, self._read, self._below.is_late)
        self.interests = FullInterests(clients, self._read, self._load_interest, advertising, self.advertise)

    @property
    def changes(self) -> int:
        """Grows whenever rows may have changed; nothing is ever stated."""
        return self._changes

    def advertise(self) -> int:
        """Show what is to be shown of all rows; return the version upward."""
        if self._rows is None or not self._is_begun:
            return self._advertising.version
        self._changes += 1
        if self._is_root and self.handing is not None and self.handing.returned is not None:
            self.handing.returned.asked(self._rows.take_joined())
        changes = self._rows.take_changes()
        return self._show(changes.shown, changes.withdrawn)

    def entering(self, message: Message) -> Message:
        """Return a publication, which stays as it is until it is looked up."""
        return message

    def whom(self, message: Message) -> Set[Place]:
        """Return the children whose items a message's labels stand for; raise `DecodeError` for none."""
        content = content_of(self._keys.action, self._keys.own, message) if self._is_root else None
        labels = read_labels(message.tokens) if content is None else labels_of(content, message)
        found: dict[Place, tuple[OnwardRoute, ItemLabel]] = {}
        for label in labels:
            for onward in self._onward(message.day, label.name):
                turn = self._turns.get((onward.child, onward.name), b"")
                found.setdefault(onward.child + onward.name + turn, (onward, label))
        if content is not None and found:  # the whole body is read for that
            message = streamed(content, message)
        self._last = message, found
        return found.keys()

    def forms(self, message: Message, places: Collection[Place]) -> Sequence[Message]:
        """Return copies with the labels of a child's items, of the message that `whom` was asked of last."""
        assert self._last is not None, "`whom` comes first"
        outer, found = self._last
        labels = [self._turned(*found[place]) for place in sorted(places)]
        return _copies(outer, labels)

    def asked_again(self, child: PublicKey, names: Iterable[bytes]) -> None:
        """Hear that a child is to have what comes again for these items: somebody joined their rows there.

        So the places that they have are others from now on, to which no message has gone yet.
        """
        for name in names:
            turn = int.from_bytes(self._turns.get((child, name), b""), "big") + 1
            self._turns[child, name] = turn.to_bytes(_TURN, "big")
            if self._rows is not None:
                self._rows.again(child, name)

    def turned_back(self, child: PublicKey, message: Message) -> tuple[ItemLabel, ...]:
        """Return the labels under which a message came that is under a child's; raises as `turned_back`."""
        return turned_back(self._keys.action, message, partial(self._origin, message.day, child))

    async def hand_up(self, child: PublicKey, message: Message) -> None:
        """Take what a broker below hands up; durable on return. Raises `Refusal`."""
        assert self.handing is not None, "it is there before any link is"
        await self.handing.take(child, message)

    def load(self, child: PublicKey, name: bytes, item: Item) -> None:
        """Take what a broker below had advertised before a restart."""
        self._load(self._below, child, name, item)

    def tree_changed(self) -> None:
        """Put all items into other rows if other brokers stand above this one now."""
        above = self._above()
        layers = self._privacy.layers
        is_used = self._rows is not None and len(self._rows) > 0
        if (rows := self._rows) is not None and above is not None and rows.above[:layers] == above[:layers]:
            self._unsettle(is_used)
            return
        if rows is not None:
            self._remember(rows)
        aggregates = self._privacy.aggregates
        self._rows = None if above is None else Rows(self._keys, above, layers, aggregates=aggregates)
        for table in self._tables:
            table.move(self._rows)
        self.advertised.note_changed()
        self._unsettle(is_used)
        self._factors.follow(self._rows)
        if self._is_begun:
            shown = {} if self._rows is None else {one.name: one for one in self._rows.take_changes().shown}
            gone = [name for name in self._shown if name not in shown]
            self._show([one for name, one in shown.items() if name not in self._shown], gone)

    def expire(self, now: float) -> Iterator[DroppedItems]:
        """Drop the items of days that have lapsed, of which nobody tells anybody; in pieces."""
        day = self._calendar.open_days(now)[0] - 1
        if self._rows is not None:
            for _ in self._rows.expire(day):
                yield DroppedItems((), ())
        lapsed = iter([name for name, of in self._shown.items() if of <= day])
        while piece := list(islice(lapsed, _EXPIRED_AT_ONCE)):
            shown = [name for name in piece if name in self._shown]
            self._advertising.forget(shown)
            for name in shown:
                del self._shown[name]
            self._records.forget(shown, (), ())
            yield DroppedItems((), ())
        former = [name for name, one in self._former.items() if one.day <= day]
        for name in former:
            for to in self._former.pop(name).onward:
                self._former_of.pop((to.child, to.name), None)
        self._records.forget((), self._factors.expire(day), former)
        self._agreed = {one for one in self._agreed if one[0] > day}
        below, clients = self._tables
        for gone in below.expire(day):
            yield DroppedItems(gone, ())
        for gone in clients.expire(day):
            yield DroppedItems((), gone)
        self._turns = {at: turn for at, turn in self._turns.items() if at[1] in self._below.of(at[0])}
        if self.handing is not None:
            self.handing.expire(day)

    def stated(self, is_edge: bool) -> Mapping[Filter, Sequence[Client]]:
        """Return nothing: there are no filters."""
        return {}

    async def begin(self) -> None:
        """Know what the parent has, and which rows it is of."""
        kept = await self._records.load()
        self._note_former(kept.former)
        recalled, lost = [], []
        if (rows := self._rows) is not None:
            self._factors.load(kept.factors)
            for item in kept.shown:
                try:
                    rows.recall(item)
                    recalled.append(item)
                except (Refusal, AuthenticationError):
                    lost.append(item.name)  # the tree is another one by now
        self._is_begun = True
        self._records.keep_shown((), lost)
        self._shown = {one.name: one.day for one in recalled}
        self._advertising.recall(recalled)
        self._unsettle(bool(kept.shown))
        self.advertise()

    async def run(self) -> None:
        """Hand up what waits for brokers that have left, until cancelled."""
        if self.handing is not None:
            await self.handing.run()

    async def linked(self, upstream: Upstream) -> None:
        """Ask the parent for factors, and hand it up what is to go up, until the link ends."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._factors.ask, upstream)
            if self.handing is not None:
                nursery.start_soon(self.handing.linked, upstream)

    async def factors(self, child: PublicKey, ask: AskFactors) -> Factors:
        """Answer for a broker below, or have those above answer; raise `Refusal` or `TransportError`."""
        if not self._privacy.aggregates:
            raise Refusal("form")  # nobody honest asks, and whoever makes up a child would read all others
        if ask.day not in self._calendar.installable_days(self._env.now()):
            raise Refusal("day")
        return await self._factors.answer(self._places(), self._seat, child, ask)

    def _read(self, child: PublicKey, item: Item) -> ComparableItem:
        if not isinstance(item, LayeredWord):
            raise Refusal("form")
        if item.day not in self._calendar.installable_days(self._env.now()):
            raise Refusal("day")
        if self._held.newest is not self._placed[0]:
            self.tree_changed()  # which whoever asks has told just now
        if self._rows is None:
            raise Refusal("tree")
        read = self._rows.read(item)
        self._note_agreed(item.day, *(one.owner for one in read.own))
        return read

    def _load_interest(self, client: PublicKey, name: bytes, item: Item) -> None:
        self._load(self._tables[1], client, name, item)

    def _load(self, table: LayeredTable, child: PublicKey, name: bytes, item: Item) -> None:
        if not isinstance(item, LayeredWord):
            raise Refusal("form")
        if self._rows is None:
            self.tree_changed()
        try:
            table.put(child, name, item if self._rows is None else self._rows.read(item))
        except Refusal:
            table.put(child, name, item)

    def _above(self) -> tuple[PublicKey, ...] | None:
        tree, places = self._held.newest, self._places()
        if tree is None or places is None or self._seat not in tree.brokers:
            return None
        return places.above(self._seat)

    def _places(self) -> LayerPositions | None:
        tree = self._held.newest
        if tree is None or tree is self._placed[0]:
            return self._placed[1]
        try:
            self._placed = tree, LayerPositions(tree)
        except AuthenticationError:
            log.warning("the tree has a broker whose key is none: nothing can be shown to anybody")
            self._placed = tree, None
        return self._placed[1]

    def _unsettle(self, is_used: bool) -> None:
        """Hear that brokers may have left, at whose parents something waits that rows here may lack."""
        if is_used and self._rows is not None:
            self._rows.unsettle(max(self._calendar.installable_days(self._env.now())))

    def _show(self, shown: Sequence[LayeredWord], withdrawn: Sequence[bytes]) -> int:
        self._records.keep_shown(shown, withdrawn)
        for name in withdrawn:
            self._shown.pop(name, None)
        self._shown.update((one.name, one.day) for one in shown)
        for one in shown:
            own = [layer.target for layer in one.layers if layer.owner == self._keys.public]
            self._note_agreed(one.day, *own)
        self._factors.look()
        return self._advertising.change(ItemChanges(shown, withdrawn))

    def _onward(self, day: int, name: bytes) -> Sequence[OnwardRoute]:
        if self._rows is not None and (found := self._rows.matching(day, name)):
            return found
        former = self._former.get(name)
        return () if former is None or former.day != day else former.onward

    def _turned(self, onward: OnwardRoute, label: ItemLabel) -> ItemLabel:
        return ItemLabel(onward.name, self._keys.action.wrap(onward.key, label.content))

    def _origin(self, day: int, child: PublicKey, name: bytes) -> ItemOrigin | None:
        if self._rows is not None and (found := self._rows.origin(day, child, name)) is not None:
            return found
        return self._former_of.get((child, name))

    def _note_former(self, labels: Mapping[bytes, FormerLabel]) -> None:
        self._former.update(labels)
        for name, former in labels.items():
            self._former_of.update({(to.child, to.name): ItemOrigin(name, to.key) for to in former.onward})

    def _remember(self, rows: Rows) -> None:
        """Know where messages go that are under way under the names of these rows.

        Names that were withdrawn as rows became one are left out: they are old by now, and a row of a
        thousand children has a thousand.
        """
        labels = {
            row.said: FormerLabel(day, tuple(rows.matching(day, row.said)))
            for day in rows.days
            for row in rows.rows(day)
            if row.said is not None
        }
        self._note_former(labels)
        self._records.keep_former(labels)

    def _note_agreed(self, day: int, *others: PublicKey) -> None:
        for other in others if self._tracer.is_on else ():
            if (day, other) not in self._agreed:
                self._agreed.add((day, other))
                key = self._keys.shared(other, day).route.reveal()
                self._tracer.observe(observations.Agreed(day, self._keys.public, other, key))


def _copies(message: Message, labels: Sequence[ItemLabel]) -> list[Message]:
    return [
        Message(message.id, message.day, tokens, message.trail, message.body) for tokens in as_tokens(labels)
    ]
