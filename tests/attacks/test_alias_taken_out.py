"""A user of a gateway is denied a house's topics by their other name, and waits until the alias goes.

He wants what was kept below `hush/ALIAS/` while a map led there: without its alias such a topic has no other
name, and nothing that is denied or reserved by that one is denied any more.
"""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from broker_world import World
from memory_gateway import everything
from naming import joined

from hushcast_gateway.broker_state import open_broker
from hushcast_gateway.network.no_daemon import DaemonlessNetwork
from hushcast_gateway.sections.purposes_section import PurposesSection
from hushcast_protocol.mqtt.interfaces import OuterNetwork
from hushcast_protocol.mqtt.reason_codes import Reason
from hushcast_protocol.mqtt.topics.access import Access, AccessPermissions
from hushcast_protocol.mqtt.wire.packets import PubAck, Publish
from hushcast_runtime.environment import system_environment
from hushcast_runtime.storage.changes import Change
from hushcast_runtime.storage.store import MemoryStore

LOCK, LAMP = "hush/home/z/lock", "hush/home/lamp"
LISTS = {
    "guest": Access((), ("hush/#", "z/#"), (), ("z/#",)),
    "member": Access((), ("hush/#", "z/#")),
    "owner": Access(("#",)),
}
Maps = dict[str, str]


class House:
    """A gateway that starts again by another configuration, on the same disk."""

    def __init__(self) -> None:
        self.world, _ = self._by({"home": ""}, {"z/#": "home"})

    def _by(self, aliases: dict[str, str], maps: Maps) -> tuple[World, object]:
        world, rules = joined(aliases, maps, PurposesSection(), Random(1))
        world.permissions_of = lambda user, client_id: AccessPermissions(LISTS[user], user, client_id)
        return world, rules

    def start(self, beyond: OuterNetwork | None = None, aliases: tuple[str, ...] = ()) -> None:
        other, _ = self._by(dict.fromkeys(aliases, ""), {"z/#": "home"} if "home" in aliases else {})
        self.world._beyond, self.world._rules = beyond or other._beyond, None
        self.world.kill()

    def got(self, user: str, *filters: str) -> list[tuple[str, bytes]]:
        """Connect a user's client anew, or go on with its session; return and acknowledge what it gets."""
        client = self.world.connect(
            user, clean=False, expiry=1_000, permissions=AccessPermissions(LISTS[user], user, user)
        )
        if filters:
            client.subscribe(*filters)
        found = client.published()
        for one in found:
            client.send(PubAck(one.packet_id))
        found += client.published()
        client.lose()
        return [(one.topic, one.payload) for one in found]

    def comes(self, topic: str, payload: bytes, retain: bool = False) -> None:
        self.world.broker.arrived(topic, payload, 1, retain, {}, self.world.now)
        self.world.settle()


NOWHERE: list[OuterNetwork | None] = [None, DaemonlessNetwork()]  # without the alias, or without any daemon


@pytest.mark.parametrize("beyond", NOWHERE)
async def test_what_is_kept_of_an_alias_that_went_is_handed_out_to_nobody(
    beyond: OuterNetwork | None,
) -> None:
    house = House()
    for user in ("guest", "member"):
        assert house.got(user, "hush/home/#") == []
    house.comes(LOCK, b"queued")
    house.comes(LOCK, b"retained", retain=True)
    house.start(beyond)
    for user in ("guest", "member"):
        assert house.got(user, "hush/#") == []
    assert house.world.broker.retained_at(LOCK) is None


@pytest.mark.parametrize("beyond", NOWHERE)
async def test_what_was_sent_and_not_acknowledged_is_not_sent_again(beyond: OuterNetwork | None) -> None:
    house = House()
    member = house.world.connect(
        "member", expiry=1_000, permissions=AccessPermissions(LISTS["member"], "member", "member")
    )
    member.subscribe("hush/home/#")
    house.comes(LOCK, b"sent")
    assert member.payloads() == [b"sent"]
    member.lose()
    house.start(beyond)
    assert house.got("member") == []
    house.start(aliases=("home",))
    assert house.got("member") == [(LOCK, b"sent")]


async def test_it_is_kept_until_the_alias_is_back() -> None:
    house = House()
    house.got("guest", "hush/home/#", "hush/garden/#")
    house.got("member", "hush/home/#")
    house.comes(LOCK, b"first")
    house.comes(LAMP, b"on", retain=True)
    house.start(aliases=("garden",))
    assert house.got("member", "hush/garden/#") == []
    house.comes("hush/garden/gate", b"open")
    house.start(aliases=("garden",))
    house.start(aliases=("home", "garden"))
    assert house.got("member") == [(LOCK, b"first"), (LAMP, b"on"), ("hush/garden/gate", b"open")]
    assert house.got("guest") == [(LAMP, b"on")], "the lock is denied by its other name again"
    assert house.world.broker.retained_at(LAMP) is not None


async def test_what_nobody_waits_for_any_more_goes() -> None:
    house = House()
    house.got("member", "hush/home/#")
    house.comes(LOCK, b"queued")
    house.start()
    house.world.pass_time(2_000)  # the session is over
    house.start()
    house.start()
    assert "mqtt-queued" not in house.world.kinds()
    assert "mqtt-message" not in house.world.kinds()


async def test_a_gateway_says_once_how_much_it_keeps_back(log_lines: list[dict[str, Any]]) -> None:
    house = House()
    house.got("member", "hush/home/#")
    house.comes(LOCK, b"1")
    for number in range(500):
        house.comes(f"hush/home/{number}", b"2", retain=True)
    house.comes("z/lock", b"3", retain=True)
    store = MemoryStore()
    await store.write(*(Change(kind, key, value) for (kind, key), value in house.world.disk.items()))
    state = await open_broker(store, system_environment(), DaemonlessNetwork(), permissions_of=everything)
    assert state.broker.retained == 1
    (said,) = [one for one in log_lines if "kept back" in one["event"]]
    assert (said["level"], said["count"]) == ("warning", 501)
    assert "lock" not in repr(said)


async def test_nothing_is_published_to_a_topic_without_a_way_meanwhile() -> None:
    house = House()
    house.start()
    owner = house.world.connect("owner", permissions=AccessPermissions(LISTS["owner"], "owner", "owner"))
    owner.send(Publish(LOCK, b"x", 1, True, packet_id=1))
    (answer,) = [one for one in owner.got() if isinstance(one, PubAck)]
    assert answer.reason == Reason.TOPIC_NAME_INVALID
