"""Who reads an alias's topic writes there under a house's number, far ahead, so that it publishes no more.

Each message of a gateway says where it stands among those of its topic, by a source that all readers see.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from houses import LINK, acknowledged, houses, listening, quick, until

from hushcast_gateway.network import numbered_topics
from hushcast_gateway.network.numbered_topics import NumberedTopics
from hushcast_protocol.content.bodies import Content
from hushcast_protocol.content.topics import parse_topic
from hushcast_protocol.mqtt.envelope import OpenedEnvelope, Place, disclose, enclose, placed
from hushcast_protocol.mqtt.kept.ledger import Ledger
from hushcast_protocol.mqtt.wire.packets import Publish
from hushcast_runtime.environment import simulated_environment
from hushcast_runtime.storage.changes import Change
from hushcast_runtime.storage.store import MemoryStore

EPOCHS = (1, 2**16, 2**32 - 2, 2**32 - 1)
NUMBERS = (1, 10**6, 2**64 - 2, 2**64 - 1)


@pytest.mark.parametrize("published", [0, 3], ids=["nothing", "something"])
@pytest.mark.parametrize("restarts", [0, 1, 2])
async def test_no_place_that_another_makes_up_stops_a_house(published: int, restarts: int) -> None:
    env, store = simulated_environment("house", 1_790_000_000.0), MemoryStore()
    ledger = Ledger()

    async def started() -> NumberedTopics:
        made = NumberedTopics(1.0, env)
        for change in ledger.take():
            await store.write(Change(*change))
        await made.load(store, ledger)
        return made

    house = await started()
    for _ in range(published):
        house.took("lamps/1", True)
    place = house.next("lamps/1")
    assert place is not None
    epochs = {*EPOCHS, place.epoch - 1, place.epoch, place.epoch + 1}
    for epoch in sorted(epochs):
        for number in NUMBERS:
            copied = Place(place.source, epoch, number, True)
            assert house.is_own("lamps/1", copied)
            house.is_known("lamps/1", copied)
    for _ in range(restarts):
        house = await started()
        for epoch in sorted(epochs):
            house.is_known("lamps/1", Place(place.source, epoch, 2**64 - 1, True))
    for _ in range(3):
        following = house.next("lamps/1")
        sent = placed(enclose(OpenedEnvelope(b"on", "1")), following)
        assert disclose(sent).place == following
        house.took("lamps/1", True)


@pytest.mark.parametrize(("epoch", "number"), [(2**32 - 1, 2**64 - 1), (2**32 - 1, 1), (5, 2**64 - 1)])
async def test_what_an_earlier_version_noted_of_such_a_place_stops_no_house(epoch: int, number: int) -> None:
    env, store = simulated_environment("house", 1_790_000_000.0), MemoryStore()
    noted = epoch.to_bytes(4, "big") + number.to_bytes(8, "big")
    await store.write(Change(numbered_topics._OWN, b"lamps/1", noted))
    house = NumberedTopics(1.0, env)
    await house.load(store, Ledger())
    for _ in range(3):
        following = house.next("lamps/1")
        assert disclose(placed(enclose(OpenedEnvelope(b"on", "1")), following)).place == following
        house.took("lamps/1", True)


@pytest.mark.processes  # over sockets, so by the machine's clock
async def test_a_house_goes_on_whatever_number_comes_under_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick(monkeypatch)
    async with houses(tmp_path, {"lamps/#": "home"}) as (one, two, first, second):
        reader = await listening(one, first, "lamps/1")
        writer = await first.connect("writer")
        assert await acknowledged(writer, Publish("lamps/1", b"on", 1, packet_id=1)) == 0
        assert (await reader.message()).payload == b"on"
        sent = one.daemon.published[-1][1]
        place = disclose(sent).place
        assert place is not None
        copied = placed(sent, Place(place.source, 2**32 - 1, 2**64 - 1, True))
        arrived = one.counters.as_dict()["network_arrived"]
        await two.daemon.service.publish(parse_topic(LINK), Content(copied))
        await until(lambda: one.counters.as_dict()["network_arrived"] > arrived)
        assert await acknowledged(writer, Publish("lamps/1", b"off", 1, packet_id=2)) == 0
        async with one.gateway() as again:  # beside it, as after a restart
            writer = await again.connect("writer")
            assert await acknowledged(writer, Publish("lamps/1", b"off again", 1, packet_id=3)) == 0
        assert second is not None
