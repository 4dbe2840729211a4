"""A proxy drops what it is given, and says in the server's name that it was taken."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import trio
from daemons import daemons
from small_network import ONE, TWO, until

from hushcast_central.proxy.transformation import ProxyTransformation
from hushcast_local.outbox import NoReceiptYet
from hushcast_protocol.central.frames import Introduce, UserAnswer
from hushcast_protocol.content.bodies import Content

FORGED = {
    "no proof": lambda request, heard: UserAnswer("accepted", None),
    "its own": lambda request, heard: UserAnswer("accepted", bytes(16)),
    "the request's": lambda request, heard: UserAnswer("accepted", request.proof),
    "another answer's": lambda request, heard: UserAnswer("accepted", heard[0].proof),
}


class Liar:
    """Passes on introductions, and answers the rest itself, once it is told to."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, forged: Callable[[Any, list[UserAnswer]], UserAnswer]
    ) -> None:
        self.lies = False
        self.told = 0
        answer, heard = ProxyTransformation.answer, []

        async def lie(passing: ProxyTransformation, what: Any) -> UserAnswer:
            if self.lies and not isinstance(what, Introduce):
                self.told += 1
                return forged(what, heard)
            true = await answer(passing, what)
            if true.proof is not None:
                heard.append(true)
            return true

        monkeypatch.setattr(ProxyTransformation, "answer", lie)


each_lie = pytest.mark.parametrize("forged", FORGED.values(), ids=FORGED)


@each_lie
async def test_a_forged_receipt_is_none(
    forged: Callable[[Any, list[UserAnswer]], UserAnswer], monkeypatch: pytest.MonkeyPatch
) -> None:
    proxy = Liar(monkeypatch, forged)
    async with daemons() as network:
        reader, writer = network.nodes
        ear = await reader.listen(ONE)
        await writer.daemon.service.publish(ONE, Content(b"first"))
        proxy.lies = True
        with pytest.raises(NoReceiptYet):
            await writer.daemon.service.publish(ONE, Content(b"second"))
        assert len(writer.daemon.service.outbox()) == 1
        assert network.count("answers_forged") == proxy.told > 0
        proxy.lies = False
        assert await ear.hears(2, 3600.0) == [b"first", b"second"]


@each_lie
async def test_a_subscription_that_only_a_proxy_took_is_none(
    forged: Callable[[Any, list[UserAnswer]], UserAnswer], monkeypatch: pytest.MonkeyPatch
) -> None:
    proxy = Liar(monkeypatch, forged)
    async with daemons(1) as network:
        (reader,) = network.nodes
        await reader.listen(ONE)
        await until(lambda: network.server.daemon.status()["tokens"] == 1)
        proxy.lies = True
        network.nursery.start_soon(reader.listen, TWO)  # it returns once that is routed
        await trio.sleep(120.0)
        assert proxy.told > 0
        assert network.server.daemon.status()["tokens"] == 1
        assert [one["nodes"] for one in reader.daemon.service.subscriptions()] == [1, 0]
        await reader.daemon.service.unsubscribe(ONE)
        await trio.sleep(120.0)
        assert network.server.daemon.status()["tokens"] == 1
        proxy.lies = False
        await until(lambda: reader.daemon.service.subscriptions()[0]["nodes"] == 1, 3600.0)
        await until(lambda: network.server.daemon.status()["tokens"] == 1, 3600.0)  # the other is gone
        assert network.count("answers_forged") == proxy.told
