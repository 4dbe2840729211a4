"""A neighbourhood: one client, the brokers above it and their other children, with the real keys of layers.

It is what the attacks on one client's interest depend on. The root is not in it, and does not collude: the
paper has it trusted, and it reads every word. Keys are agreed on when they are first asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from functools import cached_property
from random import Random
from typing import NamedTuple

from hushcast_analytics.brokers.held import Held, Table, left
from hushcast_protocol.base.secrets import AgreementKey, Secret
from hushcast_protocol.brokers.full.actions import KEY_SEED
from hushcast_protocol.brokers.full.items import Layered
from hushcast_protocol.brokers.full.keys import agree
from hushcast_protocol.brokers.full.layers import Layer, Path, in_order, own_layers
from hushcast_protocol.brokers.privacy import Privacy

DAY = 20_000
_NETWORK = bytes(32)


class Node(NamedTuple):
    """Where a node is: how many hops above the client, on its way to the root (`beside` 0) or not.

    Beside the way, `height` is of the broker that it is a child of, less 1, as the client's is 0.
    """

    height: int
    beside: int = 0


CLIENT = Node(0)


class Neighbourhood:
    """The client asks for `words`, each other child for one of its own."""

    def __init__(
        self, privacy: Privacy, fan_out: int, word_of: Callable[[Node], list[bytes]], seed: int
    ) -> None:
        """`word_of` gives the words that a node asks for; `fan_out` counts a broker's children."""
        self.privacy, self.fan_out = privacy, fan_out
        self._word_of = word_of
        self._random = Random(seed)  # noqa: S311 - to be drawn again the same
        self._drawn: dict[Node, AgreementKey] = {}
        self._names: dict[bytes, Node] = {}
        self._keys: dict[Layer, Secret] = {}
        self._common: dict[Node, Secret] = {}
        # What passes the m-th broker has layers for m - 1 more.
        self.way = tuple(Node(height) for height in range(1, 2 * privacy.layers))
        self.near = frozenset(self.way[: privacy.layers])
        """Brokers that know the client by a key."""

    def beside(self, height: int) -> Iterator[Node]:
        """Return the other children of the broker at this height of the way."""
        return (Node(height - 1, number) for number in range(1, self.fan_out))

    @cached_property
    def asked(self) -> list[list[Layered]]:
        """What the client asks for as it comes to the brokers at heights 1 to m, one list for each word."""
        return [self._on_the_way(word) for word in self._word_of(CLIENT)]

    def held(self, colluders: Collection[Node], up_to: int, told: Iterable[Node] = ()) -> Held:
        """Return what colluders hold, with the tables of the colluding brokers up to a height.

        Each colluding child has asked for a word of its own, and so has each of `told`, who may be honest.
        """
        tables = [self._table(node, colluders, told) for node in self.way[:up_to] if node in colluders]
        paths: set[Layer] = set()
        for table in tables:
            for item in table.items:
                paths.update(item.layers)
        ours = {self._public(node) for node in colluders}
        theirs = {one: self._key(one) for one in paths if one.owner in ours or one.target in ours}
        return Held(self.privacy.action, theirs, tuple(tables))

    def _table(self, broker: Node, colluders: Collection[Node], told: Iterable[Node]) -> Table:
        # On the way, a broker below is a child, too, and may ask for something itself.
        near = {node for node in (*colluders, *told) if node.height == broker.height - 1} - {CLIENT}
        children = sorted(near)
        items = [one[broker.height - 1] for one in self.asked]
        items += [self._own(node, broker, word) for node in children for word in self._word_of(node)]
        public = self._public(broker)
        paths = {left(item, public) for item in items} if self.privacy.aggregates else set()
        return Table(public, tuple(items), {path: self._factor(broker, path) for path in paths})

    def _on_the_way(self, word: bytes) -> list[Layered]:
        targets = self.way[: self.privacy.layers]
        layers = {Layer(self._public(CLIENT), self._public(target)) for target in targets}
        found = []
        for broker in targets:
            found.append(self._under(layers, word))
            # It takes its own layer off, and puts one on for its m-th ancestor.
            layers = {one for one in layers if one.target != self._public(broker)}
            if broker.height + self.privacy.layers <= len(self.way):
                above = Node(broker.height + self.privacy.layers)
                layers |= {Layer(self._public(broker), self._public(above))}
        return found

    def _own(self, child: Node, broker: Node, word: bytes) -> Layered:
        above = [self._public(node) for node in self.way[broker.height - 1 :]]
        return self._under(own_layers(self._public(child), above, self.privacy.layers), word)

    def _under(self, layers: Iterable[Layer], word: bytes) -> Layered:
        action, path = self.privacy.action, in_order(layers)
        key = action.product(map(self._key, path))
        return Layered(DAY, action.wrap(key, action.element(word)), path)

    def _factor(self, broker: Node, path: Path) -> Secret:
        """Return what the ancestors tell a broker together, each of them its part."""
        action = self.privacy.action
        if broker not in self._common:
            self._common[broker] = action.key(self._random.randbytes(KEY_SEED))
        return action.product((self._common[broker], action.inverse(action.product(map(self._key, path)))))

    def _public(self, node: Node) -> bytes:
        if node not in self._drawn:
            self._drawn[node] = AgreementKey(self._random.randbytes(AgreementKey.LENGTH))
            self._names[self._drawn[node].public()] = node
        return self._drawn[node].public()

    def _key(self, layer: Layer) -> Secret:
        if layer not in self._keys:
            own = self._drawn[self._names[layer.owner]]
            self._keys[layer] = agree(self.privacy.action, own, layer.target, _NETWORK, DAY).route
        return self._keys[layer]
