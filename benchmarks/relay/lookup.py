"""Figure: looking one token up over all next hops at once, against asking filters one by one."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from itertools import cycle

from pybloom_live import BloomFilter

from benchmarks.figures import Effort, Figure, PeerMissing, alternate, at_most, missing, times_faster
from benchmarks.peers.installed import ROOT, python_with
from hushcast_protocol.content.routing_table import RoutingTable
from hushcast_protocol.overlay.elements import element
from hushcast_protocol.overlay.hops import relay_hop
from hushcast_protocol.overlay.profile import HARDENED

HOPS, ELEMENTS = 500, 1000
FEW, MANY, ELEMENTS_OF_MANY = 64, 10_000, 100  # 1,000 elements at 10,000 next hops take some 5 GB
ERROR_RATE = 0.001  # of the peers' filters, pybloom-live's default
_PROBES = 1000

_relay, _previous = os.urandom(32), os.urandom(32)


def figures(effort: Effort) -> Iterator[Figure]:
    """Measure; half of the tokens looked up are routed to one next hop, half to none."""
    yield from _beside_filters(effort)
    yield _growth(effort)


def _beside_filters(effort: Effort) -> Iterator[Figure]:
    tokens = _tokens(HOPS, ELEMENTS)
    table, filters = _table(tokens), _filters(tokens)
    probes = _probes(tokens)
    sides: dict[str, Callable[[], float]] = {
        "ours": lambda: _ours(table, probes, effort.amount(50_000)),
        "pybloom": lambda: _one_by_one(filters, probes, effort.amount(1000)),
    }
    why = None
    try:
        python = python_with("rbloom")
        sides["rbloom"] = lambda: _rbloom(python, effort.amount(2000))
    except PeerMissing as reason:
        why = reason
    cost = alternate(effort.runs, sides)
    name = f"look-up over {HOPS} next hops of {ELEMENTS:,} elements, µs: times faster"
    yield times_faster(name, cost["ours"], "pybloom-live filters one by one", cost["pybloom"], 100)
    if why is None:
        yield times_faster(name, cost["ours"], "rbloom filters one by one", cost["rbloom"], None)
    else:
        yield missing(name, cost["ours"], "rbloom filters one by one", why, None)


def _growth(effort: Effort) -> Figure:
    few, many = _tokens(FEW, ELEMENTS_OF_MANY), _tokens(MANY, ELEMENTS_OF_MANY)
    small, large = _table(few), _table(many)
    few_probes, many_probes = _probes(few), _probes(many)
    count = effort.amount(50_000)
    cost = alternate(
        effort.runs,
        {
            "small": lambda: _ours(small, few_probes, count),
            "large": lambda: _ours(large, many_probes, count),
        },
    )
    return at_most(
        f"look-up over {MANY:,} next hops of {ELEMENTS_OF_MANY} elements, µs: at most times",
        cost["large"],
        f"the same over {FEW}",
        cost["small"],
        3,
    )


def _tokens(hops: int, elements: int) -> list[list[bytes]]:
    return [[os.urandom(16) for _ in range(elements)] for _ in range(hops)]


def _element(token: bytes) -> bytes:
    return element(HARDENED, token, _relay, _previous)


def _probes(tokens: list[list[bytes]]) -> list[bytes]:
    routed = [tokens[number % len(tokens)][number % len(tokens[0])] for number in range(_PROBES // 2)]
    return [token for one in routed for token in (one, os.urandom(16))]


def _table(tokens: list[list[bytes]]) -> RoutingTable:
    table = RoutingTable(os.urandom(32))
    for held in tokens:
        table.add(relay_hop(os.urandom(32)), [_element(token) for token in held])
    return table


def _filters(tokens: list[list[bytes]]) -> list[BloomFilter]:
    filters = []
    for held in tokens:
        one = BloomFilter(ELEMENTS, ERROR_RATE)
        for token in held:
            one.add(_element(token).hex(), skip_check=True)
        filters.append(one)
    return filters


def _ours(table: RoutingTable, probes: list[bytes], count: int) -> float:
    chosen = [token for token, _ in zip(cycle(probes), range(count), strict=False)]
    began = time.perf_counter()
    for token in chosen:
        table.lookup(_element(token))
    return (time.perf_counter() - began) / count * 1e6


def _one_by_one(filters: list[BloomFilter], probes: list[bytes], count: int) -> float:
    chosen = [token for token, _ in zip(cycle(probes), range(count), strict=False)]
    began = time.perf_counter()
    for token in chosen:
        asked = _element(token).hex()
        [one for one in filters if asked in one]
    return (time.perf_counter() - began) / count * 1e6


def _rbloom(python: str, count: int) -> float:
    arguments = [python, "-m", "benchmarks.peers.rbloom_loop", str(HOPS), str(ELEMENTS), str(count)]
    done = subprocess.run(arguments, capture_output=True, text=True, cwd=ROOT, check=True)  # noqa: S603
    return float(done.stdout)
