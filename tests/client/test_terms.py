"""The words of the control socket for k are those of brokers: the client's library does not know brokers."""

from __future__ import annotations

from typing import get_args, get_type_hints

from hushcast.control_messages import Terms
from hushcast_protocol.brokers.anonymity_conditions import AnonymityCondition, Fallback
from hushcast_protocol.brokers.frames import MAX_K


def test_the_choices_are_those_of_brokers() -> None:
    hints = get_type_hints(Terms, include_extras=True)
    assert get_args(hints["condition"]) == tuple(AnonymityCondition)
    assert get_args(hints["otherwise"]) == get_args(Fallback)
    assert get_args(hints["k"])[1].le == MAX_K
