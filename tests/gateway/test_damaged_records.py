"""Chance damages records of a gateway, which starts without them; but what closes a topic stays an error."""

from __future__ import annotations

import pytest
from damage import FOREIGN, WAYS, damage, set_aside
from memory_gateway import everything, running

from hushcast_gateway.broker_state import open_broker
from hushcast_gateway.purposes.purpose_state import PurposeState
from hushcast_gateway.purposes.records import (
    AUDIT,
    LOCKS_FROM,
    PRESUBSCRIPTION,
    RESERVATION,
    WITHDRAWAL,
    WITHDRAWN,
)
from hushcast_gateway.purposes.withdrawals import PurposeWithdrawals
from hushcast_protocol.mqtt.kept.mqtt_records import KINDS
from hushcast_protocol.mqtt.wire.packets import PubAck, Publish, PubRec, Will
from hushcast_runtime.environment import system_environment
from hushcast_runtime.storage.changes import Change
from hushcast_runtime.storage.store import MemoryStore, StoreError


@pytest.mark.parametrize("way", WAYS)
async def test_a_broker_starts_without_what_is_damaged(way: str) -> None:
    store = MemoryStore()
    async with running(store) as gateway:
        reader = await gateway.connect("reader", expiry=100, will=Will("t/w", b"gone", 1))
        await reader.subscribe("t/#", 2)
        await reader.send(
            Publish("t/1", b"1", 1, retain=True, packet_id=1), Publish("t/2", b"2", 2, packet_id=2)
        )
        assert {type(await reader.next()) for _ in range(4)} >= {PubAck, PubRec}
    damaged = damage(store, way, KINDS)
    await open_broker(store, system_environment(), permissions_of=everything)
    if way == "foreign":
        assert set_aside(store) == damaged
    elif way == "truncated":
        assert set_aside(store) >= {"mqtt-session", "mqtt-subscription", "mqtt-message", "mqtt-retained"}
    async with running(store) as gateway:
        await (await gateway.connect("another", expiry=100)).subscribe("t/#", 2)


async def test_purposes_do_without_the_wishes_and_the_log() -> None:
    store = MemoryStore()
    damaged = damage(store, "foreign", (PRESUBSCRIPTION, AUDIT))
    await PurposeState("flat").load(store)
    assert set_aside(store) == damaged


@pytest.mark.parametrize("kind", [RESERVATION, WITHDRAWAL, WITHDRAWN, LOCKS_FROM])
async def test_they_do_not_without_what_somebody_closed_or_took_back(kind: str) -> None:
    store = MemoryStore()
    store.write_soon(*(Change(kind, *record) for record in FOREIGN))
    part = PurposeState("flat") if kind == RESERVATION else PurposeWithdrawals()
    with pytest.raises(StoreError, match=r"without it .* `hushcast admin restore`"):
        await part.load(store)
    assert set_aside(store) == set()
