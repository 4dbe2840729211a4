"""MQTT users who may reserve, each a part of its own, reserve as much as they are given.

They want nobody else to close anything any more: neither other users, nor whoever runs the gateway, by its
configuration.
"""

from __future__ import annotations

import pytest
from purposes_house import USERS, House, house, settings

from hushcast_gateway.purposes.purpose_state import configured
from hushcast_protocol.mqtt.reason_codes import Reason
from hushcast_protocol.purposes import reservations
from hushcast_runtime.storage.store import MemoryStore

WHOLE = 50  # of which one user has 40, and another one 8 of the other 10
CLOSED = "\n[[purposes.reservation]]\nfilter = 'safe/#'\naip = []"


async def take_all(place: House, user: str, below: str) -> int:
    """Return how many a user gets that reserves all it can."""
    client = await place.connect(user)
    for number in range(2 * WHOLE):
        told = await client.reserve(f"{below}/{number}", "research")
        if told:
            assert told == Reason.QUOTA_EXCEEDED
            return number
    raise AssertionError("there is no end to it")


@pytest.mark.parametrize("kind", ["flat", "tree", "cached"])
async def test_others_find_room_and_the_configuration_always_does(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reservations, "MAX_RESERVATIONS", WHOLE)
    store, section = MemoryStore(), f'store = "{kind}"'
    async with house(section, store=store) as place:
        assert await take_all(place, "car", "cars/car") == 40
        assert await take_all(place, "owner", "cars") == 8
        again = await place.connect("car")
        assert await again.reserve("cars/car/1", "operations") == Reason.SUCCESS, "it is there already"
        many = section + "".join(CLOSED.replace("safe", f"safe{number}") for number in range(WHOLE))
        fresh = settings(many, USERS)
        assert fresh.purposes is not None
        configured(fresh.purposes, place.rules.vocabulary)
        place.rules.replace(fresh.purposes, fresh.speakers(), place.rules.vocabulary)
        assert place.rules.reserved == 48 + WHOLE
    async with house(many, store=store) as place:
        assert place.rules.reserved == 48 + WHOLE
