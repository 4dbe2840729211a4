"""What the server keeps: who asks for a day has all of it once, however links end and programs die."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
import trio
from daemons import CentralNetworkOfDaemons, daemons
from days_published import cursor, publish_for
from msgspec.msgpack import decode
from small_central import TOPIC, Ear, Person, SmallCentral, hears, small_central
from small_network import DAY_SECONDS, EPOCH_SECONDS, ONE, TWO, until

from hushcast_central.server import kept_publications
from hushcast_central.server.deliveries import WINDOW
from hushcast_central.server.kept_publications import HELD_FOR, MAX_ASKED
from hushcast_protocol.base.errors import Refusal
from hushcast_protocol.central import request_proofs
from hushcast_protocol.central.kept_tokens import kept_token
from hushcast_protocol.central.pseudonym_register import PseudonymRecord
from hushcast_protocol.content.bodies import Content
from hushcast_protocol.content.messages import TRAIL_SIZE, Message
from hushcast_protocol.content.payload_sizes import PADDED_SIZES
from hushcast_protocol.content.predicates import parse_where
from hushcast_protocol.content.topics import Interest
from hushcast_runtime.processes.keeping_section import NOTHING, KeepingSection
from hushcast_runtime.storage.spool import MAX_SPOOL

WITHIN = 2 * DAY_SECONDS


def kept(network: SmallCentral, trunk: bytes = TOPIC[:16], day: int | None = None) -> bytes:
    """Return the token of what is kept under a trunk of a day, of today unless it is said."""
    return kept_token(network.today if day is None else day, trunk)


async def asked(network: SmallCentral, *tokens: bytes, acknowledges: bool = True) -> Ear:
    """Ask for what is kept, and attach."""
    return await network.subscriber(*(tokens or (kept(network),)), acknowledges=acknowledges)


async def withdrawn(network: SmallCentral, person: Person, *tokens: bytes) -> Any:
    """Withdraw what was asked for; return the verdict, proven where it is `accepted`."""
    connection = await network.connect(network.deliveries)
    request = person.withdraw(*tokens)
    answer = await connection.ask(request)
    await connection.close()
    assert answer.verdict != "accepted" or request_proofs.is_from_server(person.secret, request, answer)
    return answer.verdict


async def test_what_is_kept_comes_whole_and_what_is_published_then_does_not() -> None:
    async with small_central() as network:
        sent = [await network.published() for _ in range(5)]
        other = network.message()
        await network.publish(Message(other.id, other.day, (bytes(16),), other.trail, other.body))
        ear = await asked(network)
        await until(hears(ear, *sent))
        await network.published()
        await trio.sleep(EPOCH_SECONDS)
        assert [len(ear.person.heard), len({one.id for one in ear.person.heard})] == [5, 5]
        assert await withdrawn(network, ear.person, kept(network)) == "accepted"


async def test_the_server_says_that_all_came_only_once_it_was_acknowledged() -> None:
    async with small_central() as network:
        sent = [await network.published(size=3) for _ in range(3 * WINDOW // 2**16)]
        ear = await asked(network, acknowledges=False)
        await until(lambda: ear.person.heard)
        await trio.sleep(20.0)
        assert len(ear.person.heard) < len(sent), "as fast as it is acknowledged"
        assert await withdrawn(network, ear.person, kept(network)) == "quota"
        ear.acknowledges = True
        await ear.acknowledge()
        await until(hears(ear, *sent))
        await until(lambda: network.server.daemon.status()["deliveries_waiting"] == 0)
        assert await withdrawn(network, ear.person, kept(network)) == "accepted"
        assert await withdrawn(network, ear.person) == "accepted"


async def test_what_nobody_acknowledges_waits_where_it_is_kept_and_takes_no_room() -> None:
    async with small_central() as network:
        sent = [await network.published(size=3) for _ in range(3 * WINDOW // 2**16)]
        status = network.server.daemon.status
        ear = await asked(network, acknowledges=False)
        await until(lambda: ear.person.heard)
        assert 0 < status()["deliveries_waiting_bytes"] < 2 * WINDOW
        await until(lambda: ear.closed, 600.0, "who takes nothing is let go")
        assert status()["deliveries_waiting"] == 0
        again = await network.attached(ear.person)
        await until(hears(again, *sent))
        await until(lambda: status()["deliveries_waiting"] == 0)
        assert await withdrawn(network, ear.person, kept(network)) == "accepted"


async def test_who_takes_nothing_gives_way_to_who_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_publications, "MAX_SPOOL", 2 * (MAX_SPOOL - 2 * 2**20))  # of 128 MiB two
    async with small_central() as network:
        sent = [await network.published(size=len(PADDED_SIZES) - 1) for _ in range(12)]
        deaf = [await asked(network, acknowledges=False) for _ in range(6)]
        await until(lambda: network.server.daemon.status()["deliveries_waiting_bytes"] >= 2**20)
        ear = await asked(network)
        begun = network.now
        await until(hears(ear, *sent), 120.0)
        # Six who wait are in turn before who came last, and two of them have room at a time.
        assert network.now - begun < 4 * HELD_FOR
        assert any(one.closed for one in deaf)
        assert await withdrawn(network, ear.person, kept(network)) == "accepted"


async def test_what_is_withdrawn_in_place_of_what_was_asked_for_hides_nothing() -> None:
    async with small_central() as network:
        await network.published()
        ear = await asked(network, acknowledges=False)
        await until(lambda: ear.person.heard)
        assert await withdrawn(network, ear.person, kept(network, bytes(16))) == "quota"


async def test_a_server_that_restarts_does_not_say_so_of_what_it_brings_no_more() -> None:
    async with small_central() as network:
        sent = [await network.published(size=3) for _ in range(3 * WINDOW // 2**16)]
        ear = await asked(network, acknowledges=False)
        await until(lambda: ear.person.heard)
        await network.server.restart()
        await network.linked()
        assert await withdrawn(network, ear.person, kept(network)) == "quota"
        again = await asked(network)
        await until(hears(again, *sent))
        assert await withdrawn(network, again.person, kept(network)) == "accepted"


async def test_one_pseudonym_asks_for_so_much() -> None:
    async with small_central() as network:
        tokens = [bytes([number]) * 16 for number in range(MAX_ASKED + 4)]
        for token in tokens:
            body = network.message()
            await network.publish(Message(body.id, body.day, (token,), bytes(TRAIL_SIZE), body.body), token)
        ear = await asked(network, *(kept(network, token) for token in tokens))
        await until(lambda: len(ear.person.heard) == MAX_ASKED)
        await trio.sleep(EPOCH_SECONDS)
        assert len(ear.person.heard) == MAX_ASKED
        assert await withdrawn(network, ear.person, kept(network, tokens[-1])) == "quota"


async def test_a_message_of_another_day_under_a_days_trunk_hides_nothing_of_it() -> None:
    async with small_central() as network:
        sent = [await network.published() for _ in range(5)]
        token = kept(network)
        await trio.sleep(DAY_SECONDS)
        late = network.message()
        await network.publish(Message(late.id, late.day, sent[0].tokens, late.trail, late.body))
        ear = await asked(network, token)
        await until(hears(ear, *sent))
        await trio.sleep(EPOCH_SECONDS)
        assert {one.day for one in ear.person.heard} == {sent[0].day}


async def test_a_day_goes_when_it_was_kept_for_so_long_and_with_the_setting() -> None:
    async with small_central() as network:
        network.keeping = KeepingSection(days=2)
        await network.server.restart()
        await network.linked()
        await network.published()
        size = network.server.daemon.status()["kept_bytes"]
        assert size > 1024
        await trio.sleep(2 * DAY_SECONDS)
        assert network.server.daemon.status()["kept_bytes"] == size
        await trio.sleep(DAY_SECONDS)
        assert network.server.daemon.status()["kept_bytes"] == 0
        await network.published()
        network.keeping = NOTHING
        await network.server.restart()
        assert network.server.daemon.status()["kept_bytes"] == 0
        assert not await network.server.store.scan("kept-message")


async def registered(network: CentralNetworkOfDaemons) -> list[PseudonymRecord]:
    """The pseudonyms that the server knows, those that are over included."""
    return [decode(value, type=PseudonymRecord) for _, value in await network.server.store.scan("pseudonym")]


@pytest.mark.slow
async def test_killed_while_it_brings_three_days_all_comes_once() -> None:
    async with daemons() as network:
        here, there = network.nodes
        await here.listen()
        await here.stop()
        await publish_for(there, 3, 4)
        await here.start()
        for number in range(12):
            await trio.sleep(network.env.uniform(0.0, 25.0))
            await [network.server, network.deliveries, here][number % 3].restart()
        await until(lambda: cursor(here) == 12, WITHIN, "all came")
        await until(lambda: here.count("past_days_brought") >= 3, WITHIN, "and all days are done with")
        await trio.sleep(DAY_SECONDS)
        assert cursor(here) == 12, "and none twice"


@pytest.mark.slow
async def test_each_day_is_asked_for_by_a_pseudonym_that_asks_for_nothing_else() -> None:
    async with daemons() as network:
        here, there = network.nodes
        await publish_for(there, 3, 1)
        interest = Interest(ONE, parse_where("", ONE.attributes))
        with pytest.raises(Refusal, match="for 14 days: ask for `14d`"):
            await here.daemon.service.subscribe(interest, past=network.now - 15 * DAY_SECONDS)
        before = {one.secret for one in await registered(network)}
        moments: list[float] = []
        network.server.daemon._kept.ask = noting(network.server.daemon._kept.ask, moments, network)
        await here.daemon.service.subscribe(interest, past=network.now - 3 * DAY_SECONDS)
        await until(lambda: cursor(here) == 3, WITHIN, "all came")
        await until(lambda: len(moments) == 5, what="one asks for each day, one for what comes")
        new = [one for one in await registered(network) if one.secret not in before]
        assert len({one.secret for one in new}) == 5
        assert all(after - one > 5 for one, after in pairwise(sorted(moments)))


@pytest.mark.slow
async def test_what_one_proxy_does_not_bring_comes_through_another() -> None:
    async with daemons() as network:
        await network.add("honest", "deliveries").start()
        await network.server.restart()
        await network.linked()
        here, there = network.nodes
        await publish_for(there, 3, 1)
        await here.restart()  # so that it knows both proxies
        network.deliveries.daemon._passing.delivery = lambda *_: None
        interest = Interest(ONE, parse_where("", ONE.attributes))
        await here.daemon.service.subscribe(interest, past=network.now - 3 * DAY_SECONDS)
        await until(lambda: cursor(here) == 3, WITHIN, "all came")
        await until(lambda: here.count("past_days_brought") >= 3, WITHIN, "and all days are done with")


def swaps_past(proxy: Any) -> None:
    """Have a proxy put a token of which nothing is kept into each question for a day gone by."""
    passing = proxy.daemon._passing
    turned = passing._turned
    passing._turned = lambda what: turned(turned(what))


async def test_a_day_of_which_nothing_came_is_asked_for_through_another_proxy() -> None:
    async with daemons() as network:
        await network.add("honest", "deliveries").start()
        await network.server.restart()
        await network.linked()
        here, there = network.nodes
        await publish_for(there, 3, 1)
        await here.restart()
        interest = Interest(ONE, parse_where("", ONE.attributes))
        swaps_past(network.deliveries)
        await here.daemon.service.subscribe(interest, past=network.now - 3 * DAY_SECONDS)
        await until(lambda: cursor(here) == 3, WITHIN, "all came")
        await until(lambda: here.count("past_days_brought") >= 3, WITHIN, "and all days are done with")


async def test_as_published_nobody_asks_whatever_a_server_announces() -> None:
    async with daemons(profile="paper") as network:
        network.keeping = KeepingSection()
        await network.server.restart()
        await network.linked()
        here, there = network.nodes
        for topic in (ONE, TWO):
            await here.listen(topic)
        with pytest.raises(Refusal):
            await here.daemon.service.subscribe(Interest(ONE), past=network.now - DAY_SECONDS)
        await here.stop()
        await publish_for(there, 2, 1)
        await here.start()
        await trio.sleep(EPOCH_SECONDS)
        await there.daemon.service.publish(ONE, Content(b"x"))
        await until(lambda: shown(here) > 0, WITHIN, "what is published comes")
        assert here.count("past_days_brought") == 0


def shown(node: Any) -> int:
    """How many messages a daemon's subscriptions have shown."""
    return sum(int(held["cursor"]) for held in node.daemon.service.subscriptions())


def noting(ask: Any, moments: list[float], network: SmallCentral) -> Any:
    """Note when something is asked for."""

    def noted(pseudonym: bytes, tokens: Any) -> None:
        moments.append(network.now)
        ask(pseudonym, tokens)

    return noted
