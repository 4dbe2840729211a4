"""A neighbourhood: one client, the brokers above it and their other children, with the real keys of layers.

It is what the attacks on one client's interest depend on. The root is not in it, and does not collude: the
paper has it trusted, and it reads every word. Keys are agreed on when they are first asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from functools import cached_property
from random import Random
from typing import NamedTuple

from hushcast_analytics.brokers.colluder_holdings import ColluderHoldings, ColluderTable, ends, left
from hushcast_protocol.base.crypto.secrets import AgreementKey, Secret
from hushcast_protocol.base.wire import PublicKey
from hushcast_protocol.brokers.full.aggregation import Factors, asking, unblinded, with_share
from hushcast_protocol.brokers.full.layer_keys import Keyring
from hushcast_protocol.brokers.full.layered_word import LayeredWord
from hushcast_protocol.brokers.full.layers import AnyLayer, LayerPath
from hushcast_protocol.brokers.full.rows import Rows
from hushcast_protocol.brokers.full.word_holder import WordHolder
from hushcast_protocol.brokers.privacy import Privacy

DAY = 20_000
_NETWORK = bytes(32)


class NeighbourNode(NamedTuple):
    """Where a node is: how many hops above the client, on its way to the root (`beside` 0) or not.

    Beside the way, `height` is of the broker that it is a child of, less 1, as the client's is 0.
    """

    height: int
    beside: int = 0


CLIENT = NeighbourNode(0)


class BrokerNeighbourhood:
    """The client asks for some words, each other child for one of its own."""

    def __init__(
        self, privacy: Privacy, fan_out: int, words_of: Callable[[NeighbourNode], list[bytes]], seed: int
    ) -> None:
        """`words_of` gives the words that a node asks for; `fan_out` counts a broker's children."""
        self.privacy, self.fan_out = privacy, fan_out
        self._words_of = words_of
        self._random = Random(seed)  # noqa: S311 - to be drawn again the same
        self._rings: dict[NeighbourNode, Keyring] = {}
        self._owners: dict[PublicKey, NeighbourNode] = {}
        self._factors: dict[tuple[NeighbourNode, LayerPath], Secret] = {}
        # What comes to the m-th broker has layers for m - 1 more, and it puts on one for another.
        self.way = tuple(NeighbourNode(height) for height in range(1, 2 * privacy.layers + 1))
        self.near = frozenset(self.way[: privacy.layers])
        """Brokers that know the client by a key."""

    def beside(self, height: int) -> Iterator[NeighbourNode]:
        """Return the other children of the broker at this height of the way."""
        return (NeighbourNode(height - 1, number) for number in range(1, self.fan_out))

    def held(
        self, colluders: Collection[NeighbourNode], up_to: int, told: Iterable[NeighbourNode] = ()
    ) -> ColluderHoldings:
        """Return what colluders hold, with the tables of the colluding brokers up to a height.

        What the client asks for comes first in each. Each colluding child has asked for a word of its own,
        and so has each of `told`, who may be honest.
        """
        asking_too = {*colluders, *told}
        tables = [self._table(node, asking_too) for node in self.way[:up_to] if node in colluders]
        layers = {ends(layer) for table in tables for item in table.items for layer in item.layers}
        ours = {self._ring(node).public for node in colluders}
        # Of the two ends of a layer, one that colludes has the key.
        keys = {one: self._key(one) for one in layers if one.owner in ours or one.target in ours}
        return ColluderHoldings(self.privacy.action, keys, tuple(tables))

    def beside_chosen(self, broker: NeighbourNode, words: Iterable[bytes]) -> ColluderHoldings:
        """Return what one of the nearest brokers holds, given what a made-up client asks for, too.

        That is a client of the same edge broker, and nobody else colludes. What the client asks for comes
        first in the table, then these words in their order.
        """
        made_up = NeighbourNode(0, self.fan_out)
        items = [*self._come[broker.height - 1], *self._coming(made_up, words)[broker.height - 1]]
        ours = self._ring(broker).public
        keys = {ends(one): self._key(one) for item in items for one in item.layers if one.target == ours}
        return ColluderHoldings(self.privacy.action, keys, (ColluderTable(ours, tuple(items)),))

    def _table(self, broker: NeighbourNode, asking_too: set[NeighbourNode]) -> ColluderTable:
        # On the way, a broker below is a child, too, and may ask for something itself.
        children = sorted(node for node in asking_too if node.height == broker.height - 1 and node != CLIENT)
        items = self._come[broker.height - 1]
        items = [*items, *(item for child in children for item in self._own(child))]
        public = self._ring(broker).public
        paths = {left(item, public) for item in items} if self.privacy.aggregates else set()
        return ColluderTable(public, tuple(items), {path: self._factor(broker, path) for path in paths})

    @cached_property
    def _come(self) -> list[list[LayeredWord]]:
        """What the client asks for, as it comes to each of the m nearest brokers."""
        return self._coming(CLIENT, self._words_of(CLIENT))

    def _coming(self, client: NeighbourNode, words: Iterable[bytes]) -> list[list[LayeredWord]]:
        """Return what a client of the same edge broker asks for, as it comes to each of the m nearest."""
        holder = WordHolder(self._ring(client), self._above(CLIENT), self.privacy.layers, DAY)
        found = [[holder.item(word) for word in words]]
        for below, broker in zip((client, *self.way), self.way[: self.privacy.layers - 1], strict=False):
            rows = Rows(self._ring(broker), self._above(broker), self.privacy.layers)
            for item in found[-1]:
                rows.put(self._ring(below).public, rows.read(item))
            found.append(list(rows.take_changes().shown))
        return found

    def _own(self, child: NeighbourNode) -> list[LayeredWord]:
        holder = WordHolder(self._ring(child), self._above(child), self.privacy.layers, DAY)
        return [holder.item(word) for word in self._words_of(child)]

    def _factor(self, broker: NeighbourNode, path: LayerPath) -> Secret:
        """Return what the ancestors tell a broker together, each of them its share."""
        if (broker, path) not in self._factors:
            ring, above = self._ring(broker), self._above(broker)
            ask = asking(self.privacy.action, ring.public, 1, DAY, path)
            for target in self.way[broker.height :][: self.privacy.layers - 1]:
                ask = with_share(self._ring(target), ask, 1)
            answer = Factors(1, ask.route, ask.content)
            found = unblinded(ring, above, self.privacy.layers, DAY, path, answer)
            self._factors[broker, path] = found.route
        return self._factors[broker, path]

    def _above(self, node: NeighbourNode) -> list[PublicKey]:
        return [self._ring(broker).public for broker in self.way[node.height :]]

    def _ring(self, node: NeighbourNode) -> Keyring:
        if node not in self._rings:
            own = AgreementKey(self._random.randbytes(AgreementKey.LENGTH))
            self._rings[node] = Keyring(self.privacy.action, own, _NETWORK)
            self._owners[own.public()] = node
        return self._rings[node]

    def _key(self, layer: AnyLayer) -> Secret:
        return self._ring(self._owners[layer.owner]).shared(layer.target, DAY).route
