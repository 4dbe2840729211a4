"""The server is slow: what users say and take back meanwhile holds up nobody else, and holds no room."""

from __future__ import annotations

import pytest
import trio
from small_central import hears, small_central
from small_network import until
from test_central_hostile import hostile

from hushcast_central.proxy import server_link
from hushcast_protocol.central import pseudonym_register, request_proofs
from hushcast_protocol.central.frames import (
    AcknowledgeDeliveries,
    AskTransformationFactor,
    Detach,
    Ping,
    ProxyRequest,
    UserAnswer,
)
from hushcast_runtime.transports import channel_writer, memory


async def test_a_user_that_acknowledges_without_end_does_not_end_the_link_of_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(memory, "MAX_IN_FLIGHT", 1000)
    monkeypatch.setattr(channel_writer, "MAX_POSTED", 50)
    async with small_central() as network:
        ear, flood = await network.subscriber(), await network.subscriber()
        network.server.gate.shut()
        for _ in range(10):
            await flood.connection.say(*[AcknowledgeDeliveries(0, bytes(16))] * 50)
            await trio.sleep(0.1)
        person = network.person("subscribe")
        connection = await network.connect(network.deliveries)
        await connection.say(person.introduce())
        await trio.sleep(1)
        network.server.gate.open()
        assert await connection.hear() == UserAnswer("accepted", None)
        message = await network.published()
        await until(hears(ear, message))
        assert not ear.closed
        assert network.deliveries.count("links_failed") == 0


async def test_requests_of_users_who_gave_up_do_not_wait_for_the_server(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(memory, "MAX_IN_FLIGHT", 1000)
    monkeypatch.setattr(server_link, "ANSWER_WITHIN", 5.0)
    async with small_central() as network:
        network.server.gate.shut()
        for _ in range(20):
            connection = await network.connect(network.deliveries)
            await connection.say(network.person("subscribe").introduce())
            assert isinstance(await connection.hear(), UserAnswer)
            await connection.close()
        network.server.gate.open()
        await network.pong(network.deliveries)
        await trio.sleep(5)
        assert 0 < network.server.count("introductions") < 10, "those that were on their way"


async def test_an_attachment_that_is_taken_back_at_once_is_none() -> None:
    async with small_central() as network:
        proxy = await hostile(network)
        person, attachment, _ = await proxy.subscriber()
        await proxy.connection.say(Detach(attachment))
        attach = ProxyRequest(100, request_proofs.attach(person.pseudonym, person.secret))
        await proxy.connection.say(attach, Detach(100), Ping())
        heard = [await proxy.hear() for _ in range(2)]
        assert network.sign_of_life() in heard
        assert network.server.daemon.status()["attached"] == 0


async def test_who_gives_way_to_others_is_not_attached_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pseudonym_register, "MAX_PSEUDONYMS", 8)  # four of each of two proxies
    async with small_central() as network:
        connection = (await hostile(network)).connection
        for number in range(12):
            person = network.person("subscribe")
            attach = request_proofs.attach(person.pseudonym, person.secret)
            await connection.say(ProxyRequest(2 * number, AskTransformationFactor(person.introduce().sealed)))
            await trio.sleep(1)
            await connection.say(ProxyRequest(2 * number + 1, attach))
            await trio.sleep(1)
        status = network.server.daemon.status()
        assert (status["pseudonyms"], status["attached"]) == (4, 4)
