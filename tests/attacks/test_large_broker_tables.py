"""Brokers below one, or clients of an edge broker, fill its tables, to keep all others waiting.

To take one advertisement into a full table took 80 ms, and longer the fuller it was; so did to compare what
both ends of a link hold, and to forget a client. One filter that covers a table had all roots change at once;
and what was for one day lapsed at once.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Iterable, Iterator
from typing import Any, TypeVar

import pytest
from full_world import DAY, FIGURE_2, World
from small_network import until
from small_tree import small_tree
from steps import BUDGET, Moves, one_step

from hushcast_brokers.broker.full.layered_table import LayeredTable
from hushcast_protocol.brokers.child_advertisements import ChildAdvertisements
from hushcast_protocol.brokers.clear_words import ShownFilter
from hushcast_protocol.brokers.exposure import OPEN
from hushcast_protocol.brokers.frames import MAX_IN_ONE, Advertise
from hushcast_protocol.brokers.full.group_action import PADS
from hushcast_protocol.brokers.items import of_roots
from hushcast_protocol.brokers.parent_table import ParentTable

CHILD = b"c" * 32
LAST = 2**24
FILTERS = 8192
"""An eighth of what a broker below may have: so no step may take more than a part of all."""
CLIENTS, EACH = 24, 256

T = TypeVar("T")


def shown(low: int, high: int) -> ShownFilter:
    return ShownFilter(b"t" * 16, (LAST, 255), ((low, high), (0, 100)))


def ranges(first: int, count: int) -> Iterator[ShownFilter]:
    """Yield filters none of which covers another."""
    return (shown(at, LAST // 2 + at) for at in range(first, first + count))


def in_short_steps(work: Generator[object, None, T]) -> T:
    """Do some work in the pieces that it has: each is a step, and no large part of all."""
    moves, began = Moves(), time.thread_time()
    while True:
        try:
            next(work)
        except StopIteration as end:
            result: T = end.value
            break
        finally:
            moves.next()
    assert moves.longest < min(BUDGET, (time.thread_time() - began) / 4 + 0.002)
    return result


class Broker:
    """A broker's table, with filters of one broker below, and what it shows of them above."""

    def __init__(self, filters: Iterable[ShownFilter]) -> None:
        self.table, self.upward = ChildAdvertisements(), ParentTable()
        for one in filters:
            self.table.load(CHILD, one.name, one)
        in_short_steps(self.showing())

    def take(self, *add: ShownFilter, remove: tuple[bytes, ...] = (), whole: Any = "no") -> None:
        in_short_steps(self.table.take(CHILD, Advertise(1, add, remove, whole)))
        in_short_steps(self.showing())

    def showing(self) -> Generator[None, None, None]:
        """Show what changed, in the pieces in which `Advertising` does."""
        has_more = True
        while has_more:
            changes = of_roots(self.table.routes.take_changes())
            self.upward.change(changes, self.table)
            has_more = changes.has_more
            yield


@pytest.mark.slow
def test_an_advertisement_into_a_large_table_is_taken_in_short_steps() -> None:
    broker = Broker(ranges(0, FILTERS))
    new = tuple(ranges(FILTERS, MAX_IN_ONE))
    broker.take(*new)
    assert len(broker.upward.shown) == FILTERS + MAX_IN_ONE
    broker.take(remove=tuple(one.name for one in new))
    assert len(broker.upward.shown) == FILTERS
    broker.take(*ranges(0, 1), whole="end")
    assert len(broker.upward.shown) == len(broker.table.routes) == 1


@pytest.mark.slow
def test_one_filter_that_covers_all_others_and_goes_changes_all_roots_in_short_steps() -> None:
    broker, wide = Broker(ranges(0, FILTERS)), shown(0, LAST)
    before = dict(broker.upward.shown)
    broker.take(wide)
    assert broker.upward.shown == {wide.name: wide}
    broker.take(remove=(wide.name,))
    assert broker.upward.shown == before


@pytest.mark.slow
def test_what_both_ends_of_a_link_hold_is_compared_in_short_steps() -> None:
    topics = (number.to_bytes(16, "big") for number in range(8 * FILTERS))
    broker = Broker(ShownFilter(topic, (), ()) for topic in topics)
    digest = in_short_steps(broker.table.begin(CHILD))
    in_short_steps(broker.upward.linked(digest))
    (asked,) = broker.upward.next()
    assert not asked.add, "the parent has it all"


@pytest.mark.slow
def test_a_day_of_items_under_layers_lapses_in_short_steps() -> None:
    world, table = World(FIGURE_2, PADS, 2), LayeredTable()
    rows, child = world.nodes["B1"].rows, world.nodes["A1"]
    table.move(rows)
    for number in range(2 * FILTERS):
        item = child.holder.item(number.to_bytes(16, "big"))
        table.put(child.keys.public, item.name, rows.read(item))
    rows.take_changes()
    in_short_steps(rows.expire(DAY))
    in_short_steps(table.expire(DAY))  # type: ignore[arg-type]
    assert (len(rows), rows.days, len(table)) == (0, (), 0)
    assert table.is_late(item.name)


@pytest.mark.slow
async def test_clients_that_are_left_out_go_in_short_steps() -> None:
    async with small_tree((("edge", "edge", "root"),)) as network:
        edge = network["edge"]
        clients = edge.daemon._clients
        for number in range(CLIENTS):
            key = number.to_bytes(32, "big")
            clients._known[key] = 0
            for one in ranges(number * EACH, EACH):
                clients._interests.load(key, one.name, one, OPEN)
        (last,) = ranges(CLIENTS * EACH, 1)
        clients._interests.subscribe(key, last.name, clients._interests.read(key, last), OPEN)
        await until(lambda: edge.status("filters_shown") == CLIENTS * EACH + 1, 60.0)
        with one_step():
            edge.daemon.serve_only(frozenset())
        assert edge.status("clients") == 0
        await until(lambda: edge.status("filters") == edge.status("filters_shown") == 0, 60.0)
