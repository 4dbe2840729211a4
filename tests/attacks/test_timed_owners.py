"""A host times what the owner of a box answers, to see when its daemon is busy, and so which daemon it is.

It floods relays in turn with what a stranger may start, or answers a drop with junk, and looks whose answers
come later. They come at moments that an owner draws; and what they acknowledge was taken at other ones, or
the host could tell by how many of its messages are in one how far the daemon had come when it wrote it.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import pairwise
from statistics import fmean, stdev
from typing import Any

import pytest
import trio
from hosted_network import box_of, in_use, subscribed
from small_network import LONGEST_WAY, SHORTEST_WAY, SmallNetwork, small_network

from hushcast_overlay.relay.boxes.box_links import OwnerLink
from hushcast_protocol.base.versions.manner import NEWEST
from hushcast_protocol.content.messages import TRAIL_SIZE, Message, message_id
from hushcast_protocol.overlay.frames import Forward, Ping

ANSWERS = 300
SPREAD = 0.14 * NEWEST.acknowledges_within  # of four draws from a quarter of that: 0.144 of it
APART = 0.09 * NEWEST.acknowledges_within  # of two: 0.102


class TimingHost:
    """The host of a client's box, which notes when the owner answers."""

    def __init__(self, net: SmallNetwork) -> None:
        reader = net.clients[0]
        relay = in_use(net, reader).daemon.overlay.relay
        assert relay is not None
        links: Any = relay.box_links
        self.writer = links._links[box_of(reader).key].writer
        self.send_answer, self._answers = trio.open_memory_channel[tuple[float, int]](ANSWERS)

        def hear(link: OwnerLink, number: int) -> None:
            links.heard(link)
            self.send_answer.send_nowait((trio.current_time(), number))

        links.acknowledged = hear

    async def answer(self) -> tuple[float, int]:
        """When the next answer came, and what it acknowledged."""
        with trio.fail_after(NEWEST.acknowledges_within + 2 * LONGEST_WAY):
            return await self._answers.receive()


@asynccontextmanager
async def timing_host() -> AsyncIterator[tuple[SmallNetwork, TimingHost]]:
    async with small_network(relays=3, clients=1, epoch=36000) as net:
        await subscribed(net.clients[0])
        await trio.sleep(60)
        yield net, TimingHost(net)


@pytest.mark.slow
async def test_a_sign_of_life_is_answered_at_a_drawn_moment() -> None:
    async with timing_host() as (_, host):
        took = []
        for _ in range(ANSWERS):
            began = trio.current_time()
            host.writer.post(Ping())
            answered, number = await host.answer()
            assert number == 0
            took.append(answered - began)
        assert min(took) > 2 * SHORTEST_WAY
        assert fmean(took) < NEWEST.acknowledges_within / 2 + 2 * LONGEST_WAY
        assert stdev(took) > SPREAD


@pytest.mark.slow
async def test_what_is_acknowledged_was_taken_at_another_moment() -> None:
    """Its host sends a message each hundredth of a second, and knows by their number when one was taken."""
    async with timing_host() as (net, host):
        day = net.calendar.day(net.now)
        sent: list[float] = []

        async def stream() -> None:
            while True:
                body = os.urandom(1167)
                message = Message(message_id(day, body), day, (bytes(16),), bytes(TRAIL_SIZE), body)
                host.writer.post(Forward(message))
                sent.append(trio.current_time())
                await trio.sleep(0.01)

        net.nursery.start_soon(stream)
        answers = [await host.answer() for _ in range(ANSWERS)]
        before = [sent[number - 1] - last for (last, _), (_, number) in pairwise(answers)]
        after = [answered - sent[number - 1] for answered, number in answers]
        assert stdev(before) > APART
        assert stdev(after) > APART


@pytest.mark.slow
async def test_many_signs_of_life_have_no_more_answers() -> None:
    async with timing_host() as (_, host):
        began = trio.current_time()
        for _ in range(ANSWERS // 3):
            host.writer.post(Ping())
            host.writer.post(Ping())
            await trio.sleep(0.1)
        answered = host.send_answer.statistics().current_buffer_used
        lasted = trio.current_time() - began
        assert 0.7 < answered / (lasted / (NEWEST.acknowledges_within / 2)) < 1.1
