"""A proxy leaves one delivery out, and says the next twice, so that the server deletes both."""

from __future__ import annotations

import os

import pytest
import trio
from small_central import TOPIC, Person, SmallCentral, small_central
from small_network import until

from hushcast_protocol.base.links import Link
from hushcast_protocol.central import proofs
from hushcast_protocol.central.frames import (
    MAX_CENTRAL_FRAME,
    Acknowledged,
    Answer,
    Attached,
    Deliver,
    Delivery,
    FromServer,
    Request,
    decode_from_server,
)
from hushcast_protocol.central.rerouting import rerouted
from hushcast_runtime.channel import Channel, open_channel

ATTACHMENT = 1


async def link_of(network: SmallCentral) -> Channel[FromServer]:
    """Open the link of the proxy for deliveries, whose program is ours."""
    server, proxy = network.server, network.deliveries
    link = Link.initiate(network.net.id, server.seed.public(), os.urandom, MAX_CENTRAL_FRAME, proxy.seed)
    transport = network.wires.transport()
    channel, _ = await open_channel(transport, server.daemon.address, "", link, decode_from_server)
    return channel


async def delivered(channel: Channel[FromServer], person: Person) -> tuple[bytes, list[Deliver]]:
    """Attach a pseudonym; return the salt, and the two deliveries that wait for it."""
    await channel.send(Request(ATTACHMENT, proofs.attach(person.pseudonym, person.secret)))
    frames: list[FromServer] = []
    with trio.fail_after(60):
        while len(frames) < 3:
            frames += await channel.receive()
    answer, *deliveries = frames
    assert isinstance(answer, Answer)
    assert isinstance(answer.what, Attached)
    return answer.what.salt, [frame for frame in deliveries if isinstance(frame, Deliver)]


@pytest.mark.parametrize(("said", "left"), [((0, 1), 0), ((1, 1), 2), ((1, 0), 2), ((0, 0), 2)])
async def test_only_what_was_said_as_it_was_sent_is_deleted(said: tuple[int, int], left: int) -> None:
    """The first case is an honest proxy."""
    async with small_central() as network:
        person = network.person("subscribe")
        connection = await person.introduced(network.deliveries)
        await network.accepted(person, connection, person.subscribe(TOPIC))
        await connection.close()
        there = network.deliveries.daemon._keys.find(person.pseudonym)
        sent = {(await network.published()).id, (await network.published()).id}
        await network.deliveries.stop()

        channel = await link_of(network)
        chain, deliveries = await delivered(channel, person)
        for which in said:  # what the user does with what it is told
            wrapped = rerouted(there.inverse(), deliveries[which].wrapped)
            assert person.opened(Delivery(wrapped)).id in sent
            chain = proofs.followed(chain, wrapped)
        acknowledgement = proofs.acknowledge(person.secret, chain, 2)
        await channel.send(Acknowledged(ATTACHMENT, acknowledgement.number, acknowledgement.proof))
        await trio.sleep(5)
        assert network.server.daemon.status()["deliveries_waiting"] == left

        await channel.aclose()
        await network.deliveries.start()  # with the program that it should have
        await network.linked()
        again = await network.attached(person)
        await until(lambda: {message.id for message in person.heard} == (sent if left else set()))
        await trio.sleep(5)
        assert len(again.wrapped) == left
        assert network.server.daemon.status()["deliveries_waiting"] == 0
