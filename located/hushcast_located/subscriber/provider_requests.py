"""Requests to a provider: sealed, through the daemon; and for the owner's table of weights."""

from __future__ import annotations

import math
from contextlib import suppress

import anyio

from hushcast.daemon import Daemon
from hushcast.errors import HushcastError, TimedOut
from hushcast.events import Message
from hushcast.keys import new_link
from hushcast_located.subscriber.environment import SubscriberEnvironment
from hushcast_protocol.base.crypto.secrets import Randomness
from hushcast_protocol.base.errors import AuthenticationError, DecodeError, Refusal
from hushcast_protocol.spatial.located_requests import AskTable, LocatedRequest, seal_request
from hushcast_protocol.spatial.message_parts import Assembly
from hushcast_protocol.spatial.offer import Offer
from hushcast_protocol.spatial.weight_table import WeightTable, read_table

ANSWERS = "answers"  # the name of every private topic for answers: providers see it
LAST_WORDS = 5.0  # seconds that the end of a topic may take


def new_answers(randomness: Randomness) -> str:
    """Return the link of a new private topic for answers."""
    return new_link(ANSWERS, private=True, randomness=randomness)


async def send(daemon: Daemon, offer: Offer, request: LocatedRequest, world: SubscriberEnvironment) -> None:
    """Hand a request to the daemon, sealed and stamped; raise what the daemon does.

    Returns once it is on the daemon's disk.
    """
    try:
        data = await anyio.to_thread.run_sync(seal_request, request, offer, world.day, world.randomness)
    except AuthenticationError:
        raise Refusal("the offer's key is none that anything can be sealed to: get another offer") from None
    await daemon.enqueue(offer.requests, data, timeout=math.inf)


async def ask_table(daemon: Daemon, offer: Offer, world: SubscriberEnvironment) -> WeightTable:
    """Return the owner's table from the provider, over a topic that is used for nothing else.

    It is asked for again until it comes. Raises `InvalidAnswer` for one that is not as the owner signed it.
    """
    link = new_answers(world.randomness)
    try:
        async with daemon.subscribe(link) as messages:
            wait, assembly = world.retry, Assembly()
            while True:
                await send(daemon, offer, AskTable(link), world)
                world.tell("waiting for the owner's table of weights")
                until = world.now() + wait
                while (left := until - world.now()) > 0:
                    try:
                        event = await messages.next_event(left)
                    except TimedOut:
                        break
                    if event is None:
                        raise Refusal("somebody ended the subscription that the table was to come by")
                    if isinstance(event, Message):
                        with suppress(DecodeError):
                            whole = assembly.take(event.payload, event.cursor)
                            if whole is not None:
                                return read_table(whole, offer.owner)
                wait *= 2
                world.tell("the provider has not sent the table of weights so far; it is asked again")
    finally:
        with anyio.move_on_after(LAST_WORDS, shield=True), suppress(HushcastError):
            await daemon.unsubscribe(link)
