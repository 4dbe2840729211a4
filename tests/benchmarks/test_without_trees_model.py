"""The model of what names a relay that subscribes without trees."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.models.without_trees import Seen, heard, named, weights
from hushcast_protocol.base.epochs import EPOCHS_A_DAY

DAYS = 3


def test_an_audit_leaves_those_that_were_there_and_none_is_for_those_that_were_not() -> None:
    up = np.ones((3, DAYS * EPOCHS_A_DAY), bool)
    up[1, EPOCHS_A_DAY : 2 * EPOCHS_A_DAY] = False
    nothing = np.zeros(up.shape[1], bool)
    by_audit = weights(up, Seen(nothing, {1: EPOCHS_A_DAY + 5}), 2, 0.1, is_reckoned=True)
    assert by_audit.tolist() == [1.0, 0.0, 1.0]
    without = weights(up, Seen(nothing, {}), 2, 0.1, is_reckoned=True)
    assert without.tolist() == pytest.approx([1 - heard(0.1), 1.0, 1 - heard(0.1)])
    assert weights(up, Seen(nothing, {}), 2, 0.1, is_reckoned=False).tolist() == [1.0] * 3


def test_a_host_that_watches_leaves_the_subscriber_alone() -> None:
    up = np.random.default_rng(1).random((4, DAYS * EPOCHS_A_DAY)) < 0.5
    found = weights(up, Seen(np.ones(up.shape[1], bool), {}), DAYS, 0.1, is_reckoned=True)
    assert (found > 0).tolist() == [True, False, False, False]


@pytest.mark.slow
def test_without_trees_the_bars_are_held() -> None:
    by_days = named(0.1, is_cut=False, trials=60)[True]
    assert by_days[14] < 0.25
    assert by_days[60] < 0.35
