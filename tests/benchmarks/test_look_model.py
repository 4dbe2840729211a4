"""The model of looks beside what can be reckoned."""

from __future__ import annotations

import pytest

from benchmarks.look_model import OF, lost
from hushcast_local.second_looks import DROPPED_ANEW


@pytest.mark.parametrize("bad", [0.1, 0.2])
def test_who_loses_everything_is_seen_and_who_lies_deceives_where_both_that_are_asked_do(bad: float) -> None:
    honest, lying = lost(bad, False, 100_000), lost(bad, True, 100_000)
    assert honest.without == pytest.approx(OF * bad**2, rel=0.1), "both origins are bad"
    assert honest.after_looks <= OF * bad ** (2 * (1 + DROPPED_ANEW)) + 1
    assert lying.after_looks == pytest.approx(OF * bad**4, rel=0.5, abs=1), "both keepers lie"
    assert lying.drops < honest.drops < 1
