"""Heads for whoever asks, in links that every release opens: strangers, and other authorities."""

from __future__ import annotations

from contextlib import suppress

import msgspec
import pytest
import trio
from authority_bench import SEEDS, authority_bench
from directory_bench import BEGIN, CALENDAR, DIRECTORY, EPOCH, NETWORK, bench

from hushcast_directory.server import directory_server
from hushcast_directory.server.authority_links import AuthorityLinks
from hushcast_directory.server.directory_server import REQUEST_TIMEOUT, ROSTER_WITHIN
from hushcast_protocol.authorities.authority_set import AuthorityContact
from hushcast_protocol.authorities.chain import Chain, ChainState
from hushcast_protocol.authorities.frames import Assent
from hushcast_protocol.authorities.head_questions import (
    MAX_HEADS_QUESTION,
    AskHeads,
    Heads,
    decode_heads_answer,
    decode_heads_question,
)
from hushcast_protocol.base.addresses import memory_address
from hushcast_protocol.base.errors import DecodeError, PeerError
from hushcast_protocol.base.link.links import Link
from hushcast_protocol.base.versions.wires import LASTING, WireRange
from hushcast_protocol.base.wire import PublicKey, Wire, encode
from hushcast_runtime.environment import simulated_environment
from hushcast_runtime.transports.base import TransportError
from hushcast_runtime.transports.channel import Channel, open_channel
from hushcast_runtime.transports.memory import MemoryNetwork

FEW = 4


async def test_anybody_comes_from_the_keys_of_a_configuration_to_the_newest_head() -> None:
    async with authority_bench(3, 2) as made:
        await made.until(made.epoch + 3)
        one = made.directories[0]
        shown = await one.client().heads(None)
        chain = Chain(NETWORK.id, ChainState(one.sitting.authorities))
        for certified in shown.heads:
            chain.take(certified)
        assert chain.epoch == one.machine.chain.epoch
        assert (await one.client().heads(chain.epoch)).heads == ()
        assert one.server is not None
        assert one.server._counters["heads_asked_for"] == 2


async def test_who_takes_no_heads_keeps_nobody_from_a_roster(monkeypatch: pytest.MonkeyPatch) -> None:
    """They take the places of those who ask for rosters, and give way as these do."""
    monkeypatch.setattr(directory_server, "MAX_FETCHES", FEW)
    async with bench(2) as made:
        await made.client().roster(None)
        for _ in range(5 * FEW):
            key = DIRECTORY.public()
            link = Link.initiate(NETWORK.id, key, made.env.randomness, MAX_HEADS_QUESTION, wire=LASTING)
            channel, _ = await open_channel(
                made.wires.transport(), memory_address(key), "x", link, decode_heads_answer
            )
            await channel.send(AskHeads(None))
        assert made.server is not None
        await trio.sleep(1)
        assert made.server._counters["fetches_dropped"] >= 4 * FEW
        await made.client().roster(None)
        await made.client().heads(None)
        await trio.sleep(ROSTER_WITHIN + REQUEST_TIMEOUT)


def test_a_question_may_grow_and_not_without_end() -> None:
    longer = msgspec.msgpack.encode(["ask-heads", 7, "of a release to come"])
    assert decode_heads_question(longer) == AskHeads(7)
    for wrong in (b"", encode(Heads(())), encode(["ask-heads", -1]), bytes(MAX_HEADS_QUESTION + 1)):
        with pytest.raises(DecodeError):
            decode_heads_question(wrong)


async def test_an_authority_that_was_left_behind_hears_of_it_once_an_epoch(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """The others speak what it does not: it asks for their heads, and follows them."""
    wires, env = MemoryNetwork(lambda: 0.1), simulated_environment("left behind", BEGIN)
    own, other = SEEDS[0], SEEDS[1]
    asked: list[float] = []
    heard: list[tuple[PublicKey, Wire]] = []

    async def answer(stream: trio.abc.Stream) -> None:
        link = Link.respond(
            NETWORK.id, other, env.randomness, MAX_HEADS_QUESTION, speaks=WireRange(2, 3), takes=(LASTING,)
        )
        channel = Channel(stream, link, decode_heads_question)
        with suppress(PeerError, TransportError):
            await channel.handshake()
            await channel.first()
            asked.append(env.now())
            await channel.send(Heads(()))
            await channel.finish()
        await channel.aclose()

    async def hear(sender: PublicKey, frame: Wire) -> None:
        await trio.lowlevel.checkpoint()
        heard.append((sender, frame))

    listener = await wires.transport().listen(other)
    links = AuthorityLinks(wires.transport(), NETWORK.id, own, env, CALENDAR, hear)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(listener.serve, answer)
        nursery.start_soon(links.run)
        links.follow({other.public(): AuthorityContact(other.public(), listener.address)})
        for epoch in range(5):
            links.send((other.public(),), Assent(epoch, bytes(32), bytes(64)))
            await trio.sleep(EPOCH)
        nursery.cancel_scope.cancel()
    assert len({CALENDAR.epoch(moment) for moment in asked}) == len(asked) >= 4
    assert set(heard) == {(other.public(), Heads(()))}
    assert links.is_cut_off
