"""Proxies and servers that lie to a daemon: found out, counted, nothing lost, nothing shown twice."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
import trio
from daemons import CentralNetworkOfDaemons, Node, daemons
from small_network import EPOCH_SECONDS, ONE, TWO, until

from hushcast_central.user.pseudonym import Credentials
from hushcast_central.user.token_registration import MAX_FORGOTTEN
from hushcast_local.outbox import NoReceiptYet
from hushcast_protocol.base.crypto.group import Scalar
from hushcast_protocol.base.crypto.secrets import Randomness
from hushcast_protocol.base.wire import encode
from hushcast_protocol.central import request_proofs
from hushcast_protocol.central.frames import (
    Delivery,
    Introduce,
    Publish,
    Subscribe,
    UserAnswer,
    WithdrawTokens,
)
from hushcast_protocol.central.rerouting import WrappedMessage, wrap
from hushcast_protocol.content.bodies import Content
from hushcast_protocol.content.messages import TRAIL_SIZE, Message, message_id

Answering = Callable[[Any], Awaitable[Any]]


def answering(
    network: CentralNetworkOfDaemons, role: str, change: Callable[[Any, Any], Any], instead: bool = False
) -> Callable[[], None]:
    """Have a proxy say something else: `change` gets what was asked and the honest answer.

    With `instead` what is answered otherwise does not reach the server. Returns what makes it honest again.
    """
    proxy = network.publications if role == "publications" else network.deliveries
    passing = proxy.daemon._passing
    inner: Answering = passing.answer

    async def answer(what: Any) -> Any:
        if instead and (lie := change(what, None)) is not None:
            return lie
        return change(what, await inner(what))

    def honest() -> None:
        passing.answer = inner

    passing.answer = answer
    return honest


def delivering(network: CentralNetworkOfDaemons, change: Callable[[Delivery], Delivery | None]) -> None:
    """Have the deliveries proxy deliver something else."""
    passing = network.deliveries.daemon._passing
    inner = passing.delivery
    passing.delivery = lambda pseudonym, wrapped: change(inner(pseudonym, wrapped))


@asynccontextmanager
async def listening(**others: Any) -> AsyncIterator[tuple[CentralNetworkOfDaemons, Node, Node, Any]]:
    async with daemons(**others) as network:
        here, there = network.nodes
        yield network, here, there, await here.listen()


@pytest.mark.parametrize("proof", [None, bytes(16)])
async def test_a_receipt_that_is_not_the_servers_is_none(proof: bytes | None) -> None:
    async with listening() as (network, _here, there, ear):
        answering(
            network,
            "publications",
            lambda what, answer: answer if isinstance(what, Introduce) else UserAnswer("accepted", proof),
        )
        with pytest.raises(NoReceiptYet):
            await there.daemon.service.publish(ONE, Content(b"x"))
        assert there.count("answers_forged") == 3
        await network.publications.restart()  # an honest one in its place
        assert await ear.hears(1, within=700.0) == [b"x"]


async def test_a_refusal_in_the_servers_name_is_found_out() -> None:
    async with listening() as (network, _, there, _ear):
        answering(
            network,
            "publications",
            lambda what, answer: answer if isinstance(what, Introduce) else UserAnswer("form", b"x" * 16),
        )
        with pytest.raises(NoReceiptYet):
            await there.daemon.service.publish(ONE, Content(b"x"))
        assert there.count("answers_forged") == 3


async def test_a_subscription_that_the_server_did_not_confirm_is_none() -> None:
    async with daemons(count=1) as network:
        answering(
            network,
            "deliveries",
            lambda what, answer: UserAnswer("accepted", bytes(16)) if isinstance(what, Subscribe) else answer,
        )
        node = network.nodes[0]
        with trio.move_on_after(EPOCH_SECONDS):
            await node.listen()
        assert node.count("answers_forged") > 0
        assert node.daemon.service.subscriptions()[0]["nodes"] == 0
        assert not node.daemon.service.subscriptions()[0]["ready"]


async def test_a_proxy_that_forgets_at_once_is_not_told_for_ever() -> None:
    async with daemons(count=1) as network:
        asked: list[Any] = []

        def forgets(what: Any, answer: Any) -> Any:
            asked.append(what)
            return answer if isinstance(what, Introduce) else UserAnswer("unknown", None)

        answering(network, "deliveries", forgets)
        with trio.move_on_after(1.5):  # less than the first pause
            await network.nodes[0].listen()
        assert sum(isinstance(what, Introduce) for what in asked) <= MAX_FORGOTTEN


async def test_a_proxy_that_says_it_knows_nobody_does_not_keep_the_server_from_forgetting() -> None:
    async with listening() as (network, here, _there, _ear):
        server = network.server.daemon
        await until(lambda: server.status()["tokens"] == 1)
        honest = answering(
            network,
            "deliveries",
            lambda what, answer: UserAnswer("unknown", None) if isinstance(what, WithdrawTokens) else answer,
            instead=True,
        )
        await here.daemon.service.unsubscribe(ONE)
        await trio.sleep(EPOCH_SECONDS)
        assert server.status()["tokens"] == 1, "it was not asked"
        honest()
        await until(lambda: server.status()["tokens"] == 0, 10 * EPOCH_SECONDS)


@pytest.mark.parametrize("how", ["alters", "drops", "repeats", "swaps"])
async def test_what_a_proxy_does_to_deliveries_loses_nothing(how: str) -> None:
    async with listening() as (network, here, there, ear):
        other = await here.listen(TWO)
        bad = 3
        held: list[Delivery] = []

        def change(delivery: Delivery) -> Delivery | None:
            nonlocal bad
            bad -= 1
            if bad < 0:
                return delivery
            payload = delivery.wrapped.payload
            if how == "alters":
                return replace_payload(delivery, payload[:-1] + bytes([payload[-1] ^ 1]))
            if how == "repeats" and held:
                return held[0]
            if how == "swaps":
                stranger = wrap(Scalar.draw(network.env.randomness), b"x" * 50, network.env.randomness)
                return Delivery(stranger)
            held.append(delivery)
            return delivery if how == "repeats" else None

        delivering(network, change)
        sent = [b"%d" % number for number in range(6)]
        for payload in sent:
            await there.daemon.service.publish(ONE, Content(payload))
        await there.daemon.service.publish(TWO, Content(b"two"))
        await ear.hears(len(sent), within=600.0)
        await other.hears(1, within=600.0)
        await trio.sleep(4 * EPOCH_SECONDS)
        assert (sorted(ear.payloads), other.payloads) == (sent, [b"two"])
        assert bad < 0, "it did so"
        if how in ("alters", "swaps"):
            assert here.count("deliveries_refused") > 0
        assert not network.server.daemon.status()["deliveries_waiting"]


def replace_payload(delivery: Delivery, payload: bytes) -> Delivery:
    return Delivery(msgspec.structs.replace(delivery.wrapped, payload=payload))


def made_up(network: CentralNetworkOfDaemons, what: str, honest: Message) -> bytes:
    day, token, body = honest.day, honest.tokens[0], honest.body
    if what == "no message":
        return b"no message"
    if what == "another day":
        day += 1
    if what == "another topic":
        token = bytes(16)
    if what == "another body":
        body = body[:-1] + bytes([body[-1] ^ 1])
    name = bytes(32) if what == "another id" else message_id(day, body)
    return encode(Message(name, day, (token,), bytes(TRAIL_SIZE), body))


@pytest.mark.parametrize("what", ["no message", "another day", "another topic", "another body", "another id"])
async def test_what_a_server_makes_up_is_not_shown_and_holds_up_nothing(what: str) -> None:
    async with listening() as (network, here, there, ear):
        sealing = network.server.daemon._publications._sealing
        honest = sealing.delivery

        def delivery(message: Message) -> WrappedMessage:
            sealing.delivery = honest
            return wrap(sealing._key, made_up(network, what, message), network.env.randomness)

        sealing.delivery = delivery
        for payload in (b"0", b"1"):
            await there.daemon.service.publish(ONE, Content(payload))
        assert await ear.hears(1) == [b"1"]
        await trio.sleep(EPOCH_SECONDS)
        assert len(ear.heard) == 1
        counted = {"another body": "messages_not_ours", "another topic": None}.get(what, "deliveries_refused")
        assert counted is None or here.count(counted) == 1
        assert not network.server.daemon.status()["deliveries_waiting"]


async def test_as_published_a_publisher_may_seal_anything_and_holds_up_nothing() -> None:
    async with listening(profile="paper") as (_network, here, there, ear):
        honest = Credentials.publish

        def publish(self: Credentials, message: Message, randomness: Randomness) -> Publish:
            made = honest(self, message, randomness)
            junk = msgspec.structs.replace(made.wrapped, payload=bytes(len(made.wrapped.payload)))
            return request_proofs.publish(self.pseudonym, self.secret, made.tokens, junk)

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(Credentials, "publish", publish)
            await there.daemon.service.publish(ONE, Content(b"junk"))
        await there.daemon.service.publish(ONE, Content(b"x"))
        assert await ear.hears(1) == [b"x"]
        assert here.count("deliveries_refused") == 1


async def test_under_load_a_pseudonym_pays() -> None:
    async with daemons(count=1) as network:
        node = network.nodes[0]
        for proxy in (network.publications, network.deliveries):
            proxy.daemon._admission.difficulty = proxy.daemon._admission._before = 6
        ear = await node.listen()
        await node.daemon.service.publish(ONE, Content(b"x"))
        assert await ear.hears(1) == [b"x"]
        assert network.count("refused_stamp") == 2  # once each, before they knew
