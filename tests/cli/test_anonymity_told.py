"""What `hushcast subscriptions` says of how a filter is shown, and what that costs."""

from __future__ import annotations

from typing import Any

import pytest

from hushcast_cli.messages.subscriptions import anonymity


@pytest.mark.parametrize(
    ("held", "said"),
    [
        ({}, ""),
        ({"k": 5, "outside": None}, ", not yet known whether it is shown among 5"),
        ({"k": 5, "outside": False}, ", held back: fewer than 5 stand behind it"),
        ({"k": 5, "outside": True}, ", shown outside among 5 or more"),
        (
            {"k": 3, "outside": True, "otherwise": "generalise", "rows": 0, "excess": 0.975},
            ", shown outside among 3 or more; up to 98 % of the topic's messages in excess",
        ),
        (
            {"k": 3, "outside": True, "otherwise": "bogus", "rows": 1, "excess": 0.0083},
            ", shown outside: whoever is missing of 3 is made up; 1 bogus filter, up to 0.83 % of the topic's"
            " messages in excess",
        ),
        (
            {"k": 3, "outside": True, "otherwise": "bogus", "rows": 0, "excess": 0.0},
            ", shown outside: whoever is missing of 3 is made up",
        ),
    ],
)
def test_people_are_told_who_is_made_up_and_the_price(held: dict[str, Any], said: str) -> None:
    assert anonymity(held) == said
