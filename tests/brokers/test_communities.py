"""Networks of communities: the root outside, brokers in one, two or none; who gets what."""

from __future__ import annotations

from random import Random

import pytest
import trio
from broker_daemons import sent
from community_tree import Keeper, community_tree
from msgspec import structs
from small_network import ONE, TWO, until
from small_tree import KEY, filter_of

from hushcast_brokers.client.community.membership import FRESH
from hushcast_local.outbox import NoReceiptYet
from hushcast_protocol.base.crypto.secrets import EpochKey
from hushcast_protocol.base.errors import Refusal
from hushcast_protocol.brokers.anonymity_conditions import AnonymityCondition
from hushcast_protocol.brokers.clear_words import shown
from hushcast_protocol.brokers.community.community_epochs import MemberEpoch
from hushcast_protocol.brokers.community.sealed_filter import SealedFilter, seal_words
from hushcast_protocol.brokers.exposure import OPEN
from hushcast_protocol.brokers.frames import AnonymityTerms, NewCharter, Subscribe
from hushcast_protocol.content.messages import Message
from hushcast_protocol.content.topics import make_topic

ROWS = (
    ("inner", "inner", "root"),
    ("edge 1", "edge", "inner"),
    ("edge 2", "edge", "inner"),
    ("edge 3", "edge", "root"),
)
PLACES = make_topic("places", ["kind", "lat:-90..90:0.00001"])
SILENCE = 30.0


async def test_members_hear_each_other_past_brokers_that_are_outside() -> None:
    async with community_tree(ROWS) as network:
        keeper = network.keeping[0]
        author, reader, other = [
            await network.daemon(name, keeper, edge)
            for name, edge in (("author", "edge 3"), ("reader", "edge 1"), ("other", "edge 2"))
        ]
        await keeper.admit(network["edge 1"], network["edge 2"], author, reader, other)
        await network.heard(keeper)
        ears = [
            await reader.listen(PLACES, "lat in [60, 61]"),
            await other.listen(PLACES, "kind = fire"),
        ]
        await sent(author, b"both", PLACES, kind="fire", lat=15_050_000)
        await sent(author, b"one", PLACES, kind="flood", lat=15_050_000)
        await sent(author, b"none", PLACES, kind="flood", lat=9_000_000)
        await ears[0].hears(2)
        await ears[1].hears(1)
        await trio.sleep(SILENCE)
        assert ears[0].payloads == [b"both", b"one"]
        assert ears[1].payloads == [b"both"]
        # Members at the edge keep out what nobody asked for; those outside pass all where a label leads.
        assert network["inner"].count("messages_unmatched") == 0
        assert network["edge 1"].count("messages_unmatched") == 1
        assert network["edge 2"].count("messages_unmatched") == 2
        assert network["edge 3"].count("messages_received") == 0


async def test_two_communities_share_a_broker_and_nothing_else() -> None:
    async with community_tree(ROWS, communities=2) as network:
        one, two = network.keeping
        readers = [
            await network.daemon(f"reader {number}", keeper, "edge 1")
            for number, keeper in enumerate((one, two))
        ]
        authors = [
            await network.daemon(f"author {number}", keeper, "edge 3")
            for number, keeper in enumerate((one, two))
        ]
        for keeper, reader, author in zip((one, two), readers, authors, strict=True):
            await keeper.admit(network["edge 1"], network["inner"], reader, author)
            await network.heard(keeper)
        ears = [await reader.listen() for reader in readers]
        shown = network["edge 1"].daemon._advertising._upward.shown.values()
        assert len({item.label for item in shown}) == 2, (
            "each community is shown the same filter, sealed to it"
        )
        assert len(network["inner"].daemon._matching._below.table.filters()) == 1, "one row"
        await sent(authors[0], b"of one")
        await sent(authors[1], b"of two")
        assert [await ear.hears(1) for ear in ears] == [[b"of one"], [b"of two"]]
        await trio.sleep(SILENCE)
        assert [len(ear.payloads) for ear in ears] == [1, 1]


