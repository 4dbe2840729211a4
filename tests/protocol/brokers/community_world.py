"""Communities in a tree of brokers without a network: who is shown what, and who gets which message."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from random import Random

from filter_examples import TOPICS, drawn
from filter_examples import message as values_of

from hushcast_protocol.base.crypto.key_agreement import agreement_key
from hushcast_protocol.base.crypto.secrets import AgreementKey, Seed, TopicKey
from hushcast_protocol.base.crypto.signatures import Signed
from hushcast_protocol.base.epochs import Calendar
from hushcast_protocol.base.errors import PeerError
from hushcast_protocol.brokers.clear_words import from_outside, outside, point, read_words, shown, words
from hushcast_protocol.brokers.community.charter import check_charter, epoch_key, sign_charter
from hushcast_protocol.brokers.community.child_tables import ChildItemName, ChildTables
from hushcast_protocol.brokers.community.community_epochs import (
    CommunityEpochs,
    ForgottenEpoch,
    KnownEpoch,
    MemberEpoch,
)
from hushcast_protocol.brokers.community.community_table import words_of
from hushcast_protocol.brokers.community.parent_view import ParentView
from hushcast_protocol.brokers.community.sealed_filter import (
    SealedFilter,
    open_filter,
    open_words,
    seal_filter,
    seal_words,
)
from hushcast_protocol.brokers.filters import Filter, covers
from hushcast_protocol.content.attributes import Values
from hushcast_protocol.content.messages import HEADER, SEAL, TRAIL_SIZE, Message, message_id
from hushcast_protocol.content.payload_sizes import PADDED_SIZES
from hushcast_protocol.content.topics import Topic

NETWORK = b"n" * 32
CALENDAR = Calendar(3600)
NOW = 1_800_000_000.0
KEYS = {topic: TopicKey(bytes([number]) * 32) for number, topic in enumerate(TOPICS)}


class Keeper:
    """Who signs the charters of one community."""

    def __init__(self, random: Random) -> None:
        self.seed = Seed.draw(random.randbytes)
        self.key = self.seed.public()
        self.members: set[bytes] = set()
        self.epoch = 0
        self._random = random

    def sign(self, begins: float = NOW) -> Signed:
        """Sign the next epoch's charter for those who are members now."""
        self.epoch += 1
        return sign_charter(self.seed, NETWORK, self.epoch, int(begins), self.members, self._random.randbytes)


class Member:
    """Anybody who hears charters: a broker or a client."""

    def __init__(self, random: Random) -> None:
        self.seed = Seed.draw(random.randbytes)
        self.key = self.seed.public()
        self.own: AgreementKey = agreement_key(self.seed)
        self.epochs = CommunityEpochs(CALENDAR)

    def hear(self, signed: Signed) -> tuple[MemberEpoch | None, list[ForgottenEpoch]]:
        """Take a charter; return the epoch that it opens, and those that there is no room for any more."""
        charter = check_charter(signed, NETWORK)
        key = epoch_key(charter, self.own)
        epoch = None if key is None else MemberEpoch(charter.community, charter.epoch, charter.begins, key)
        return epoch, self.epochs.add(charter.community, charter.epoch, KnownEpoch(charter.begins, epoch))


@dataclass
class Asked:
    """What a client asks for in a community."""

    community: bytes
    filter: Filter
    items: dict[bytes, SealedFilter] = field(default_factory=dict)
    """By label."""


class Client(Member):
    """Who asks for filters at a broker, and gets messages."""

    def __init__(self, random: Random, broker: Broker) -> None:
        super().__init__(random)
        self.broker = broker
        self.asked: list[Asked] = []
        self.got: list[Message] = []
        broker.clients[self.key] = self

    def ask(self, community: bytes, given: Filter) -> Asked | None:
        """Ask for something; nothing where it did already."""
        if any((one.community, one.filter) == (community, given) for one in self.asked):
            return None
        one = Asked(community, given)
        self.asked.append(one)
        self.renew()
        return one

    def end(self, one: Asked) -> None:
        self.asked.remove(one)
        for sealed in one.items.values():
            self._take_back(sealed)
        self.broker.say()

    def renew(self) -> None:
        """Ask under each epoch that is open, and no other."""
        for one in self.asked:
            epochs = {epoch.label: epoch for epoch in self.epochs.of(one.community)}
            for label, epoch in epochs.items():
                if label not in one.items:
                    sealed = seal_filter(epoch, self.key, shown(KEYS[one.filter.topic], one.filter))
                    one.items[label] = sealed
                    self.broker.hear_item(self.key, sealed)
            for label in one.items.keys() - epochs.keys():
                self._take_back(one.items.pop(label))
        self.broker.say()

    def _take_back(self, sealed: SealedFilter) -> None:
        if sealed.name in self.broker.below.of(self.key):  # else a member has dropped it by itself
            self.broker.below.take(self.key, sealed.name)

    def reads(self, message: Message) -> bool:
        """Tell whether it can open a message, and asked for it."""
        epoch = self.epochs.under(message.tokens[0])
        if epoch is None:
            return False
        found = open_words(epoch, message.id, message.tokens)
        return any(one.community == epoch.community and matches(one.filter, found) for one in self.asked)


