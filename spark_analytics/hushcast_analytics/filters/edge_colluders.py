"""What edge brokers achieve that vouch for subscribers who do not exist (Tarkoma and Prehofer §6).

A colluding broker vouches for as many as count: k of them without a cap, else the cap. The level *claimed* is
then that of all brokers together; the *true* one counts the subscribers who exist and whose brokers do not
collude, as a broker knows its own. With `spread` a filter is anonymous only if what is claimed comes from so
many edge brokers.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from hushcast_analytics.filters.levels import COLUMNS
from hushcast_protocol.brokers.anonymity_conditions import AnonymityCondition

Counts = npt.NDArray[np.int32]


@dataclass(frozen=True)
class VoucherRules:
    """How vouchers are counted: at most `cap` an edge broker, of at least `spread` brokers; None: no rule."""

    cap: int | None
    spread: int | None


def colluders(brokers: int, share: float, seed: int) -> list[int]:
    """Return the brokers that collude; those of a smaller share are among those of a larger one."""
    drawn = random.Random(seed).sample(range(brokers), brokers)  # noqa: S311 - to be drawn again the same
    return drawn[: round(share * brokers)]


def counted(
    behind: Iterable[bytes],
    brokers: int,
    asked: tuple[Sequence[AnonymityCondition], Sequence[int]],
    shares: Sequence[float],
    rules: Sequence[VoucherRules],
    seed: int,
) -> Iterator[dict[str, Any]]:
    """Yield a row for each condition, k, share of colluding brokers and rules, of a sample of filters.

    `behind` has the sources of each filter by condition and broker, as `levels.LEVELS` says. Of a row
    `claimed_level` and `true_level` are means, `claimed` the share of filters said to be k-anonymous, `true`
    of those that are, `wrongly` the share of those said to be that are not, None if there are none. `ask` is
    the level to ask for so that k true ones are needed besides all bogus ones, and `safe` the share of the
    filters that reach it; without a cap there is none.
    """
    every = np.frombuffer(b"".join(behind), "<i4").reshape(-1, len(COLUMNS), brokers)
    for share in shares:
        bad = np.zeros(brokers, bool)
        bad[colluders(brokers, share, seed)] = True
        for condition, k, rule in product(asked[0], asked[1], rules):
            counts = every[:, list(COLUMNS).index(condition)]
            yield {
                "condition": condition.value,
                "k": k,
                "colluding": share,
                "cap": rule.cap,
                "spread": rule.spread,
                **_judged(counts, bad, k, rule),
            }


def _judged(counts: Counts, bad: npt.NDArray[np.bool_], k: int, rule: VoucherRules) -> dict[str, Any]:
    honest = counts[:, ~bad]
    capped = honest if rule.cap is None else np.minimum(honest, rule.cap)
    liars = int(bad.sum())
    claimed = capped.sum(axis=1) + liars * (k if rule.cap is None else rule.cap)
    true = honest.sum(axis=1)
    said = claimed >= k
    if rule.spread is not None:
        said &= (honest > 0).sum(axis=1) + liars >= rule.spread
    wrong = said & (true < k)
    return {
        "claimed_level": float(claimed.mean()),
        "true_level": float(true.mean()),
        "claimed": float(said.mean()),
        "true": float((true >= k).mean()),
        "wrongly": float(wrong.sum() / said.sum()) if said.any() else None,
        "ask": None if rule.cap is None else k + liars * rule.cap,
        "safe": 0.0 if rule.cap is None else float((said & (capped.sum(axis=1) >= k)).mean()),
    }