@pytest.mark.slow
async def test_who_is_expelled_gets_nothing_from_the_next_epoch_on() -> None:
    async with community_tree(ROWS) as network:
        keeper = network.keeping[0]
        author, evil, good = [
            await network.daemon(name, keeper, edge)
            for name, edge in (("author", "edge 3"), ("evil", "edge 1"), ("good", "edge 1"))
        ]
        await keeper.admit(network.root, network["edge 1"], author, evil, good)
        await network.heard(keeper)
        heard, kept = await evil.listen(), await good.listen()
        await sent(author, b"before")
        await heard.hears(1)
        await keeper.expel(evil, lead=120.0)
        await network.heard(keeper)
        await sent(author, b"still before")
        await heard.hears(2)
        await trio.sleep(120.0)
        await sent(author, b"after")
        await kept.hears(3)
        await trio.sleep(SILENCE)
        assert heard.payloads == [b"before", b"still before"]
        assert kept.payloads == [b"before", b"still before", b"after"]
        with pytest.raises(Refusal, match="not in its community"):
            await evil.listen(TWO)
        assert network["edge 1"].count("messages_unmatched") == 0
        # A day later nobody has anything of the epoch before, and all goes on.
        await trio.sleep(2 * network.calendar.day_seconds)
        assert [len(one.daemon._charters.epochs.open) for one in network.members] == [1, 0, 1, 0, 0]
        assert network["edge 1"].status("filters") == 1
        await sent(author, b"later")
        await kept.hears(4)
        assert heard.payloads == [b"before", b"still before"]


async def test_nothing_is_lost_while_a_member_is_admitted() -> None:
    async with community_tree(ROWS) as network:
        keeper = network.keeping[0]
        author, reader, late = [
            await network.daemon(name, keeper, edge)
            for name, edge in (("author", "edge 3"), ("reader", "edge 1"), ("late", "edge 2"))
        ]
        await keeper.admit(network["edge 1"], author, reader)
        await network.heard(keeper)
        ear = await reader.listen()
        sent_: list[bytes] = []

        async def publish() -> None:
            for number in range(30):
                sent_.append(b"%d" % number)
                await sent(author, sent_[-1])
                await trio.sleep(10.0)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(publish)
            await trio.sleep(60.0)
            await keeper.admit(late, network["edge 2"], lead=60.0)
            await network.heard(keeper)
            other = await late.listen()
        await ear.hears(30)
        assert ear.payloads == sent_
        await other.hears(1)
        assert other.payloads == sent_[-len(other.payloads) :]


async def test_members_that_restart_go_on_where_they_were() -> None:
    async with community_tree(ROWS) as network:
        keeper = network.keeping[0]
        author, reader = [
            await network.daemon(name, keeper, edge) for name, edge in (("a", "edge 3"), ("r", "edge 1"))
        ]
        await keeper.admit(network["edge 1"], network["inner"], author, reader)
        await network.heard(keeper)
        ear = await reader.listen()
        said = network.count("advertisements_sent")
        for member in network.members:
            await member.stop()
        for member in network.members:
            await member.start()
        await network.linked()
        await sent(author, b"x")
        await ear.hears(1)
        assert network.count("advertisements_sent") == said, "the same filter is sealed as it was before"
        await reader.stop()
        await keeper.expel(lead=60.0)
        await trio.sleep(120.0)
        with pytest.raises(NoReceiptYet, match="knows nobody"):
            await sent(author, b"of the next epoch")
        await reader.start()
        [route] = reader.routes
        with trio.fail_after(120.0):
            await route.ready.wait()
        await until(lambda: network["edge 1"].status("filters") == 2, 120.0)
        await until(lambda: author.daemon.service.status()["outbox"] == 0, 900.0)


async def test_levels_count_at_an_edge_broker_that_is_in_the_community() -> None:
    terms = {"k": 2, "condition": "source", "otherwise": "wait"}
    async with community_tree(ROWS, communities=2) as network:
        one, two = network.keeping
        insiders = [await network.daemon(f"in {number}", one, "edge 1") for number in range(2)]
        stranger = await network.daemon("of two", two, "edge 1")
        outside = await network.daemon("outside", one, "edge 2")
        for keeper, some in ((one, [*insiders, outside]), (two, [stranger])):
            await keeper.admit(network["edge 1"], *some)
            await network.heard(keeper)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(insiders[0].listen, ONE, "", terms)
            nursery.start_soon(stranger.listen, ONE, "", terms)
            await trio.sleep(SILENCE)
            assert network["edge 1"].status("filters_shown") == 0, (
                "two communities are no crowd for each other"
            )
            await insiders[1].listen(ONE, "", terms)
            assert network["edge 1"].status("filters_shown") == 1
            nursery.cancel_scope.cancel()
        with pytest.raises(Refusal, match="not in this daemon's community"):
            await outside.listen(ONE, "", terms)
        assert network["edge 2"].count("refused_community") == 1


