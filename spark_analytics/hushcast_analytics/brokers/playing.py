"""Playing the attacks on what colluders' daemons noted of one day: rows of traces in, what was read out.

A row that comes out says: whoever is known by the key `owner` wants what has this `element`, as `attack`
found. Nothing else than the colluders' own observations and their dictionary is looked at.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from hushcast_analytics.brokers.guessing import Dictionary, likeliest_pads
from hushcast_analytics.brokers.held import Held, Table, taken_off
from hushcast_analytics.brokers.opening import broker_and_child, by_either, compared, consecutive
from hushcast_protocol.base.secrets import Secret
from hushcast_protocol.base.wire import decoder
from hushcast_protocol.brokers.full.actions import PADS, Action
from hushcast_protocol.brokers.full.items import Layered
from hushcast_protocol.brokers.full.layers import Layer, Path

Row = Mapping[str, Any]
"""A row of `tables.OBSERVATIONS`."""

SAMPLE = 6  # elements that a pad is looked for in; it costs a dictionary for each pair of them
_MAX_ITEM = 1024  # bytes

read_item: Callable[[bytes], Layered] = decoder(Layered, "item", _MAX_ITEM)
_read_path: Callable[[bytes], Path] = decoder(tuple[Layer, ...], "path", _MAX_ITEM)


class Found(NamedTuple):
    """What an attack says of somebody."""

    attack: str
    owner: bytes
    element: bytes


def played(action: Action, rows: Iterable[Row], words: Sequence[bytes]) -> Iterator[Found]:
    """Yield what colluders find in their rows of one day; `words` are elements of their dictionary."""
    held, from_clients = _held(action, rows)
    for table, item in held.seen():
        yield from _said("dictionary", item, item.element)
        yield from _said("dictionary", item, taken_off(held, table, item))
        if item.name in from_clients:
            yield from _said("consecutive", item, consecutive(held, table, item))
            yield from _said("broker-and-child", item, broker_and_child(held, table, item))
        yield from _said("anywhere", item, by_either(held, table, item))
    if action is PADS:
        dictionary = Dictionary({word: word.hex() for word in words})
        for table in held.tables:
            yield from _under_one_pad(held, table, dictionary)


def _said(attack: str, item: Layered, element: bytes | None) -> Iterator[Found]:
    """Yield it of all whose layers are on an item: who asked is one of them, until its last is taken off."""
    if element is not None:
        for owner in {layer.owner for layer in item.layers}:
            yield Found(attack, owner, element)


def _under_one_pad(held: Held, table: Table, dictionary: Dictionary) -> Iterator[Found]:
    """Yield what a broker alone names in its table, all of which it has under few pads."""
    pads: defaultdict[Path | None, list[tuple[Layered, bytes]]] = defaultdict(list)
    for item in table.items:
        path = tuple(layer for layer in item.layers if layer.target != table.broker)
        common = compared(held, table, item)
        element = taken_off(held, table, item) if common is None else common
        if element is not None:
            pads[None if common is not None else path].append((item, element))
    for seen in pads.values():
        sample = list(dict.fromkeys(element for _, element in seen))[:SAMPLE]
        said = {frozenset(_named(seen, pad, dictionary)) for pad in likeliest_pads(sample, dictionary)}
        # Two readings that say the same of everybody are as good as one: two words of one client.
        if len(said) == 1:
            yield from next(iter(said))


def _named(seen: Iterable[tuple[Layered, bytes]], pad: int, dictionary: Dictionary) -> Iterator[Found]:
    for item, element in seen:
        word = dictionary.numbers.get(int.from_bytes(element, "big") ^ pad)
        if word is not None:
            yield from _said("pairs", item, bytes.fromhex(word))


def _held(action: Action, rows: Iterable[Row]) -> tuple[Held, set[bytes]]:
    """Return what colluders hold, and the names of the items that came from clients."""
    keys: dict[Layer, Secret] = {}
    own: dict[str, bytes] = {}
    items: defaultdict[str, dict[bytes, Layered]] = defaultdict(dict)
    factors: defaultdict[str, dict[Path, Secret]] = defaultdict(dict)
    from_clients: set[bytes] = set()
    for row in rows:
        kind, node = row["kind"], row["node"]
        if kind == "agreed":
            one, other = bytes.fromhex(row["own"]), bytes.fromhex(row["other"])
            keys[Layer(one, other)] = keys[Layer(other, one)] = action.received(bytes.fromhex(row["key"]))
            own[node] = one
        elif kind == "compared":
            factors[node][_read_path(bytes.fromhex(row["path"]))] = action.received(bytes.fromhex(row["key"]))
        elif kind == "asked":
            item = read_item(bytes.fromhex(row["filter"]))
            from_clients.add(item.name)
            items[node][item.name] = item
        elif kind == "advertised" and row["child"]:
            for shown in row["show"]:
                item = read_item(bytes.fromhex(shown))
                items[node][item.name] = item
    tables = [
        Table(own[node], tuple(found.values()), factors[node]) for node, found in items.items() if node in own
    ]
    return Held(action, keys, tuple(tables)), from_clients
