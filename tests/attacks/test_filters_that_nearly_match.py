"""An MQTT user subscribes to thousands of filters that match a topic in all levels but the last, and wants
everybody's messages, each of whose topics is held against them, to take long.
"""

from __future__ import annotations

import itertools

import pytest
from steps import one_step

from hushcast_protocol.mqtt.limits import MAX_FILTERS_A_USER
from hushcast_protocol.mqtt.topics.filter_tree import FilterTree
from hushcast_protocol.mqtt.topics.topic_filters import MAX_LEVELS

BRANCHES = 14  # levels with which filters differ
TOPIC = "m/" + "/".join("a" * (MAX_LEVELS - 2)) + "/1"


def nearly_matching(often: str) -> list[str]:
    """Return filters for all of a user's clients; `often` is what stands in the levels that all have."""
    tail = "/".join([often] * (MAX_LEVELS - BRANCHES - 2))
    branches = itertools.islice(itertools.product("a+", repeat=BRANCHES), MAX_FILTERS_A_USER)
    return [f"m/{'/'.join(each)}/{tail}/never" for each in branches]


@pytest.mark.slow
@pytest.mark.parametrize("often", "a+")
def test_a_look_up_takes_two_steps_a_filter_however_long_they_are(often: str) -> None:
    tree: FilterTree[str] = FilterTree()
    for wanted in nearly_matching(often):
        tree.put(wanted, wanted)
    tree.put(TOPIC, TOPIC)
    with one_step():
        found = tree.match(TOPIC)
    assert found == [TOPIC]


def test_what_branches_no_more_is_one_step_again() -> None:
    """Filters that were put and removed leave nothing that a look-up would go through."""
    tree: FilterTree[int] = FilterTree()
    tree.put("a/b/c/d", 1)
    tree.put("a/b/x/y", 2)
    tree.put("a/b", 3)
    tree.remove("a/b/x/y")
    tree.remove("a/b")
    (only,) = tree._root.below.values()
    assert only.levels == ("a", "b", "c", "d")
    assert tree.match("a/b/c/d") == [1]
