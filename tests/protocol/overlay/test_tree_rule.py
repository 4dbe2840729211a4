"""Where a daemon plants trees."""

from __future__ import annotations

import pytest

from hushcast_protocol.overlay.tree_rule import TreeRule


@pytest.mark.parametrize("is_relay", [True, False])
@pytest.mark.parametrize("is_kept", [True, False])
def test_a_relay_alone_has_none_where_what_is_published_is_kept(is_relay: bool, is_kept: bool) -> None:
    assert TreeRule.AUTO.plants(is_relay, is_kept) == (not (is_relay and is_kept))
    assert TreeRule.ALWAYS.plants(is_relay, is_kept)
