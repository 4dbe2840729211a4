"""A user leaves a will, a subscription and a place in a group behind, is removed from the configuration, and
the gateway is restarted: the user wants the will published all the same, and what others are to get.
"""

from __future__ import annotations

import pytest
from broker_world import World

from hushcast_protocol.mqtt.limits import MAX_SESSION_SECONDS
from hushcast_protocol.mqtt.topics.access import Access, AccessPermissions
from hushcast_protocol.mqtt.wire.packets import Will

DOORS = Access(("door/#",), ("door/#",))
LISTS_LATER = {
    "removed": Access(),
    "may publish no more": Access((), ("door/#",)),
    "may publish elsewhere": Access(("window/#",), ("door/#",)),
    "denied": Access(("door/#",), ("door/#",), deny_publish=("door/lock/#",)),
}


def left_behind(delay: int) -> World:
    """Return a broker that was killed while mallory was connected, or away with a will that waits."""
    world = World()
    properties = {"will_delay_interval": delay} if delay else {}
    will = Will("door/lock/set", b"OPEN", 1, True, properties)  # type: ignore[arg-type]
    mallory = AccessPermissions(DOORS, "mallory", "m")
    client = world.connect("m", permissions=mallory, expiry=MAX_SESSION_SECONDS, will=will)
    assert client.subscribe("door/#", "$share/g/door/#", qos=1) == [1, 1]
    if delay:
        client.lose()
    return world


@pytest.mark.parametrize("delay", [0, 8])
@pytest.mark.parametrize("how", LISTS_LATER)
def test_a_will_is_published_if_its_user_may_when_it_is_due(how: str, delay: int) -> None:
    world = left_behind(delay)
    world.permissions_of = lambda user, client_id: AccessPermissions(LISTS_LATER[how], user, client_id)
    world.kill()
    reader = world.connect("reader")
    reader.subscribe("door/#")
    world.pass_time(20)
    assert reader.payloads() == []
    assert world.broker.retained == 0
    assert world.broker.counts["dropped_forbidden"] == 1


def test_a_will_of_a_user_who_still_may_is_published() -> None:
    world = left_behind(8)
    world.permissions_of = lambda user, client_id: AccessPermissions(DOORS, user, client_id)
    world.kill()
    reader = world.connect("reader")
    reader.subscribe("door/#")
    world.pass_time(20)
    assert reader.payloads() == [b"OPEN"]


def test_nothing_waits_for_who_may_not_have_it_and_groups_pass_it_over() -> None:
    world = left_behind(8)
    world.permissions_of = lambda user, client_id: AccessPermissions(Access(), user, client_id)
    world.kill()
    honest = world.connect("honest", expiry=100)
    honest.subscribe("$share/g/door/#", qos=1)
    honest.lose()
    sender = world.connect("sender")
    for number in range(4):
        sender.publish("door/bell", b"%d" % number, qos=1)
    (session,) = [one for one in world.broker._sessions if one.user == "mallory"]
    assert not session.queue
    assert world.connect("honest", clean=False).answer() == [b"0", b"1", b"2", b"3"]
