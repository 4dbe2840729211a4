"""A tree of nodes under `full`, in one process: what each holds, and what goes up and down between them."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from hushcast_protocol.base.crypto.hashes import Domain, digest
from hushcast_protocol.base.crypto.secrets import AgreementKey, Secret
from hushcast_protocol.base.errors import AuthenticationError
from hushcast_protocol.base.wire import decoder, encode
from hushcast_protocol.brokers.full.aggregation import (
    AskFactors,
    Factors,
    asking,
    check_asked,
    unblinded,
    with_share,
)
from hushcast_protocol.brokers.full.group_action import GroupAction
from hushcast_protocol.brokers.full.item_labels import ItemLabel, as_tokens, onward, read_labels
from hushcast_protocol.brokers.full.layer_keys import Keyring, LayerKeys
from hushcast_protocol.brokers.full.layered_word import LayeredWord
from hushcast_protocol.brokers.full.layers import AnyLayer, LayerPath
from hushcast_protocol.brokers.full.outer_message import content_of, labels_of, streamed
from hushcast_protocol.brokers.full.published_names import published_names
from hushcast_protocol.brokers.full.rows import RowChanges, Rows
from hushcast_protocol.brokers.full.word_holder import WordHolder
from hushcast_protocol.content.messages import HEADER, SEAL, TRAIL_SIZE, Message, message_id
from hushcast_protocol.content.payload_sizes import PADDED_SIZES

FIGURE_2 = {
    "B4": "C",
    "B3": "B4",
    "B1": "B3",
    "B2": "B3",
    "A1": "B1",
    "A2": "B1",
    "A3": "B2",
    "A4": "B2",
    "A5": "B2",
}
NETWORK = bytes(range(32))
DAY = 20_000

decode_item: Callable[[bytes], LayeredWord] = decoder(LayeredWord, "item", 1024)
decode_ask: Callable[[bytes], AskFactors] = decoder(AskFactors, "ask", 1024)


def key_of(name: str) -> AgreementKey:
    return AgreementKey(digest(Domain.NETWORK, name.encode()))


def word_of(number: int) -> bytes:
    return bytes([number]) * 16


def message(*words: bytes, text: bytes = b"body", day: int = DAY) -> Message:
    body = text.ljust(HEADER + PADDED_SIZES[0] + SEAL, b".")
    return Message(message_id(day, body), day, words, bytes(TRAIL_SIZE), body)


def enclosed(action: GroupAction, root: Secret, published: Message) -> tuple[Message, tuple[ItemLabel, ...]]:
    """Return the outer message, and the labels, as a root makes them that somebody asked."""
    content = content_of(action, root, published)
    return streamed(content, published), labels_of(content, published)


@dataclass
class Node:
    """One node; clients have no rows that matter."""

    name: str
    keys: Keyring
    above: tuple[bytes, ...]
    rows: Rows
    holder: WordHolder
    own: dict[bytes, LayeredWord] = field(default_factory=dict)
    """What it asks for itself, by word."""
    up: deque[RowChanges] = field(default_factory=deque)
    """What is on its way to the parent."""
    shown: dict[bytes, LayeredWord] = field(default_factory=dict)
    """What its parent has of it once all this is there, by name."""
    factors: dict[LayerPath, LayerKeys] = field(default_factory=dict)
    labels: list[ItemLabel] = field(default_factory=list)
    """Those under which the last publication came."""
    got: list[Message] = field(default_factory=list)

    def tell(self, shown: Sequence[LayeredWord], withdrawn: Sequence[bytes] = ()) -> None:
        self.shown |= {item.name: item for item in shown}
        for name in withdrawn:
            del self.shown[name]
        self.up.append(RowChanges(tuple(shown), tuple(withdrawn)))


class World:
    """A tree, given as the parent of each node but the root's."""

    def __init__(
        self,
        parents: Mapping[str, str],
        action: GroupAction,
        layers: int,
        *,
        aggregates: bool = True,
        day: int = DAY,
    ) -> None:
        self.parents = dict(parents)
        self.action, self.layers, self.aggregates, self.day = action, layers, aggregates, day
        self.root = next(name for name in parents.values() if name not in parents)
        self.nodes: dict[str, Node] = {}
        self._layers: dict[frozenset[str], dict[AnyLayer, None]] = {}  # by whose they are, as items came
        for name in [self.root, *parents]:
            keys = Keyring(action, key_of(name), NETWORK)
            above = tuple(key_of(one).public() for one in self.path(name))
            holder = WordHolder(keys, above, layers, day)
            self.nodes[name] = Node(name, keys, above, self._rows(keys, above), holder)
        self.names = {node.keys.public: name for name, node in self.nodes.items()}

    def _rows(self, keys: Keyring, above: tuple[bytes, ...]) -> Rows:
        return Rows(keys, above, self.layers, aggregates=self.aggregates)

    def path(self, name: str) -> list[str]:
        """Return a node's ancestors, the parent first."""
        found = []
        while name in self.parents:
            name = self.parents[name]
            found.append(name)
        return found

    def key(self, one: str, other: str, nth: int = 0) -> bytes:
        """Return k of two nodes; where it is updated, as it is on the nth item that a parent heard of."""
        return self._keys(one, other, nth).route.reveal()

    def content_key(self, one: str, other: str, nth: int = 0) -> bytes:
        """Return k' of two nodes, in the same way."""
        return self._keys(one, other, nth).content.reveal()

    def _keys(self, one: str, other: str, nth: int) -> LayerKeys:
        numbered = [*self._layers.get(frozenset((one, other)), ())]
        keys = self.nodes[one].keys
        return keys.on(numbered[nth], self.day) if numbered else keys.shared(key_of(other).public(), self.day)

    # Up.

    def want(self, name: str, word: bytes) -> LayeredWord:
        node = self.nodes[name]
        item = node.own[word] = node.holder.item(word)
        node.tell((item,))
        return item

    def unwant(self, name: str, word: bytes) -> None:
        node = self.nodes[name]
        item = node.own.pop(word)
        node.holder.forget(item.name)
        node.tell((), (item.name,))

    def say(self, name: str) -> None:
        """Have a broker say what changed."""
        changes = self.nodes[name].rows.take_changes()
        if changes.shown or changes.withdrawn:
            self.nodes[name].tell(*changes)

    def hear(self, name: str) -> None:
        """Have a node's parent take the next thing that is on its way from it."""
        node, rows = self.nodes[name], self.nodes[self.parents[name]].rows
        changes = node.up.popleft()
        for item in changes.shown:
            for layer in item.layers:
                ends = frozenset((self.names.get(layer.owner, ""), self.names.get(layer.target, "")))
                self._layers.setdefault(ends, {})[layer] = None
            rows.put(node.keys.public, rows.read(decode_item(encode(item))))
        for one in changes.withdrawn:
            rows.take(node.keys.public, one)

    def learn(self, name: str, day: int, path: LayerPath, pieces: int | None = None) -> None:
        """Have a broker ask its ancestors for the factors of a path, and compare by it, in so many pieces."""
        for _ in islice(self.nodes[name].rows.learn(day, path, self.factors(name, day, path)), pieces):
            pass

    def factors(self, name: str, day: int, path: LayerPath) -> LayerKeys:
        """Have a broker ask its ancestors for the factors of a path."""
        node = self.nodes[name]
        ask = asking(self.action, node.keys.public, 1, day, path)
        listed = {key_of(one).public() for one in self.path(name)}
        for at in self.path(name):
            above = self.nodes[at].keys
            last = check_asked(ask, node.above, self.layers, above.public, listed.__contains__)
            ask = decode_ask(encode(with_share(above, ask, ask.serial + 1)))
            if last:
                break
        answer = Factors(ask.serial, ask.route, ask.content)
        node.factors[path] = unblinded(node.keys, node.above, self.layers, day, path, answer)
        return node.factors[path]

    def settle(self, *, learn: bool = True) -> None:
        """Have all said and heard, and all factors learned."""
        deepest_first = sorted(self.parents, key=lambda name: -len(self.path(name)))
        for name in deepest_first:
            for day, path in self.nodes[name].rows.missing() if learn else ():
                self.learn(name, day, path)
            self.say(name)
            while self.nodes[name].up:
                self.hear(name)
        self.nodes[self.root].rows.take_changes()

    def restart(self, name: str) -> None:
        """Start a broker anew with what its disk has: its children's items, its factors, and what it said."""
        node = self.nodes[name]
        before = node.rows
        node.rows = self._rows(node.keys, node.above)
        for child in self.names:
            for read in before.of(child).values():
                node.rows.put(child, node.rows.read(read.item))
        for path, factors in node.factors.items():
            list(node.rows.learn(self.day, path, factors))
        for item in node.shown.values():
            if item not in node.own.values():
                node.rows.recall(item)

    def attach_anew(self, name: str) -> None:
        """Have a node's parent drop all that it had of it, and have it sent again."""
        node, rows = self.nodes[name], self.nodes[self.parents[name]].rows
        while rows.drop(node.keys.public, 2):
            pass
        node.up.clear()
        node.tell(tuple(node.shown.values()))

    # Down.

    def publish(self, *words: bytes, text: bytes = b"body") -> dict[str, list[Message]]:
        """Publish at the root; return what each node that got something found inside."""
        for node in self.nodes.values():
            node.got, node.labels = [], []
        inner = message(*words, text=text, day=self.day)
        root = self.nodes[self.root]
        named = message(*published_names(self.action, words), text=text, day=self.day)
        outer, labels = enclosed(self.action, root.keys.own, named)
        root.labels = list(labels)
        self._pass(root, outer, labels)
        found = {name: node.got for name, node in self.nodes.items() if node.got}
        assert all(one.id == inner.id and one.body == inner.body for got in found.values() for one in got)
        return found

    def _pass(self, node: Node, outer: Message, labels: Sequence[ItemLabel]) -> None:
        for child, mine in onward(node.rows, self.day, labels).items():
            for tokens in as_tokens(mine):
                self._receive(self.nodes[self.names[child]], outer, tokens)

    def _receive(self, node: Node, outer: Message, tokens: tuple[bytes, ...]) -> None:
        copy = Message(outer.id, outer.day, tokens, outer.trail, outer.body)
        with contextlib.suppress(AuthenticationError):
            node.got.append(node.holder.open(copy))
        labels = read_labels(tokens)
        node.labels += labels
        self._pass(node, outer, labels)

    # What there is.

    def interested(self, *words: bytes) -> set[str]:
        """Return who asks for one of the words: what is to be found by `publish`."""
        return {name for name, node in self.nodes.items() if node.own.keys() & set(words)}

    def rows_of(self, name: str) -> list[set[str]]:
        """Return a broker's rows, each as the children that are in it."""
        return [
            {self.names[child] for child, _ in row.members} for row in self.nodes[name].rows.rows(self.day)
        ]
