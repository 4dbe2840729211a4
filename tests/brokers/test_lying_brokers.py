"""Brokers that lie to a daemon: nothing that they invent is shown, and no lie ends anything but its link."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
from broker_daemons import Node, TreeOfDaemons, tree_of_daemons
from small_network import ONE, TWO, derive, until
from small_tree import Member

from hushcast_local.outbox import NoReceiptYet
from hushcast_protocol.base.errors import HushcastError
from hushcast_protocol.base.link.links import Link
from hushcast_protocol.base.versions.manner import NEWEST
from hushcast_protocol.brokers.clear_words import ID_DAY, words
from hushcast_protocol.brokers.frames import (
    MAX_BROKER_FRAME,
    Ack,
    ExposureReport,
    Forward,
    ParentHello,
    Pong,
    Publish,
    Receipt,
    RequestAnswer,
    decode_from_below,
)
from hushcast_protocol.content.bodies import Content, compose
from hushcast_protocol.content.messages import Message
from hushcast_protocol.content.topics import Topic, make_topic
from hushcast_runtime.transports.channel import Channel, accept_channel

PLACES = make_topic("places", ["kind", "lat:-90..90:1"])
TERMS = {"k": 9, "condition": "successor", "otherwise": "refuse"}
ROWS = (("liar", "edge", "root"),)
Lie = Callable[[Channel[Any], Any], Awaitable[None]]


def message(
    network: TreeOfDaemons, payload: bytes, day: int | None = None, topic: Topic = PLACES, **values: Any
) -> Message:
    day = network.today if day is None else day
    tokens = words(derive(topic, network.net.id, ID_DAY), topic, values)
    key, randomness = derive(topic, network.net.id, day), network.env.randomness
    return compose(key, day, tokens, Content(payload, values), randomness)


async def lie_at(network: TreeOfDaemons, member: Member, answer: Lie, first: Any = None) -> None:
    """Serve a broker's address in its name, and answer each frame."""

    async def serve(stream: trio.abc.Stream) -> None:
        link = Link.respond(network.net.id, member.seed, network.env.randomness, MAX_BROKER_FRAME, None)
        try:
            channel, established = await accept_channel(stream, link, decode_from_below)
            if established.peer is not None and first is not None:
                await channel.send(first)
            while batch := await channel.receive():
                for frame in batch:
                    await answer(channel, frame)
        except HushcastError:
            pass

    listener = await network.wires.transport().listen(member.service)
    network.nursery.start_soon(listener.serve, serve)


async def agree(channel: Channel[Any], frame: Any) -> None:
    """Accept whatever is asked."""
    if hasattr(frame, "serial"):
        await channel.send(RequestAnswer(frame.serial, "accepted"))
    elif not isinstance(frame, Ack):
        await channel.send(Pong())


@asynccontextmanager
async def with_liar(answer: Lie) -> AsyncIterator[tuple[TreeOfDaemons, Node]]:
    """A network whose one edge broker lies, and a daemon."""
    async with tree_of_daemons(1, ROWS) as network:
        await network["liar"].stop()
        await lie_at(network, network["liar"], answer, ParentHello(bytes(16), 0, 1))
        yield network, network.nodes[0]


@pytest.mark.slow
async def test_what_it_invents_is_not_shown_and_does_not_come_again() -> None:
    acknowledged: list[int] = []
    sent: list[Message] = []

    async def answer(channel: Channel[Any], frame: Any) -> None:
        await agree(channel, frame)
        if isinstance(frame, Ack):
            acknowledged.append(frame.number)
        elif type(frame).__name__ == "Subscribe":
            await channel.send(*map(Forward, sent))

    async with with_liar(answer) as (network, node):
        good = message(network, b"good", kind="fire", lat=100)
        sent += [
            replace_body(good),
            message(network, b"of last week", day=network.today - 7, kind="fire", lat=100),
            message(network, b"not asked for", kind="flood", lat=100),
            message(network, b"of another topic", topic=TWO),
            with_words(good, (good.tokens[0], bytes(16))),
            good,
        ]
        ear = await node.listen(PLACES, "kind = fire")
        await ear.hears(1)
        await trio.sleep(60)
        assert ear.payloads == [b"good"]
        assert node.count("deliveries_refused") == 3
        await until(lambda: acknowledged[-1:] == [len(sent)])


def replace_body(good: Message) -> Message:
    return Message(good.id, good.day, good.tokens, good.trail, good.body[:-1] + b"!")


def with_words(good: Message, tokens: tuple[bytes, ...]) -> Message:
    return Message(good.id, good.day, tokens, good.trail, good.body)


