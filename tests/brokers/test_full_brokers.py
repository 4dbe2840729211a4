"""A tree of brokers under `full`: they route what they cannot read, as they come and go and start again."""

from __future__ import annotations

import pytest
import trio
from broker_daemons import TreeOfDaemons, sent, tree_of_daemons
from full_scene import ROWS, SIX, started
from small_network import ONE, TWO, until

from hushcast_brokers.client.attachments import ATTACH_WITHIN
from hushcast_protocol.base.errors import Refusal
from hushcast_protocol.content.topics import make_topic

PLACES = make_topic("places", ["kind", "lat:-90..90:1"])
PROFILES = ["full/2", "full/3", "full/4", "full/3/apart", "full/3/paper", "full/2/paper/a"]

# Without factors only what lies under the same keys is compared: what comes of one owner by one way, and as
# published nothing, since each item has keys of its own.
SHOWN = {"full/3/apart": [5, 7, 8], "full/2/paper/a": [5, 7, 9]}


async def is_compared(network: TreeOfDaemons) -> None:
    """Wait until each broker that can has one row for what is one word."""

    def are_settled() -> bool:
        return all(
            member.daemon._matching._rows is not None and not member.daemon._matching._rows.missing()
            for member in network.members
            if member.is_up
        )

    await until(are_settled, 120.0, "all is compared")


@pytest.mark.slow
@pytest.mark.parametrize("profile", PROFILES)
async def test_six_daemons_get_what_they_asked_for_and_nothing_else(profile: str) -> None:
    async with tree_of_daemons(0, ROWS, profile=profile) as network:
        nodes = await started(network, SIX)
        ears = [await node.listen(ONE if number % 2 else TWO) for number, node in enumerate(nodes)]
        both = await nodes[0].listen(ONE)
        north = await nodes[1].listen(PLACES, "lat in [60, 63], kind = fire")
        await is_compared(network)
        shown = [network[name].status("filters_shown") for name in ("edge 1", "inner 1", "top")]
        assert shown == SHOWN.get(profile, [4, 4, 4]), "one for each word: the range takes two"
        await sent(nodes[5], b"one", ONE)
        await sent(nodes[4], b"two", TWO)
        await sent(nodes[4], b"fire", PLACES, kind="fire", lat=62 + 90)
        await sent(nodes[4], b"south", PLACES, kind="fire", lat=0 + 90)
        for number, ear in enumerate(ears):
            assert await ear.hears(1) == [b"one" if number % 2 else b"two"]
        assert await both.hears(1) == [b"one"]
        assert await north.hears(1) == [b"fire"]
        await trio.sleep(60)
        assert all(len(ear.heard) == 1 for ear in (*ears, both, north))
        assert network.count("refused_form") + network.count("refused_tree") == 0
        assert network.count("messages_unmatched") == 1
        assert network.count_at_nodes("deliveries_refused") == 0


async def test_restarts_of_all_lose_nothing_and_say_nothing_again() -> None:
    async with tree_of_daemons(0, ROWS, profile="full/3") as network:
        nodes = await started(network, SIX[:5])
        for node in nodes[:4]:
            await node.listen(ONE)
        await is_compared(network)
        await trio.sleep(10)
        asked = network.count("subscriptions"), network.count("advertisements_sent")
        factors = network.count("factors_learned")
        for node in nodes[:4]:
            await node.stop()
        await sent(nodes[4], b"while readers are away")
        await trio.sleep(10)
        for member in network.members:
            await member.stop()
        for member in network.members:
            await member.start()
        await network.linked()
        await sent(nodes[4], b"while readers are away, after a restart")
        await trio.sleep(10)
        for node in nodes[:4]:
            await node.start()
        ears = [await node.listen(ONE) for node in nodes[:4]]
        for ear in ears:
            assert len(await ear.hears(2)) == 2
        await trio.sleep(ATTACH_WITHIN + 10)
        assert (network.count("subscriptions"), network.count("advertisements_sent")) == asked
        assert network.count("factors_learned") == factors
        assert network.count_at_nodes("deliveries_refused") == 0


async def test_messages_waiting_at_a_broker_that_starts_again_find_its_rows() -> None:
    async with tree_of_daemons(0, ROWS, profile="full/2") as network:
        reader, author = await started(network, ("edge 1", "edge 3"))
        ear = await reader.listen(ONE)
        await network["inner 1"].stop()
        await sent(author, b"waits at top")
        await network["inner 1"].start()
        assert await ear.hears(1) == [b"waits at top"]


