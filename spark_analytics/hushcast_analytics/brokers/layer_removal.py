"""The removal of layers: which elements colluders get at under no layer, by keys and factors alone.

What they then have is the element of a word: as published the word itself, hardened a point that a token
hashes to, which names a topic to whoever has the topic's name or link (`dictionary_attack.py`).
"""

from __future__ import annotations

from hushcast_analytics.brokers.colluder_holdings import ColluderHoldings, ColluderTable, left, taken_off
from hushcast_protocol.brokers.full.layered_word import LayeredWord


def consecutive(held: ColluderHoldings, table: ColluderTable, item: LayeredWord) -> bytes | None:
    """Return what is under an item's layers where colluders have a key of each.

    Those are a broker and all of its m - 1 nearest ancestors, for what a child asks for itself (Shikfa, Önen
    and Molva §V-E).
    """
    found = held.key_of(item.layers)
    return None if found is None else held.action.strip(found, item.element)


def broker_and_child(held: ColluderHoldings, table: ColluderTable, item: LayeredWord) -> bytes | None:
    """Return what is under an item's layers where a broker has a colluder among its children.

    The factors of two paths give the ratio of their keys, and that of the colluding child is known: so is the
    other, whatever m is. The child may be one that the broker made up.
    """
    if (common := held.common(table)) is None:
        return None
    element = compared(held, table, item)
    return None if element is None else held.action.strip(common, element)


def compared(held: ColluderHoldings, table: ColluderTable, item: LayeredWord) -> bytes | None:
    """Return an item's element as its broker compares it with all others: under the broker's common key.

    None where the broker has no factor for it.
    """
    element, factor = taken_off(held, table, item), table.factors.get(left(item, table.broker))
    return None if element is None or factor is None else held.action.wrap(factor, element)


def by_either(held: ColluderHoldings, table: ColluderTable, item: LayeredWord) -> bytes | None:
    """Return what either of them gives."""
    return consecutive(held, table, item) or broker_and_child(held, table, item)
