"""Openings: under which names messages may come to a daemon, for which interests, and what opens them.

They outlive what is asked for: until its day lapses, a message may be under way whose label is of a tree, or
an edge broker, of before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import msgspec

from hushcast_protocol.base.crypto.hashes import LABEL
from hushcast_protocol.base.crypto.secrets import AgreementKey
from hushcast_protocol.base.errors import AuthenticationError, DecodeError
from hushcast_protocol.base.record_kinds import RecordKind, StateOwner
from hushcast_protocol.base.wire import encode
from hushcast_protocol.brokers.full.group_action import GroupAction
from hushcast_protocol.brokers.full.item_labels import ItemLabel
from hushcast_protocol.brokers.full.layer_keys import Keyring
from hushcast_protocol.brokers.full.layered_word import LayeredWord, decode_layered
from hushcast_protocol.brokers.full.word_holder import opened
from hushcast_protocol.content.messages import Message
from hushcast_runtime.storage.changes import Change
from hushcast_runtime.storage.recovery import restore
from hushcast_runtime.storage.store import Store, record_reader

_KIND = RecordKind(
    "opening",
    StateOwner.BROKERS_DAEMON,
    holds="under layers: what opens the messages of an item",
    lifetime="until its day has lapsed",
)


class _Stored(msgspec.Struct, frozen=True, array_like=True):
    item: bytes
    own: bytes
    routes: bytes


_read = record_reader(_Stored, "opening")
_pack = msgspec.msgpack.Encoder().encode


class _Opening(NamedTuple):
    item: LayeredWord
    own: AgreementKey
    routes: tuple[bytes, ...]


class Openings:
    """Those of one daemon, on disk."""

    def __init__(self, action: GroupAction, network: bytes, store: Store) -> None:
        self._action = action
        self._network = network
        self._store = store
        self._known: dict[bytes, _Opening] = {}

    async def load(self) -> None:
        """Know those of before a restart."""
        await restore(self._store, _KIND, self._take_up)

    def _take_up(self, name: bytes, value: bytes) -> None:
        stored = _read(value)
        item, own = decode_layered(stored.item), AgreementKey(stored.own)
        if item.name != name or len(stored.routes) % LABEL:
            raise DecodeError("an opening is kept under another's name")
        routes = (stored.routes[at : at + LABEL] for at in range(0, len(stored.routes), LABEL))
        self._known[name] = _Opening(item, own, tuple(routes))

    def add(self, item: LayeredWord, own: AgreementKey, route: bytes) -> bool:
        """Open what comes for an item, for an interest, from now on; return whether it is new.

        It is written before anything that is written later.
        """
        before = self._known.get(item.name)
        routes = before.routes if before is not None else ()
        if route in routes:
            return False
        one = self._known[item.name] = _Opening(item, own, (*routes, route))
        stored = _Stored(encode(item), own.reveal(), b"".join(one.routes))
        self._store.write_soon(Change(_KIND, item.name, _pack(stored)))
        return True

    def forget(self, is_over: Callable[[int], bool]) -> None:
        """Forget the days that have lapsed."""
        gone = [name for name, one in self._known.items() if is_over(one.item.day)]
        for name in gone:
            del self._known[name]
        self._store.write_soon(*(Change(_KIND, name, None) for name in gone))

    def opened(self, labels: Iterable[ItemLabel], message: Message) -> tuple[set[bytes], Message]:
        """Return whose a message is, and what is in it; raise `PeerError` where nobody asked for it."""
        known = [(self._known[label.name], label) for label in labels if label.name in self._known]
        if not known:
            raise AuthenticationError("a message has no label of what was asked for")
        one, label = known[0]
        keys = Keyring(self._action, one.own, self._network)
        inside = opened(keys, one.item, label, message)
        tokens = tuple(label.name for _, label in known)
        routes = {route for one, _ in known for route in one.routes}
        return routes, msgspec.structs.replace(inside, tokens=tokens)
