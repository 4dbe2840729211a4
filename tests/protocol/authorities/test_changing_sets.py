"""Directories agree on each epoch while their set changes and liars know when.

EPOCHS=10000 pytest -s tests/protocol/authorities/test_changing_sets.py plays so many epochs of each quorum,
at some 25 to 30 ms of a core each.
"""

from __future__ import annotations

import os
from random import Random

import pytest
from changing_sets import COUNT, Changing, changes

pytestmark = pytest.mark.slow

EPOCHS = int(os.environ.get("EPOCHS", "60"))
NETWORK_LIVES = 250  # epochs until another network begins: its first head is a case of its own


@pytest.mark.parametrize(("quorum", "start"), [(3, 1), (4, 2)])
def test_each_epoch_has_one_head_while_sets_change(quorum: int, start: int) -> None:
    played = changed = lied = 0
    while played < EPOCHS:
        world = Changing(quorum, Random(start + played))
        world.play(min(NETWORK_LIVES, EPOCHS - played))
        played, changed, lied = played + len(world.past), changed + changes(world), lied + world.lied
    if EPOCHS > NETWORK_LIVES:
        liars = COUNT - quorum
        print(
            f"\nquorum {quorum} of {COUNT}, {liars} liars: {played} epochs, each with one head;"
            f" {changed} changes of sets; the liars lied in {lied}"
        )
    assert played == EPOCHS
    assert changed
    assert lied
