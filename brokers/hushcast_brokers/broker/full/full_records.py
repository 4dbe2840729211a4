"""What a broker under `full` keeps on disk beside its children's items.

What the parent has of it, so that a message finds its row after a restart; the factors that it was given; and
where messages go whose labels are of a tree of before.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from hushcast_protocol.base.errors import DecodeError
from hushcast_protocol.base.record_kinds import RecordKind, StateOwner
from hushcast_protocol.base.wire import encode
from hushcast_protocol.brokers.full.day_rows import OnwardRoute
from hushcast_protocol.brokers.full.group_action import ELEMENT, GroupAction
from hushcast_protocol.brokers.full.layer_keys import LayerKeys
from hushcast_protocol.brokers.full.layered_word import LayeredWord, decode_layered
from hushcast_protocol.brokers.full.layers import LayerPath
from hushcast_runtime.storage.changes import Change
from hushcast_runtime.storage.recovery import restore
from hushcast_runtime.storage.store import Store, record_reader

_SHOWN = RecordKind(
    "shown",
    StateOwner.BROKER,
    holds="under layers: which items the parent has",
    lifetime="until their day has lapsed",
)
_FACTOR = RecordKind(
    "factor",
    StateOwner.BROKER,
    holds="under layers: factors that ancestors gave",
    lifetime="until their day has lapsed",
)
_FORMER = RecordKind(
    "former-label",
    StateOwner.BROKER,
    holds="under layers: where messages go whose labels are of a tree before",
    lifetime="until their day has lapsed",
)


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


class FormerLabel(NamedTuple):
    """Where messages of a day go that come under a label of a tree of before."""

    day: int
    onward: tuple[OnwardRoute, ...]


class FullBrokerState(NamedTuple):
    """What was kept."""

    shown: list[LayeredWord]
    factors: list[tuple[int, LayerPath, LayerKeys]]
    former: dict[bytes, FormerLabel]


class FullRecords:
    """Of one broker."""

    def __init__(self, action: GroupAction, store: Store) -> None:
        self._action = action
        self._store = store

    async def load(self) -> FullBrokerState:
        """Read all of it."""
        kept = FullBrokerState([], [], {})

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

    def keep_shown(self, shown: Iterable[LayeredWord], withdrawn: Iterable[bytes]) -> None:
        """Note what the parent has now, and has no more."""
        self._store.write_soon(
            *(Change(_SHOWN, one.name, encode(one)) for one in shown),
            *(Change(_SHOWN, name, None) for name in withdrawn),
        )

    def keep_factors(self, day: int, path: LayerPath, factors: LayerKeys) -> None:
        """Note the factors of a path."""
        under = _under(day, path)
        stored = _StoredFactor(encode(under), factors.route.reveal(), factors.content.reveal())
        self._store.write_soon(Change(_FACTOR, under.name, _pack(stored)))

    def keep_former(self, labels: dict[bytes, FormerLabel]) -> None:
        """Note where messages go that come under labels of before."""
        for name, one in labels.items():
            onward = [_StoredOnward(to.child, to.name, to.key.reveal()) for to in one.onward]
            self._store.write_soon(Change(_FORMER, name, _pack(_StoredFormer(one.day, onward))))

    def forget(
        self, shown: Iterable[bytes], paths: Iterable[tuple[int, LayerPath]], former: Iterable[bytes]
    ) -> None:
        """Forget what was for days that have lapsed."""
        self._store.write_soon(
            *(Change(_SHOWN, name, None) for name in shown),
            *(Change(_FACTOR, _under(*one).name, None) for one in paths),
            *(Change(_FORMER, name, None) for name in former),
        )

    def _factor(self, stored: _StoredFactor) -> tuple[int, LayerPath, LayerKeys]:
        received, under = self._action.received, decode_layered(stored.path)
        return under.day, under.layers, LayerKeys(received(stored.route), received(stored.content))

    def _former(self, stored: _StoredFormer) -> FormerLabel:
        received = self._action.received
        onward = (OnwardRoute(one.child, one.name, received(one.key)) for one in stored.onward)
        return FormerLabel(stored.day, tuple(onward))


def _under(day: int, path: LayerPath) -> LayeredWord:
    """Return an item that stands for a path."""
    return LayeredWord(day, bytes(ELEMENT), path)