async def test_who_is_in_no_community_is_told_so() -> None:
    async with community_tree(ROWS) as network:
        keeper = network.keeping[0]
        nobody = await network.daemon("nobody", None)
        early = await network.daemon("early", keeper)
        for node, why in ((nobody, "community join"), (early, "no charter")):
            with pytest.raises(Refusal, match=why):
                await node.listen()
        await keeper.admit()
        await network.heard(keeper)
        with pytest.raises(Refusal, match="community admit"):
            await early.listen()
        await keeper.admit(early)
        await network.heard(keeper)
        ear = await early.listen()
        assert ear.payloads == []


async def test_a_root_outside_refuses_where_nobody_subscribes() -> None:
    async with community_tree(ROWS) as network:
        keeper = network.keeping[0]
        author, reader = await network.daemon("a", keeper), await network.daemon("r", keeper, "edge 1")
        await keeper.admit(author, reader)
        await network.heard(keeper)
        with pytest.raises(NoReceiptYet, match="nobody subscribes there now"):
            await sent(author, b"early")
        assert network.root.count("refused_community") > 0
        assert author.daemon.service.status()["outbox"] == 1
        ear = await reader.listen()
        await ear.hears(1, within=900.0)


async def test_nothing_is_lost_where_a_broker_leaves_the_tree() -> None:
    rows = (("inner 1", "inner", "root"), ("inner 2", "inner", "root"), ("edge 1", "edge", "inner 1"))
    async with community_tree(rows) as network:
        keeper = network.keeping[0]
        author, reader = await network.daemon("a", keeper), await network.daemon("r", keeper, "edge 1")
        await keeper.admit(network["edge 1"], author, reader)
        await network.heard(keeper)
        ear = await reader.listen()
        await network["inner 1"].stop()
        for number in range(5):
            await sent(author, b"%d" % number)
        network["edge 1"].parent = network["inner 2"]
        network.members.remove(network["inner 1"])
        await network.list_all()
        await ear.hears(5, within=900.0)
        await sent(author, b"5")
        await ear.hears(6)
        assert sorted(ear.payloads) == [b"%d" % number for number in range(6)]


async def test_an_edge_broker_that_joins_opens_what_it_passed_on_and_keeps_terms_after_a_restart() -> None:
    terms = {"k": 2, "condition": "source", "otherwise": "wait"}
    async with community_tree(ROWS) as network:
        keeper, edge = network.keeping[0], network["edge 1"]
        author = await network.daemon("a", keeper, "edge 3")
        readers = [await network.daemon(f"r{number}", keeper, "edge 1") for number in range(2)]
        await keeper.admit(author, *readers)
        await network.heard(keeper)
        ear = await readers[0].listen(PLACES, "kind = fire")
        await sent(author, b"1", PLACES, kind="flood")
        await until(lambda: edge.count("messages_forwarded") == 1, 60.0, "outside it passes all on")
        await keeper.admit(edge)
        await network.heard(keeper)
        await until(lambda: edge.status("filters") == 2, 60.0, "under both epochs")
        await trio.sleep(FRESH)  # so that the author asks before it publishes
        await sent(author, b"2", PLACES, kind="flood")
        await sent(author, b"3", PLACES, kind="fire")
        await ear.hears(1)
        assert edge.count("messages_forwarded") == 2
        async with trio.open_nursery() as nursery:
            nursery.start_soon(readers[1].listen, TWO, "", terms)
            await until(lambda: edge.status("filters") == 3, 60.0, "it counts in the epoch that it is in")
            shown_ = edge.status("filters_shown")
            await edge.stop()
            await edge.start()
            await network.linked()
            await trio.sleep(SILENCE)
            assert edge.status("filters_shown") == shown_, (
                "one subscriber is no crowd after a restart, either"
            )
            nursery.cancel_scope.cancel()