@pytest.mark.slow
@pytest.mark.parametrize("profile", [f"full/{layers}{end}" for layers in (2, 3, 4) for end in ("", "/apart")])
async def test_a_broker_leaves_and_another_joins_and_nothing_is_lost(profile: str) -> None:
    async with tree_of_daemons(0, ROWS, profile=profile) as network:
        nodes = await started(network, SIX)
        ears = [await node.listen(ONE) for node in nodes]
        await is_compared(network)
        author = nodes[5]
        await network["inner 1"].stop()
        sent_so_far = []
        for number in range(5):
            sent_so_far.append(b"while it is away %d" % number)
            await sent(author, sent_so_far[-1])
        network["edge 1"].parent = network["edge 2"].parent = network["inner 2"]
        gone = network["inner 1"]
        network.members.remove(gone)
        await network.list_all()
        await network.linked()
        for number in range(5):
            sent_so_far.append(b"after it has left %d" % number)
            await sent(author, sent_so_far[-1])
        for ear in ears:
            await ear.hears(10, within=400.0)
        joined = network.add("inner 3", "inner", network["top"])
        network["edge 1"].parent = joined
        await joined.start()
        await network.list_all()
        await network.linked()
        for number in range(5):
            sent_so_far.append(b"after another joined %d" % number)
            await sent(author, sent_so_far[-1])
        for ear in ears:
            assert set(await ear.hears(15, within=400.0)) == set(sent_so_far)


@pytest.mark.slow
async def test_words_change_with_the_day_before_it_begins() -> None:
    async with tree_of_daemons(0, ROWS, profile="full/3") as network:
        nodes = await started(network, SIX)
        ears = [await node.listen(ONE) for node in nodes]
        for _ in range(3):
            await trio.sleep(network.calendar.day_start(network.today + 1) - network.now - 5)
            before = network.count("subscriptions")
            for _ in range(4):
                await sent(nodes[0], b"around midnight")
                await trio.sleep(5)
            assert network.count("subscriptions") == before, "all was asked for before"
        for ear in ears:
            await ear.hears(12)
        await trio.sleep(3 * network.calendar.epoch_seconds)
        assert {network[name].status("filters") for name in ("edge 1", "inner 1", "top")} == {2}
        assert network.root.status("filters") == 1
        for member in network.members:
            days = {kind: len(records) for kind, records in member.store._records.items()}
            assert days.get("shown", 0) <= 1
            assert days.get("former-label", 0) == 0


async def test_terms_are_refused_where_no_broker_reads_conditions() -> None:
    async with tree_of_daemons(1, ROWS, profile="full/3") as network:
        with pytest.raises(Refusal, match=r"--k.*privacy"):
            await network.nodes[0].listen(ONE, terms={"k": 5, "condition": "source", "otherwise": "wait"})
        await network.nodes[0].listen(ONE, terms={"k": 1, "condition": "source", "otherwise": "wait"})


@pytest.mark.slow
async def test_probes_come_back() -> None:
    async with tree_of_daemons(1, ROWS, probes_an_epoch=24.0, profile="full/3") as network:
        node = network.nodes[0]
        await node.listen(PLACES, "lat in [60, 70], kind = fire")
        await trio.sleep(120)
        found = node.routes[0].coverage.describe()
        assert found["probes"] > 20
        assert found["share"] == 1.0


async def test_labels_of_the_tree_before_find_their_way_also_after_restarts() -> None:
    async with tree_of_daemons(0, ROWS, profile="full/3") as network:
        reader, author = await started(network, ("edge 1", "edge 3"))
        await reader.listen(ONE)
        await trio.sleep(10)
        await reader.stop()
        await network["edge 1"].stop()
        await sent(author, b"waits at inner 1")
        await until(lambda: network["inner 1"].status("messages_waiting") == 1)
        # Another broker between the root and those that stay: their layers are others now.
        between = network.add("between", "inner", network["root"])
        network["inner 1"].parent = network["inner 2"].parent = between
        await between.start()
        network.members.remove(top := network["top"])
        await network.list_all()
        await until(lambda: network["inner 1"].daemon.parent_state == "open", 120.0)
        await network["inner 1"].stop()
        await network["inner 1"].start()
        await network["edge 1"].start()
        await network.linked()
        await trio.sleep(60)
        await sent(author, b"after")
        await reader.start()
        ear = await reader.listen(ONE)
        assert sorted(await ear.hears(2, within=300.0)) == [b"after", b"waits at inner 1"]
        assert network["inner 1"].store._records["former-label"]
        await top.stop()
