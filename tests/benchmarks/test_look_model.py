"""The model of looks beside what can be reckoned."""

from __future__ import annotations

import pytest

from benchmarks.models.looks import LOOK, OF, Rule, lost
from hushcast_protocol.base.versions.manner import NEWEST


@pytest.mark.parametrize("bad", [0.1, 0.2])
def test_who_loses_everything_is_seen_and_who_lies_deceives_where_three_of_the_asked_do(bad: float) -> None:
    honest, lying = lost(bad, False, 100_000), lost(bad, True, 100_000)
    assert honest.without == pytest.approx(OF * bad**2, rel=0.1), "both origins are bad"
    assert honest.after_looks <= OF * bad ** (2 * (1 + NEWEST.dropped_anew)) + 1
    three_or_four = bad**3 + 3 * bad**4 * (1 - bad)
    assert lying.after_looks == pytest.approx(OF * bad**2 * three_or_four, rel=0.5, abs=1)
    assert lying.drops < honest.drops < 1


@pytest.mark.parametrize("bad", [0.1, 0.2])
def test_one_that_is_outvoted_saves_half_of_the_drops_anew(bad: float) -> None:
    look, all_of_three = lost(bad, False, 100_000), lost(bad, False, 100_000, Rule(3, 3))
    assert look.drops < 0.55 * all_of_three.drops
    assert look.contacts < 0.9 * all_of_three.contacts
    assert lost(0.0, False, 1000, LOOK).contacts == 3


@pytest.mark.parametrize("rule", [Rule(1, 1), Rule(2, 2), Rule(3, 3)])
def test_where_all_have_to_show_it_as_many_as_are_asked_deceive(rule: Rule) -> None:
    lying = lost(0.2, True, 200_000, rule)
    assert lying.after_looks == pytest.approx(OF * 0.2 ** (2 + rule.most), rel=0.3)