async def test_terms_take_an_edge_broker_that_is_in_the_community() -> None:
    terms = {"k": 2, "condition": "source", "otherwise": "wait"}
    async with community_tree(ROWS) as network:
        keeper = network.keeping[0]
        reader = await network.daemon("r", keeper)
        await keeper.admit(network["edge 1"], network["edge 2"], reader)
        await network.heard(keeper)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(reader.listen, ONE, "", terms)
            await until(reader.daemon.brokers.routes.attachments.is_reached, 60.0)
            used = network.member_of(reader)
            assert used.name in ("edge 1", "edge 2"), "one of the community is drawn"
            await keeper.expel(used)
            await until(lambda: network.member_of(reader) is not used, 300.0)
            assert network.member_of(reader).name in ("edge 1", "edge 2")
            nursery.cancel_scope.cancel()


async def test_charters_that_do_not_hold_are_refused() -> None:
    async with community_tree(ROWS) as network:
        keeper = network.keeping[0]
        other = Keeper(network, "not listed")
        first = keeper.signed()
        assert await keeper.hand_in(first) == "accepted"
        assert await keeper.hand_in(first) == "accepted", "it is held already"
        keeper.epoch = 0
        assert await keeper.hand_in(keeper.signed(network.now + 5)) == "form", "two of one epoch"
        assert await keeper.hand_in(keeper.signed()) == "accepted"
        assert await keeper.hand_in(first) == "form", "a newer one is held"
        assert await keeper.hand_in(keeper.signed(network.now + 1e6)) == "day"
        assert await other.hand_in(other.signed()) == "unknown"
        assert network.root.count("charters_clashed") == 1
        network.root.daemon.replace_keepers([other.key])
        assert await other.hand_in(other.signed()) == "accepted"
        await network.heard(other)
        await until(lambda: network["edge 1"].daemon._charters.newest(keeper.key) is None, 60.0)


async def test_hostile_children_are_refused_and_cost_nobody_anything() -> None:
    async with community_tree(ROWS) as network:
        keeper = network.keeping[0]
        author, reader = await network.daemon("a", keeper), await network.daemon("r", keeper, "edge 1")
        await keeper.admit(network.root, network["edge 1"], author, reader)
        await network.heard(keeper)
        ear = await reader.listen()
        held = network["edge 1"].daemon._charters.epochs.open[0]
        client = await network.client("edge 1")
        forged = SealedFilter(held.label, bytes(216))
        clear = shown(KEY, filter_of(""))
        assert await client.ask(lambda n: Subscribe(n, bytes(16), forged, OPEN)) == "form"
        assert await client.ask(lambda n: Subscribe(n, bytes(16), clear, OPEN)) == "form"
        closed = SealedFilter(bytes(16), bytes(216))
        crowd = AnonymityTerms(2, AnonymityCondition.SOURCE, "wait")
        assert await client.ask(lambda n: Subscribe(n, bytes(16), closed, crowd)) == "community"
        assert await client.ask(lambda n: Subscribe(n, bytes(16), closed, OPEN)) == "accepted"
        assert network.root.status("filters") == 2, "what nobody here can open is passed on as it is"
        before = network["edge 1"].count("charters_taken")
        await client.say(lambda n: NewCharter(keeper.signed()))
        await until(lambda: not client.is_attached, 60.0, "children do not say charters")
        assert network["edge 1"].count("charters_taken") == before
        message = network.message()
        stale = sealed_as(message, MemberEpoch(keeper.key, 9, 0, EpochKey(bytes(32))))
        for wrong in (message, stale):
            assert await network.publish(wrong) == "community"
        true = sealed_as(message, held)
        tokens = (*true.tokens[:-1], bytes(16))
        assert await network.publish(structs.replace(true, tokens=tokens)) == "form"
        moved = structs.replace(network.message(), tokens=true.tokens)
        assert await network.publish(moved) == "form", "words are of one message"
        assert await network.publish(true) == "accepted"
        await sent(author, b"x")
        await ear.hears(1)
        await trio.sleep(SILENCE)
        assert ear.payloads == [b"x"]
        assert network.root.count("refused_community") == 2
        assert network.root.count("refused_form") == 2
        assert network["edge 1"].count("refused_community") == 1


def sealed_as(message: Message, epoch: MemberEpoch) -> Message:
    tokens = seal_words(epoch, message.id, message.tokens, Random(1).randbytes)
    return structs.replace(message, tokens=tokens)
