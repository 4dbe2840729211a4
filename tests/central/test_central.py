"""Server and proxies in memory: what is published arrives at those who asked, and nowhere else."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from small_central import OTHER, TOPIC, hears, small_central
from small_network import until

from hushcast_central.proxy import users
from hushcast_central.server import deliveries, publications
from hushcast_protocol.central import request_proofs
from hushcast_protocol.central.frames import Ping, UserAnswer
from hushcast_runtime.storage import spool


@pytest.mark.parametrize("profile", ["hardened", "paper"])
async def test_what_is_published_is_delivered_to_those_who_asked_for_it(profile: str) -> None:
    async with small_central(profile) as network:
        ear, other = await network.subscriber(), await network.subscriber(OTHER)
        both = await network.subscriber(TOPIC, OTHER)
        first = await network.published()
        second = await network.published(OTHER)
        third = await network.published(OTHER, TOPIC, size=4)
        await until(lambda: hears(both, first, second, third)() and hears(ear, first, third)())
        await trio.sleep(60)
        assert [message.id for message in ear.person.heard] == [first.id, third.id]
        assert [message.id for message in other.person.heard] == [second.id, third.id]
        assert len(both.person.heard) == 3
        await until(lambda: network.server.daemon.status()["deliveries_waiting"] == 0)
        assert network.count("deliveries_acknowledged") == 7
        assert network.count("publications_unmatched") == 0


async def test_deliveries_of_one_publication_are_alike_in_nothing_but_size() -> None:
    async with small_central() as network:
        ears = [await network.subscriber() for _ in range(2)]
        message = await network.published()
        await until(lambda: all(hears(ear, message)() for ear in ears))
        (one,), (two,) = (ear.wrapped for ear in ears)
        assert len(one.payload) == len(two.payload)
        assert not {one.mask, one.masked, one.payload} & {two.mask, two.masked, two.payload}


async def test_as_published_they_show_the_same_payload() -> None:
    async with small_central("paper") as network:
        ears = [await network.subscriber() for _ in range(2)]
        message = await network.published()
        await until(lambda: all(hears(ear, message)() for ear in ears))
        (one,), (two,) = (ear.wrapped for ear in ears)
        assert one.payload == two.payload
        assert one.mask != two.mask
        assert one.masked != two.masked


async def test_the_same_publication_is_delivered_once_however_often_it_comes() -> None:
    async with small_central() as network:
        ear = await network.subscriber()
        message = network.message()
        for _ in range(3):
            assert await network.publish(message) == "accepted"
        last = await network.published()
        await until(hears(ear, last))
        assert [heard.id for heard in ear.person.heard] == [message.id, last.id]
        assert network.count("publications_repeated") == 2


async def test_what_came_while_somebody_was_away_waits() -> None:
    async with small_central() as network:
        ear = await network.subscriber()
        await ear.leave()
        await until(lambda: network.server.daemon.status()["attached"] == 0)
        messages = [await network.published() for _ in range(20)]
        back = await network.attached(ear.person)
        await until(hears(back, *messages))
        assert [heard.id for heard in back.person.heard] == [message.id for message in messages]


async def test_what_was_not_acknowledged_comes_again() -> None:
    async with small_central() as network:
        ear = await network.subscriber(acknowledges=False)
        messages = [await network.published() for _ in range(3)]
        await until(hears(ear, *messages))
        await ear.leave()
        back = await network.attached(ear.person)
        await until(lambda: len(back.wrapped) == 3)
        again = await network.attached(ear.person)
        await trio.sleep(30)
        assert again.wrapped == []
        assert back.closed, "an earlier attachment gets no more"


@pytest.mark.slow
async def test_a_slow_reader_holds_up_nobody_and_loses_nothing() -> None:
    async with small_central() as network:
        slow = network.person("subscribe")
        connection = await slow.introduced(network.deliveries)
        await network.accepted(slow, connection, slow.subscribe(TOPIC))
        await slow.attach(connection)  # and does not read any more
        quick = await network.subscriber()
        messages = [await network.published(size=4) for _ in range(20)]
        await until(hears(quick, *messages), 60.0)
        await until(lambda: network.count("attachments_lapsed") == 1, 300.0)
        assert network.deliveries.daemon._users.held.total == 0
        back = await network.attached(slow)
        await until(hears(back, *messages))
        await until(lambda: network.server.daemon.status()["deliveries_waiting"] == 0)


async def test_no_more_is_under_way_than_the_window() -> None:
    async with small_central() as network:
        ear = await network.subscriber(acknowledges=False)
        messages = [await network.published(size=4) for _ in range(4)]
        await until(lambda: len(ear.wrapped) == 2)
        await trio.sleep(20)
        assert len(ear.wrapped) * 256 * 1024 <= deliveries.WINDOW + 256 * 1024
        ear.acknowledges = True
        await ear.acknowledge()
        await until(hears(ear, *messages))


async def test_who_withdrew_hears_no_more() -> None:
    async with small_central() as network:
        ear = await network.subscriber(TOPIC, OTHER)
        person = ear.person
        beside = await network.connect(network.deliveries)
        await network.accepted(person, beside, person.withdraw(TOPIC))
        await network.published()
        last = await network.published(OTHER)
        await until(hears(ear, last))
        assert len(person.heard) == 1
        ear.acknowledges = False
        await network.published(OTHER)
        await until(lambda: len(person.heard) == 2)
        over = person.withdraw()
        await network.accepted(person, beside, over)
        await until(lambda: ear.closed)
        await until(lambda: network.server.daemon.status()["deliveries_waiting"] == 0)
        await network.accepted(person, beside, over)
        answer = await (await network.connect(network.deliveries)).ask(
            request_proofs.attach(person.pseudonym, person.secret)
        )
        assert answer == UserAnswer("unknown", None)


async def test_after_its_day_nothing_is_left_of_a_pseudonym() -> None:
    async with small_central() as network:
        ear = await network.subscriber()
        tomorrow = network.person("subscribe", network.today + 1)
        connection = await tomorrow.introduced(network.deliveries)
        await network.accepted(tomorrow, connection, tomorrow.subscribe(OTHER))
        await ear.leave()
        await network.published()
        await trio.sleep(3 * network.calendar.day_seconds)
        status = network.server.daemon.status()
        assert status["deliveries_waiting"] == status["pseudonyms"] == status["tokens"] == 0
        assert network.deliveries.daemon.status()["pseudonyms"] == 0
        assert network.count("deliveries_expired") == 1
        for member in network.members:
            kept = {kind for kind, records in member.store._records.items() if records}
            assert kept - {"kept", "kept-message"} == {"address", "wire"}, "what is kept is of no pseudonym"


async def test_a_publication_that_nobody_wants_is_answered_the_same() -> None:
    async with small_central() as network:
        assert await network.publish(network.message()) == "accepted"
        assert network.count("publications_unmatched") == 1
        assert network.server.daemon.status()["deliveries_waiting"] == 0


async def test_a_full_spool_refuses_until_there_is_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool, "MAX_SPOOL", 10_000)
    monkeypatch.setattr(publications, "MAX_PSEUDONYMS", 2)
    async with small_central() as network:
        ear = await network.subscriber()
        await ear.leave()
        message = network.message()
        for _ in range(20):
            if (verdict := await network.publish(message)) != "accepted":
                break
            message = network.message()
        assert verdict == "quota"
        assert await network.publish(message, OTHER) == "quota", "whether or not anybody wants it"
        waiting = network.server.daemon.status()["deliveries_waiting"]
        back = await network.attached(ear.person)
        await until(lambda: len(back.wrapped) == waiting)
        await until(lambda: network.server.daemon.status()["deliveries_waiting"] == 0)
        assert await network.publish(message) == "accepted"
        await until(hears(back, message))


async def test_who_stays_away_for_long_stops_nobody_else(
    monkeypatch: pytest.MonkeyPatch, log_lines: list[dict[str, Any]]
) -> None:
    monkeypatch.setattr(spool, "MAX_SHARE", 5000)
    async with small_central() as network:
        away, ear = await network.subscriber(), await network.subscriber()
        await away.leave()
        log_lines.clear()
        messages = [await network.published() for _ in range(10)]
        (line,) = log_lines  # said once a while
        assert "is lost to it" in line["event"]
        assert line.keys() == {"event", "level"}, "and of nobody"
        await until(hears(ear, *messages))
        back = await network.attached(away.person)
        await until(lambda: network.server.daemon.status()["deliveries_waiting"] == 0)
        assert len(back.wrapped) + network.count("deliveries_over_share") == 10
        assert len(back.wrapped) == 4


async def test_attached_users_show_that_they_live_or_are_let_go() -> None:
    async with small_central() as network:
        person = network.person("subscribe")
        connection = await person.introduced(network.deliveries)
        await person.attach(connection)
        for _ in range(10):
            await trio.sleep(users.SILENT - 60)
            assert await connection.ask(Ping()) == network.sign_of_life()
        assert await connection.hear(users.SILENT + 10) is None
        assert network.deliveries.daemon.status()["attached"] == 0


async def test_a_pong_tells_whether_the_server_is_there() -> None:
    async with small_central() as network:
        assert await network.pong(network.deliveries) == network.sign_of_life()
        await network.server.stop()
        await until(lambda: network.deliveries.daemon.link_state != "open")
        assert await network.pong(network.deliveries) == network.sign_of_life(False)
        assert await network.publish(network.message()) == "closed"
        await network.server.start()
        await network.linked()
        assert await network.pong(network.deliveries) == network.sign_of_life()