class Broker(Member):
    """A broker of the tree."""

    def __init__(self, random: Random, parent: Broker | None) -> None:
        super().__init__(random)
        self.parent = parent
        self.children: dict[bytes, Broker] = {}
        self.clients: dict[bytes, Client] = {}
        self.above = ParentView(self.key)
        self.below = ChildTables(self.epochs, self.above)
        self.shown: dict[bytes, SealedFilter] = {}
        self.seen: list[SealedFilter] = []
        if parent is not None:
            parent.children[self.key] = self

    def hear_item(self, child: bytes, sealed: SealedFilter) -> None:
        self.seen.append(sealed)
        self.below.put(child, sealed.name, self.below.table.read(sealed))

    def learn(self, signed: Signed) -> None:
        epoch, over = self.hear(signed)
        for gone in over:
            if gone.epoch is not None:
                self.settle(gone.epoch)
        if epoch is not None:
            assert self.settle(epoch) == []
        self.say()

    def settle(self, epoch: MemberEpoch) -> list[ChildItemName]:
        """Read anew what is under an epoch that has opened, or is over; return what is gone."""
        gone = []
        while self.below.table.is_stale(epoch.label):
            gone += self.below.settle(epoch.label)
            self.say()
        return gone

    def say(self) -> None:
        """Show the parent what changed, and so on up to the root."""
        changes = self.above.take_changes()
        for name in changes.withdraw:
            del self.shown[name]
        for sealed in changes.show:
            assert sealed.name not in self.shown
            self.shown[sealed.name] = sealed
        if self.parent is not None:
            for name in changes.withdraw:
                if name in self.parent.below.of(self.key):  # else a member has dropped it by itself
                    self.parent.below.take(self.key, name)
            for sealed in changes.show:
                self.parent.hear_item(self.key, sealed)
            self.parent.say()

    def whom(self, message: Message) -> set[bytes]:
        return self.below.table.whom(message.tokens[0], words_of(self.epochs, message))

    def pass_on(self, message: Message) -> None:
        for child in self.whom(message):
            if child in self.children:
                self.children[child].pass_on(message)
            else:
                self.clients[child].got.append(message)


