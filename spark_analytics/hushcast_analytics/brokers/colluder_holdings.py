"""What colluders hold together of one day under `full`: keys, what came to their brokers, factors.

A broker and its colluders use all of this as honest ones do; nothing here is granted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from hushcast_protocol.base.crypto.secrets import Secret
from hushcast_protocol.brokers.full.group_action import GroupAction
from hushcast_protocol.brokers.full.layered_word import LayeredWord
from hushcast_protocol.brokers.full.layers import AnyLayer, Layer, LayerPath, NumberedLayer


@dataclass(frozen=True)
class ColluderTable:
    """What one colluding broker has: items as they came, and the factors it was given.

    A factor brings what is under a path under the broker's common key, which it does not know; the quotient
    of two factors is the paper's aggregation secret.
    """

    broker: bytes
    """Its X25519 key."""
    items: tuple[LayeredWord, ...]
    factors: Mapping[LayerPath, Secret] = field(default_factory=dict)


@dataclass(frozen=True)
class ColluderHoldings:
    """What all colluders have: keys of the layers one end of which is theirs, and their brokers' tables."""

    action: GroupAction
    keys: Mapping[Layer, Secret]
    """By whose and for whom a layer is; of one with a number, before it is updated to that."""
    tables: tuple[ColluderTable, ...]
    _commons: dict[bytes, Secret | None] = field(default_factory=dict, init=False, compare=False)

    def seen(self) -> Iterator[tuple[ColluderTable, LayeredWord]]:
        """Yield all that came to a colluding broker, with that broker's table."""
        for table in self.tables:
            for item in table.items:
                yield table, item

    def key_of(self, path: LayerPath) -> Secret | None:
        """Return the key that a path puts on, if colluders have all of it."""
        if not all(ends(layer) in self.keys for layer in path):
            return None
        return self.action.product(map(self._key, path))

    def _key(self, layer: AnyLayer) -> Secret:
        key = self.keys[ends(layer)]
        return self.action.updated(key, layer.number) if isinstance(layer, NumberedLayer) else key

    def common(self, table: ColluderTable) -> Secret | None:
        """Return a broker's common key, by a path that colluders have the whole key of, if there is one."""
        if table.broker not in self._commons:
            keys = ((self.key_of(path), factor) for path, factor in table.factors.items())
            found = (self.action.product((key, factor)) for key, factor in keys if key is not None)
            self._commons[table.broker] = next(found, None)
        return self._commons[table.broker]


def ends(layer: AnyLayer) -> Layer:
    """Return whose and for whom a layer is, whatever its number."""
    return Layer(layer.owner, layer.target)


def left(item: LayeredWord, broker: bytes) -> LayerPath:
    """Return the path that is left once a broker has taken off the layer that is for it."""
    return tuple(layer for layer in item.layers if layer.target != broker)


def taken_off(held: ColluderHoldings, table: ColluderTable, item: LayeredWord) -> bytes | None:
    """Return the element as a colluding broker compares it; none if no key of its own is on it."""
    own = held.key_of(tuple(layer for layer in item.layers if layer.target == table.broker))
    return None if own is None else held.action.strip(own, item.element)
