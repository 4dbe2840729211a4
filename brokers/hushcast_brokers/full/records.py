"""What a broker under `full` keeps on disk beside its children's items.

What the parent has of it, so that a message finds its row after a restart; the factors that it was given; and
where messages go whose labels are of a tree of before.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from hushcast_protocol.base.errors import DecodeError
from hushcast_protocol.base.wire import encode
from hushcast_protocol.brokers.full.actions import ELEMENT, Action
from hushcast_protocol.brokers.full.day_rows import Onward
from hushcast_protocol.brokers.full.items import Layered, decode_layered
from hushcast_protocol.brokers.full.keys import LayerKeys
from hushcast_protocol.brokers.full.layers import Path
from hushcast_runtime.restoring import restore
from hushcast_runtime.store import Change, Store, record_reader

_SHOWN, _FACTOR, _FORMER = "shown", "factor", "former-label"


class _StoredFactor(msgspec.Struct, frozen=True, array_like=True):
    path: bytes  # an item's, whose element says nothing
    route: bytes
    content: bytes


class _StoredOnward(msgspec.Struct, frozen=True, array_like=True):
    child: bytes
    name: bytes
    key: bytes


class _StoredFormer(msgspec.Struct, frozen=True, array_like=True):
    day: int
    onward: list[_StoredOnward]


_read_factor = record_reader(_StoredFactor, "factor")
_read_former = record_reader(_StoredFormer, "label")
_pack = msgspec.msgpack.Encoder().encode


class Former(NamedTuple):
    """Where messages of a day go that come under a label of a tree of before."""

    day: int
    onward: tuple[Onward, ...]


class Kept(NamedTuple):
    """What was kept."""

    shown: list[Layered]
    factors: list[tuple[int, Path, LayerKeys]]
    former: dict[bytes, Former]


class FullRecords:
    """Of one broker."""

    def __init__(self, action: Action, store: Store) -> None:
        self._action = action
        self._store = store

    async def load(self) -> Kept:
        """Read all of it."""
        kept = Kept([], [], {})

        def take_shown(name: bytes, value: bytes) -> None:
            item = decode_layered(value)
            if item.name != name:
                raise DecodeError("an item is kept under another's name")
            kept.shown.append(item)

        await restore(self._store, _SHOWN, take_shown)
        await restore(
            self._store, _FACTOR, lambda _, value: kept.factors.append(self._factor(_read_factor(value)))
        )
        await restore(
            self._store,
            _FORMER,
            lambda name, value: kept.former.update({name: self._former(_read_former(value))}),
        )
        return kept

    def keep_shown(self, shown: Iterable[Layered], withdrawn: Iterable[bytes]) -> None:
        """Note what the parent has now, and has no more."""
        self._store.write_soon(
            *(Change(_SHOWN, one.name, encode(one)) for one in shown),
            *(Change(_SHOWN, name, None) for name in withdrawn),
        )

    def keep_factors(self, day: int, path: Path, factors: LayerKeys) -> None:
        """Note the factors of a path."""
        under = _under(day, path)
        stored = _StoredFactor(encode(under), factors.route.reveal(), factors.content.reveal())
        self._store.write_soon(Change(_FACTOR, under.name, _pack(stored)))

    def keep_former(self, labels: dict[bytes, Former]) -> None:
        """Note where messages go that come under labels of before."""
        for name, one in labels.items():
            onward = [_StoredOnward(to.child, to.name, to.key.reveal()) for to in one.onward]
            self._store.write_soon(Change(_FORMER, name, _pack(_StoredFormer(one.day, onward))))

    def forget(
        self, shown: Iterable[bytes], paths: Iterable[tuple[int, Path]], former: Iterable[bytes]
    ) -> None:
        """Forget what was for days that have lapsed."""
        self._store.write_soon(
            *(Change(_SHOWN, name, None) for name in shown),
            *(Change(_FACTOR, _under(*one).name, None) for one in paths),
            *(Change(_FORMER, name, None) for name in former),
        )

    def _factor(self, stored: _StoredFactor) -> tuple[int, Path, LayerKeys]:
        received, under = self._action.received, decode_layered(stored.path)
        return under.day, under.layers, LayerKeys(received(stored.route), received(stored.content))

    def _former(self, stored: _StoredFormer) -> Former:
        received = self._action.received
        onward = (Onward(one.child, one.name, received(one.key)) for one in stored.onward)
        return Former(stored.day, tuple(onward))


def _under(day: int, path: Path) -> Layered:
    """Return an item that stands for a path."""
    return Layered(day, bytes(ELEMENT), path)
