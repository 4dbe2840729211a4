"""As published: a topic is left, and asked for again before it is known what became of that at the server."""

from __future__ import annotations

import pytest
import trio
from daemons import CentralNetworkOfDaemons, daemons
from small_network import EPOCH_SECONDS, ONE, TWO, until

from hushcast_protocol.central.frames import UserAnswer, WithdrawTokens
from hushcast_protocol.content.bodies import Content


@pytest.mark.parametrize("lost", [False, True])
async def test_a_topic_asked_for_again_is_routed_whatever_became_of_the_withdrawal(lost: bool) -> None:
    async with daemons(profile="paper") as network:
        here, there = network.nodes
        await here.listen(TWO)
        await here.listen(ONE)
        asked, go_on = _held_up(network, lost)
        network.nursery.start_soon(here.daemon.service.unsubscribe, ONE)
        await asked.wait()
        if lost:
            go_on.set()
            await trio.sleep(0.3)
        else:
            network.nursery.start_soon(_later, go_on)
        ear = await here.listen(ONE)
        await there.daemon.service.publish(ONE, Content(b"x"))
        assert await ear.hears(1, within=10 * EPOCH_SECONDS) == [b"x"]
        await here.daemon.service.unsubscribe(ONE)
        await until(lambda: network.server.daemon.status()["tokens"] == 1, 10 * EPOCH_SECONDS)


async def _later(event: trio.Event) -> None:
    await trio.sleep(3.0)
    event.set()


def _held_up(network: CentralNetworkOfDaemons, lost: bool) -> tuple[trio.Event, trio.Event]:
    """Hold the answers to two withdrawals, which the server has carried out, and perhaps lose them."""
    passing = network.deliveries.daemon._passing
    inner, asked, go_on, count = passing.answer, trio.Event(), trio.Event(), 0

    async def answer(what):  # type: ignore[no-untyped-def]
        nonlocal count
        done = await inner(what)
        count += isinstance(what, WithdrawTokens)
        if not isinstance(what, WithdrawTokens) or count > 2:
            return done
        asked.set()
        await go_on.wait()
        return UserAnswer("closed", None) if lost else done

    passing.answer = answer
    return asked, go_on