class World:
    """A tree, communities, and clients."""

    def __init__(self, seed: int, communities: int = 2, brokers: int = 6, clients: int = 6) -> None:
        self.random = Random(seed)
        self.keepers = [Keeper(self.random) for _ in range(communities)]
        self.brokers = [Broker(self.random, None)]
        for _ in range(brokers - 1):
            self.brokers.append(Broker(self.random, self.random.choice(self.brokers)))
        self.clients = [Client(self.random, self.random.choice(self.brokers)) for _ in range(clients)]
        for keeper in self.keepers:
            for one in (*self.brokers, *self.clients):
                if self.random.random() < 0.5:
                    keeper.members.add(one.own.public())
            self.tell(keeper.sign())

    @property
    def root(self) -> Broker:
        return self.brokers[0]

    def tell(self, signed: Signed) -> None:
        """Let all hear of a charter, in any order."""
        everybody: list[Member] = [*self.brokers, *self.clients]
        self.random.shuffle(everybody)
        for one in everybody:
            if isinstance(one, Broker):
                one.learn(signed)
            else:
                one.hear(signed)
                assert isinstance(one, Client)
                one.renew()

    def draw(self) -> Filter:
        return drawn(self.random, TOPICS[:2])

    def message(self, epoch: MemberEpoch, topic: Topic, values: Values) -> Message:
        body = self.random.randbytes(8).ljust(HEADER + PADDED_SIZES[0] + SEAL, b".")
        day = CALENDAR.day(NOW)
        id_ = message_id(day, body)
        tokens = seal_words(epoch, id_, words(KEYS[topic], topic, values), self.random.randbytes)
        return Message(id_, day, tokens, bytes(TRAIL_SIZE), body)

    def publish(self, keeper: Keeper) -> None:
        """Publish something in a community, and see that just those get it who are to."""
        insiders = [one for one in (*self.brokers, *self.clients) if one.epochs.current(keeper.key, NOW)]
        if not insiders:
            return
        epoch = self.random.choice(insiders).epochs.current(keeper.key, NOW)
        assert epoch is not None
        topic = self.random.choice(TOPICS[:2])
        values = values_of(self.random, topic)
        message = self.message(epoch, topic, values)
        for client in self.clients:
            client.got.clear()
        self.root.pass_on(message)
        for client in self.clients:
            wants = any(
                one.community == keeper.key
                and one.filter.topic == topic
                and one.filter.predicate.matches(values)
                for one in client.asked
            )
            is_in = epoch.label in {one.label for one in client.epochs.open}
            assert len(client.got) <= 1
            assert client.reads(message) == (wants and is_in)
            if wants and is_in:
                assert client.got == [message]
            elif client.got and self.is_in(client.broker, epoch):
                raise AssertionError("a member let somebody have what it did not ask for")
            elif client.got:
                assert any(
                    sealed.label == epoch.label for one in client.asked for sealed in one.items.values()
                )

    def is_in(self, member: Member, epoch: MemberEpoch) -> bool:
        return member.epochs.under(epoch.label) is not None

    def check_shown(self) -> None:
        """Nothing is shown to who is no member of where it came from; and nothing covered, to any parent."""
        for broker in self.brokers:
            for sealed in broker.shown.values():
                for other in self.brokers:
                    self.check_opens(other, sealed)
            assert broker.shown == {
                **{
                    name: given.sealed
                    for child in broker.below.children
                    for name, given in broker.below.of(child).items()
                    if given.filter is None
                },
                **{
                    sealed.name: sealed
                    for epoch in broker.epochs.open
                    for sealed in self.roots(broker, epoch)
                },
            }

    def roots(self, broker: Broker, epoch: MemberEpoch) -> list[SealedFilter]:
        held = {
            given.filter
            for child in broker.below.children
            for given in broker.below.of(child).values()
            if given.sealed.label == epoch.label and given.filter is not None
        }
        return [
            seal_filter(epoch, broker.key, from_outside(one))
            for one in held
            if not any(other != one and covers(other, one) for other in held)
        ]

    def check_opens(self, member: Member, sealed: SealedFilter) -> None:
        """A member opens what is of its communities, and nothing else, whatever label it takes it for."""
        for epoch in member.epochs.open:
            try:
                open_filter(epoch, sealed)
            except PeerError:
                assert epoch.label != sealed.label
            else:
                assert epoch.label == sealed.label


def matches(given: Filter, found: tuple[bytes, ...]) -> bool:
    """Tell whether words meet a filter, as brokers compare them."""
    seen = outside(shown(KEYS[given.topic], given))
    topic, values = read_words(found)
    return seen.topic.name == topic.hex() and covers(seen, Filter(seen.topic, point(seen.topic, values)))


def play(seed: int, steps: int = 40) -> None:
    """Let clients come and go, members be admitted and expelled, and messages be published."""
    world = World(seed)
    random = world.random
    live: list[tuple[Client, Asked]] = []
    for step in range(steps):
        chance = random.random()
        if chance < 0.4:
            client, keeper = random.choice(world.clients), random.choice(world.keepers)
            if (asked := client.ask(keeper.key, world.draw())) is not None:
                live.append((client, asked))
        elif chance < 0.55 and live:
            client, asked = live.pop(random.randrange(len(live)))
            client.end(asked)
        elif chance < 0.62:
            keeper = random.choice(world.keepers)
            keeper.members ^= {random.choice([*world.brokers, *world.clients]).own.public()}
            world.tell(keeper.sign(NOW - 1))
        else:
            world.publish(random.choice(world.keepers))
        if step % 5 == 0 or step == steps - 1:
            world.check_shown()


if __name__ == "__main__":
    for number in range(int(sys.argv[1])):
        play(number)
    print(f"{sys.argv[1]} worlds: each message reached just those who asked and were in the community")
