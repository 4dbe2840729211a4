"""Plays the attacks on what colluders' daemons noted of one day: rows of traces in, what was read out.

A row that comes out says: whoever is known by the key `owner` wants what has this `element`, as `attack`
found. Nothing else than the colluders' own observations and their dictionary is looked at.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from hushcast_analytics.brokers.colluder_holdings import ColluderHoldings, ColluderTable, taken_off
from hushcast_analytics.brokers.dictionary_attack import Dictionary, likeliest_pads
from hushcast_analytics.brokers.layer_removal import broker_and_child, compared, consecutive
from hushcast_protocol.base.crypto.secrets import Secret
from hushcast_protocol.base.wire import decoder
from hushcast_protocol.brokers.full.group_action import PADS, GroupAction
from hushcast_protocol.brokers.full.layered_word import LayeredWord
from hushcast_protocol.brokers.full.layers import AnyLayer, Layer, LayerPath

Row = Mapping[str, Any]
"""A row of `trace_schemas.OBSERVATIONS`."""

BROKERS = "brokers"
"""Whatever brokers open without a client of theirs, anywhere, but for children that they make up."""
SAMPLE = 6  # elements that a pad is looked for in; it costs a dictionary for each pair of them
_MAX_ITEM = 1024  # bytes

read_item: Callable[[bytes], LayeredWord] = decoder(LayeredWord, "item", _MAX_ITEM)
_read_path: Callable[[bytes], LayerPath] = decoder(tuple[AnyLayer, ...], "path", _MAX_ITEM)


class AttackFinding(NamedTuple):
    """What an attack says of somebody."""

    attack: str
    owner: bytes
    element: bytes
    item: bytes
    """The name of what was opened."""


class _Sight(NamedTuple):
    """What colluders hold, all together, without their clients' keys, and with children that they make up."""

    together: ColluderHoldings
    brokers: ColluderHoldings
    made_up: ColluderHoldings
    """By the same brokers as the others' tables, in their order."""
    from_clients: set[bytes]
    """Names of items."""


def played(action: GroupAction, rows: Iterable[Row], words: Sequence[bytes]) -> Iterator[AttackFinding]:
    """Yield what colluders find in their rows of one day; `words` are elements of their dictionary."""
    sight, listed = _sight(action, rows), frozenset(words)
    held = sight.together
    for table, made_up in zip(held.tables, sight.made_up.tables, strict=True):
        for item in table.items:
            for seen in (item.element, taken_off(held, table, item)):
                yield from _said("dictionary", item, seen if seen in listed else None)
            yield from _opened(sight, table, made_up, item)
    if action is PADS:
        dictionary = Dictionary({word: word.hex() for word in words})
        for table in held.tables:
            yield from _under_one_pad(held, table, dictionary)


def _opened(
    sight: _Sight, table: ColluderTable, made_up: ColluderTable, item: LayeredWord
) -> Iterator[AttackFinding]:
    held = sight.together
    by_all = consecutive(held, table, item)
    # Who has all keys has the common one, too, where there is one: there is no need to compute it again.
    by_two = by_all if by_all and table.factors else broker_and_child(held, table, item)
    by_one = None
    if sight.made_up.common(made_up) is not None:
        by_one = by_two or by_all or broker_and_child(sight.made_up, made_up, item)
    if item.name in sight.from_clients:
        yield from _said("consecutive", item, by_all)
        yield from _said("broker-and-child", item, by_two)
        yield from _said("made-up-child", item, by_one)
    yield from _said("anywhere", item, by_all or by_two)
    of_brokers = by_two if sight.brokers.common(table) is not None else None
    yield from _said(BROKERS, item, by_all or by_one or of_brokers)


def _said(attack: str, item: LayeredWord, element: bytes | None) -> Iterator[AttackFinding]:
    """Yield it of all whose layers are on an item: who asked is one of them, until its last is taken off."""
    if element is not None:
        for owner in {layer.owner for layer in item.layers}:
            yield AttackFinding(attack, owner, element, item.name)


def _under_one_pad(
    held: ColluderHoldings, table: ColluderTable, dictionary: Dictionary
) -> Iterator[AttackFinding]:
    """Yield what a broker alone names in its table, all of which it has under few pads."""
    pads: defaultdict[LayerPath | None, list[tuple[LayeredWord, bytes]]] = defaultdict(list)
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


def _named(
    seen: Iterable[tuple[LayeredWord, bytes]], pad: int, dictionary: Dictionary
) -> Iterator[AttackFinding]:
    for item, element in seen:
        word = dictionary.numbers.get(int.from_bytes(element, "big") ^ pad)
        if word is not None:
            yield from _said("pairs", item, bytes.fromhex(word))


def _sight(action: GroupAction, rows: Iterable[Row]) -> _Sight:
    """Sort out what colluders have; rows of children that were made up have `made` set."""
    keys: defaultdict[str, dict[Layer, Secret]] = defaultdict(dict)
    invented: dict[Layer, Secret] = {}
    own: dict[str, bytes] = {}
    items: defaultdict[str, dict[bytes, LayeredWord]] = defaultdict(dict)
    factors: defaultdict[str, dict[LayerPath, Secret]] = defaultdict(dict)
    more: defaultdict[str, dict[LayerPath, Secret]] = defaultdict(dict)
    from_clients: set[bytes] = set()
    for row in rows:
        kind, node, is_made_up = row["kind"], row["node"], bool(row.get("made"))
        if kind == "agreed":
            one, other = bytes.fromhex(row["own"]), bytes.fromhex(row["other"])
            to = invented if is_made_up else keys[node]
            to[Layer(one, other)] = to[Layer(other, one)] = action.received(bytes.fromhex(row["key"]))
            if not is_made_up:
                own[node] = one
        elif kind == "compared":
            path = _read_path(bytes.fromhex(row["path"]))
            (more if is_made_up else factors)[node][path] = action.received(bytes.fromhex(row["key"]))
        elif kind == "asked":
            item = read_item(bytes.fromhex(row["filter"]))
            from_clients.add(item.name)
            items[node][item.name] = item
        elif kind == "advertised" and row["child"]:
            for shown in row["show"]:
                item = read_item(bytes.fromhex(shown))
                items[node][item.name] = item
    nodes = [node for node in items if node in own]
    tables = tuple(ColluderTable(own[node], tuple(items[node].values()), factors[node]) for node in nodes)
    with_more = tuple(
        ColluderTable(table.broker, table.items, {**table.factors, **more[node]})
        for node, table in zip(nodes, tables, strict=True)
    )
    brokers = {layer: key for node in nodes for layer, key in keys[node].items()}
    everybody = {layer: key for of in keys.values() for layer, key in of.items()}
    return _Sight(
        ColluderHoldings(action, everybody, tables),
        ColluderHoldings(action, brokers, tables),
        ColluderHoldings(action, {**brokers, **invented}, with_more),
        from_clients,
    )
