"""What porters, seconds, thirds and hosts of lanes cost, told apart by what each relay of a run was.

A relay is several at once, each of some daemons. So what it took is split by least squares over all relays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

import numpy as np

from hushcast_overlay.routes.cover import kept_chain
from hushcast_protocol.base.wire import RelayId
from hushcast_protocol.cover.cover_chain import CoverChain
from hushcast_protocol.cover.cover_rules import PASSED_A_ROUND
from hushcast_protocol.cover.lane_seconds import LANES
from hushcast_runtime.storage.store import read_records


class CoverPart(Enum):
    """What a relay is for a daemon under cover; the value is what people call it."""

    PORTER = "porter"
    SECOND = "second, of letters and lanes"
    THIRD = "third"
    HOST = "hosts"


def chains_in(database: Path) -> list[CoverChain]:
    """Return the chain in the database of a daemon that may run, if it has one; no daemon tells it."""
    return [kept_chain._decode(value).chain for _, value in read_records(database, kept_chain._KIND)]


Parts = Mapping[CoverPart, float]
"""Of how many daemons a relay is what: their seconds are several, and so are their hosts."""


def parts_of(
    relay: RelayId, chains: Sequence[CoverChain], done: Mapping[str, int], rounds: float
) -> dict[CoverPart, float]:
    """Return what a relay was in the mean of some rounds, by daemons' chains and by what it counted.

    A second passes a daemon's letters, a list and the blocks of its lanes, each by the second of that: here
    these count alike.
    """
    handed, given = (done.get(name, 0) / rounds for name in ("blocks_handed", "blocks_given"))
    letters = PASSED_A_ROUND + 1
    waybills = sum(chain.second == relay for chain in chains)
    return {
        CoverPart.PORTER: sum(chain.porter == relay for chain in chains),
        CoverPart.SECOND: (letters * waybills + handed) / (letters + LANES),
        CoverPart.THIRD: sum(chain.third == relay for chain in chains),
        CoverPart.HOST: given / LANES,
    }


@dataclass(frozen=True)
class PartCost:
    """What a part costs for one daemon, and the standard error of that."""

    mean: float
    error: float


def split_by_part(parts: Sequence[Parts], taken: Sequence[float]) -> dict[CoverPart, PartCost]:
    """Return what each part costs, of what each relay took, by least squares, if that can be told.

    What all relays take alike, whatever they are, is an unknown beside them.
    """
    rows = np.array([[*(one[part] for part in CoverPart), 1.0] for one in parts])
    costs = np.array(taken, dtype=float)
    free = len(costs) - rows.shape[1]
    found, _, rank, _ = np.linalg.lstsq(rows, costs, rcond=None)
    if rank < rows.shape[1] or free < 1:
        return {}  # too few relays, or parts that go together
    spread = float(np.sum((costs - rows @ found) ** 2)) / free
    errors = np.sqrt(spread * np.diag(np.linalg.inv(rows.T @ rows)))
    return {
        part: PartCost(float(mean), float(error))
        for part, mean, error in zip(CoverPart, found, errors, strict=False)
    }