async def test_a_subscription_is_ready_only_while_it_is_said_to_be_shown() -> None:
    async def answer(channel: Channel[Any], frame: Any) -> None:
        if type(frame).__name__ == "Subscribe":
            await channel.send(ExposureReport(frame.name, is_shown=False))
        await agree(channel, frame)

    for terms in ({"k": 2, "condition": "successor", "otherwise": "wait"}, None):
        async with with_liar(answer) as (_, node):
            node.network.nursery.start_soon(listen_in_vain, node, terms)
            await trio.sleep(60)
            [described] = node.daemon.service.subscriptions()
            assert (described["nodes"], described["ready"]) == (0, False), "whoever asked for it"


async def listen_in_vain(node: Node, terms: Any) -> None:
    await node.listen(PLACES, "lat in [10, 20]", terms)


async def test_that_it_is_shown_is_told() -> None:
    async def answer(channel: Channel[Any], frame: Any) -> None:
        await agree(channel, frame)
        if type(frame).__name__ == "Subscribe":
            assert frame.terms.k == 2
            await channel.send(ExposureReport(frame.name, is_shown=True))

    async with with_liar(answer) as (_, node):
        terms = {"k": 2, "condition": "successor", "otherwise": "generalise"}
        await node.listen(PLACES, "kind = fire, lat in [10, 20]", terms)
        [described] = node.daemon.service.subscriptions()
        assert (described["k"], described["outside"]) == (2, True)
        assert (described["nodes"], described["by"]) == (1, "edge broker")


@pytest.mark.parametrize("verdict", ["level", "quota", "form"])
async def test_what_is_refused_is_said_and_leaves_nothing(verdict: Any) -> None:
    async def answer(channel: Channel[Any], frame: Any) -> None:
        if type(frame).__name__ == "Subscribe":
            await channel.send(RequestAnswer(frame.serial, verdict))
        else:
            await agree(channel, frame)

    async with with_liar(answer) as (_, node):
        with pytest.raises(HushcastError) as refused:
            await node.listen(PLACES, "", TERMS)
        assert len(str(refused.value)) > 20
        await trio.sleep(30)
        assert node.daemon.service.subscriptions() == []
        assert await node.store.scan("asked") == []


async def test_what_was_accepted_once_is_not_refused_for_its_level_later() -> None:
    asked: list[str] = []

    async def answer(channel: Channel[Any], frame: Any) -> None:
        await agree(channel, frame)
        if type(frame).__name__ == "Subscribe":
            asked.append(frame.terms.otherwise)
            await channel.send(ExposureReport(frame.name, is_shown=True))

    async with with_liar(answer) as (_, node):
        await node.listen(PLACES, "", TERMS)
        await node.restart()  # its standing says that nothing is held here
        await until(lambda: len(asked) == 2)
        assert asked == ["refuse", "wait"]


async def with_lying_root(answer: Lie) -> list[Publish]:
    """Publish to a root that lies; return what it was asked."""
    seen: list[Publish] = []

    async def note(channel: Channel[Any], frame: Any) -> None:
        if isinstance(frame, Publish):
            seen.append(frame)
        await answer(channel, frame)

    async with tree_of_daemons(1, ROWS) as network:
        await network.root.stop()
        await lie_at(network, network.root, note)
        with pytest.raises(NoReceiptYet):
            await network.nodes[0].daemon.service.publish(ONE, Content(b"x"))
        assert network.nodes[0].daemon.service.outbox()
    return seen


@pytest.mark.parametrize(
    ("answer", "times"),
    [
        (Pong(), NEWEST.attempts),
        (ParentHello(bytes(16), 0, 1), NEWEST.attempts),
        (Receipt("quota", 0), NEWEST.attempts),
        (Receipt("stamp", 3), 2 * NEWEST.attempts),
        (None, NEWEST.attempts),
    ],
    ids=["another frame", "a parent's", "quota", "stamps for ever", "silence"],
)
async def test_a_root_that_gives_no_receipt_is_asked_a_few_times(answer: Any, times: int) -> None:
    async def lie(channel: Channel[Any], frame: Any) -> None:
        if answer is not None:
            await channel.send(answer)

    seen = await with_lying_root(lie)
    assert len(seen) == times


async def test_publications_show_no_name_no_tree_and_share_no_circuit() -> None:
    async with tree_of_daemons(1, ROWS) as network:
        node = network.nodes[0]
        await node.listen(ONE)
        shown: list[tuple[Any, Any]] = []
        circuits: list[str] = []
        connect = type(node.daemon.transport).connect

        async def note(self: Any, address: Any, isolation: str, ahead: bytes = b"") -> Any:
            circuits.append(isolation)
            return await connect(self, address, isolation, ahead)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(type(node.daemon.transport), "connect", note)
            patch.setattr("hushcast_brokers.broker.incoming_links.accept_channel", noting(shown))
            for number in range(4):
                await node.daemon.service.publish(ONE, Content(b"%d" % number))
        assert shown == [(None, None)] * 4
        assert len(set(circuits)) == 4


def noting(shown: list[tuple[Any, Any]]) -> Any:
    async def accept(*args: Any) -> Any:
        channel, established = await accept_channel(*args)
        shown.append((established.peer, established.view))
        return channel, established

    return accept
