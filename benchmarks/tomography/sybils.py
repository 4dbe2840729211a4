"""Sybils: the level that is claimed beside the true one, where brokers work together to make crowds up.

Colluding edge brokers vouch for clients that they have not, behind everything that anybody asks about.
Colluding inner brokers say that they hold it all. The honest ask whether a filter of one of their clients may
be shown to the root. It is true where enough real clients stand behind it at every broker on the way.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable
from itertools import pairwise
from typing import Any

from benchmarks.tomography.world import CALENDAR, NOW, World, asked, question
from hushcast_protocol.base.wire import PublicKey
from hushcast_protocol.brokers.anonymity_conditions import AnonymityCondition
from hushcast_protocol.brokers.anonymity_levels import Levels
from hushcast_protocol.brokers.filters import Filter
from hushcast_protocol.brokers.tomography.broker_statements import BrokerStatements
from hushcast_protocol.brokers.tomography.inference import ComparableQuestion
from hushcast_protocol.brokers.tomography.judgement import is_crowd
from hushcast_protocol.brokers.tomography.stated_filters import StatedFilters
from hushcast_protocol.brokers.tomography.statements import MAX_CROWD

K = 5
SHARES = (0.0, 0.1, 0.2, 0.3)
CAPS = (None, 8, 2)
"""For how many an edge broker may vouch; None: everybody's word is taken."""
SPREADS = (1, 2, 4)
INVENTED = 32  # clients that a broker makes up where nothing stops it
ASKED = 300  # filters of honest clients that are asked about
CONDITION = AnonymityCondition.SOURCE

_Table = dict[PublicKey, dict[Filter, set[Hashable]]]


class _Believing(StatedFilters):
    """Whoever states sources has them, as published: no vouchers."""

    def is_edge(self, broker: PublicKey) -> bool:
        return broker in self.tree.brokers


def run(world: World) -> dict[str, Any]:
    """Return what is claimed and what is true, for each share, cap and spread; and with two edge brokers."""
    order = [*world.inner, *world.edges]
    world.random.shuffle(order)
    rows = []
    for share in SHARES:
        colluding = set(order[: round(share * len(order))])
        for cap in CAPS:
            rows += _measure(world, _held(world, 0.0), colluding, cap, {"colluding": share})
    for twice in (0.1, 0.3):
        rows += _measure(world, _held(world, twice), set(), CAPS[1], {"clients with two edges": twice})
    return {"k": K, "condition": str(CONDITION), "rows": rows}


def _held(world: World, twice: float) -> _Table:
    """Who really stands behind what at each broker; a share of clients is at two edge brokers at once."""
    held: _Table = {key: defaultdict(set) for key in world.tree.brokers}
    for client, filters in enumerate(world.wanted):
        homes = [world.home[client]]
        if client < twice * len(world.wanted):
            homes.append(world.random.choice([edge for edge in world.edges if edge not in homes]))
        for home in homes:
            for key in (home, world.parent[home], world.root):
                for given in filters:
                    held[key][given].add(client)
    return held


def _measure(
    world: World, held: _Table, colluding: set[PublicKey], cap: int | None, known: dict[str, float]
) -> list[dict[str, Any]]:
    gathered = _gathered(world, held, colluding, cap)
    truth = {key: _levels(table) for key, table in held.items()}
    honest = [
        (edge, given)
        for edge in world.edges
        if edge not in colluding
        for given in sorted(held[edge], key=repr)
    ]
    chosen = [world.random.choice(honest) for _ in range(min(ASKED, len(honest)))]
    questions = [asked(gathered, question(edge, world.root, given, K, CONDITION)) for edge, given in chosen]
    found = []
    for spread in SPREADS:
        told: dict[str, float] = defaultdict(int)
        for one in questions:
            true, claimed = _true(truth, one), _claimed(gathered, one, spread)
            told["is so"] += true >= K
            told["is not so"] += true < K
            told["claimed where it is not so"] += claimed and true < K
            told["denied where it is so"] += not claimed and true >= K
            told["mean level"] += true / len(questions)
            told["mean level claimed"] += _claimed_level(gathered, one) / len(questions)
        found.append({**known, "vouchers": cap, "spread": spread, **told})
    return found


def _gathered(world: World, held: _Table, colluding: set[PublicKey], cap: int | None) -> StatedFilters:
    gathered = StatedFilters(world.tree, cap) if cap is not None else _Believing(world.tree, MAX_CROWD)
    everything = list(held[world.root])
    epoch = CALENDAR.epoch(NOW)
    for key in world.tree.brokers:
        most = cap if cap is not None else MAX_CROWD
        stating = BrokerStatements(world.key_of(key), world.random.randbytes, 0, cap=most, life=3600)
        stating.largest_k = MAX_CROWD
        is_edge, is_colluding = key in world.edges, key in colluding
        invented = [f"nobody {at}" for at in range(INVENTED if cap is None else min(cap, INVENTED))]
        for given in everything if is_colluding else held[key]:
            may_vouch = is_edge or cap is None
            behind: Iterable[Hashable] = invented if is_colluding else sorted(held[key][given], key=repr)
            stating.hold(given, behind if may_vouch and (is_edge or is_colluding) else ())
        for signed in stating.due(epoch, NOW):
            gathered.hear(key, signed, range(epoch, epoch + 1), NOW)
    return gathered


def _levels(table: dict[Filter, set[Hashable]]) -> Levels:
    levels = Levels()
    for given, clients in table.items():
        for client in clients:
            levels.insert(given, client)
    return levels


def _true(truth: dict[PublicKey, Levels], one: ComparableQuestion) -> int:
    return min(truth[at].level(one.filter, CONDITION) for at in one.way[1:])


def _claimed_level(gathered: StatedFilters, one: ComparableQuestion) -> int:
    return min(len(set().union(*_behind(gathered, one, *hop))) for hop in pairwise(one.way))


def _claimed(gathered: StatedFilters, one: ComparableQuestion, spread: int) -> bool:
    return all(is_crowd(_behind(gathered, one, *hop), K, spread) for hop in pairwise(one.way))


def _behind(gathered: StatedFilters, one: ComparableQuestion, before: PublicKey, at: PublicKey) -> list[Any]:
    also = gathered.behind(before, one.filter)
    return list(gathered.crowd(at).behind(one.filter, CONDITION, also))
