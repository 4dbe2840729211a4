"""A request is answered once it is confirmed above, whatever later ones still wait for."""

from __future__ import annotations

from collections.abc import Callable

import trio
from hanging_disk import Disk
from small_network import until
from small_tree import KEY, filter_of, small_tree

from hushcast_protocol.brokers.anonymity_conditions import AnonymityCondition
from hushcast_protocol.brokers.clear_words import shown
from hushcast_protocol.brokers.exposure import OPEN
from hushcast_protocol.brokers.frames import AnonymityTerms, Subscribe

ROWS = (("a", "inner", "root"), ("one", "edge", "a"), ("two", "edge", "a"))
CROWD = AnonymityTerms(2, AnonymityCondition.SOURCE, "wait")


def asking(where: str, terms: AnonymityTerms = OPEN, name: int = 0) -> Callable[[int], Subscribe]:
    return lambda serial: Subscribe(serial, bytes([name] * 16), shown(KEY, filter_of(where)), terms)


async def test_what_waited_for_the_disk_is_answered_though_something_later_waits_for_those_above() -> None:
    async with small_tree(ROWS) as network:
        other = await network.client(
            "two", "lat in [0, 20]"
        )  # so the parent asks nobody for what this covers
        one, parent = network["one"], network["a"]
        await one.stop()
        disk = one.store = Disk(one.store)
        await one.start()
        await network.linked()
        first, *crowd = [await network.client(one) for _ in range(3)]
        network.root.gate.shut()
        # A gate that is shut lets one read through that had begun.
        assert await other.subscribe("lat in [90, 91]", bytes(15) + b"1") == "accepted"
        parent.gate.shut()
        disk.hang()
        await first.say(asking("lat in [0, 1]", name=1))
        await until(lambda: one.status("filters_shown") == 1, 10.0)
        await trio.sleep(2)
        serial = await first.say(asking("lat in [5, 10]"))
        await until(lambda: one.status("filters_shown") == 2, 10.0)
        for client in crowd:
            await client.say(asking("lat in [50, 60]", CROWD))
        await until(
            lambda: one.status("filters_shown") == 3, 10.0, "it is shown, and its clients are to hear"
        )
        disk.turn()
        await trio.sleep(2)
        parent.gate.open()
        await until(lambda: first.verdict(serial) == "accepted", 30.0, "the parent has it")


async def test_what_a_parent_has_is_not_confirmed_by_a_new_link_before_those_above_have_it() -> None:
    async with small_tree(ROWS) as network:
        one, parent = network["one"], network["a"]
        client, other = [await network.client(one) for _ in range(2)]
        network.root.gate.shut()
        # A gate that is shut lets one read through that had begun.
        assert await other.subscribe("lat in [90, 91]") == "accepted"
        serial = await client.say(asking("lat in [0, 1]"))
        await until(lambda: parent.status("filters") == 2, 10.0)
        parent.daemon._downstream.disconnect(one.key)
        await trio.sleep(1)
        await network.linked()
        await trio.sleep(5)
        assert client.verdict(serial) is None
        network.root.gate.open()
        await until(lambda: client.verdict(serial) == "accepted", 60.0)
        assert network.root.status("filters") == 2
