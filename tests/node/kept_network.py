"""A small network whose relays keep what is published, from its second day on, and what tests ask of them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import trio
from several_directories import Directories
from small_network import Node, SmallNetwork, small_network, until

from hushcast_overlay.relay.keepers.kept_messages import KeptMessages
from hushcast_protocol.base.keeping_rule import KeepingRule
from hushcast_protocol.base.shard_count import SHARD_SIZE
from hushcast_protocol.base.wire import Wire
from hushcast_protocol.content.messages import Message
from hushcast_protocol.overlay.frames import Receipt
from hushcast_protocol.overlay.keeper_frames import AskKept, AskKeptMessages, ShownKept, ShownKeptMessages
from hushcast_runtime.transports.channel import Channel

SIX = KeepingRule(6)
LATER = 20  # epochs: the first day is over soon after relays have their seats


def kept_of(node: Node) -> KeptMessages:
    """What a relay that is up keeps."""
    assert node.daemon.overlay.relay is not None
    return node.daemon.overlay.relay.kept


def keepers_of(net: SmallNetwork, message: Message, told_by: Node | None = None) -> list[Node]:
    """The keepers of a message's trunk, as a relay draws them."""
    by = told_by or net.relays[0]
    assert by.daemon.overlay.relay is not None
    drawn = by.daemon.overlay.relay.candidates.keepers(message.day, message.tokens[0])
    return [net.relay(relay) for relay in drawn]


def has(node: Node, message: Message) -> bool:
    """Whether a relay keeps a message."""
    return message.id in ids_at(node, message.day, message.tokens[0])


def ids_at(node: Node, day: int, trunk: bytes) -> tuple[bytes, ...]:
    """What a relay keeps of a trunk and day, without a question over a link."""
    return kept_of(node)._shares.ids(day.to_bytes(8, "big") + trunk)


async def ask(net: SmallNetwork, node: Node, question: AskKept | AskKeptMessages) -> Any:
    """Ask a relay as a stranger."""
    channel: Channel[Any] = await net.knock(node)
    await channel.send(question)
    answer: Wire = await channel.one(60)
    assert isinstance(answer, ShownKept | ShownKeptMessages)
    await channel.aclose()
    return answer


@asynccontextmanager
async def kept_network(
    relays: int = 9,
    keeping: KeepingRule = SIX,
    shard_size: int = SHARD_SIZE,
    directories: tuple[int, int] = (1, 1),
    **others: Any,
) -> AsyncIterator[SmallNetwork]:
    """A network that is up, an epoch and a half into its second day; `others` as for `small_network`."""

    def directory(network: SmallNetwork, first_roster: int) -> Directories:
        return Directories(network, first_roster, *directories, shard_size=shard_size, keeping=keeping)

    # Several directories have their first head an epoch later: until then keepers say that they were away.
    begin = {"later": LATER if directories == (1, 1) else LATER - 2}
    async with small_network(relays, directory=directory, **begin | others) as net:
        await next_day(net)
        yield net


async def next_day(net: SmallNetwork, epochs: float = 1.5) -> None:
    """Wait until so many epochs of the next day are over."""
    day = net.calendar.day(net.now) + 1
    await net.sleep_until(net.calendar.day_start(day) + epochs * net.epoch)


async def all_kept(net: SmallNetwork, *messages: Message, within: float = 30.0) -> None:
    """Wait until each keeper has each message."""
    await until(
        lambda: all(has(keeper, one) for one in messages for keeper in keepers_of(net, one)),
        within,
        "all is with its keepers",
    )


def questions(net: SmallNetwork) -> list[tuple[float, str, AskKept]]:
    """What keepers are asked from now on: when, which, and for what."""
    asked: list[tuple[float, str, AskKept]] = []

    def listen(node: Node) -> None:
        kept: Any = kept_of(node)
        answer = kept.answer

        async def answered(request: Any) -> Any:
            if isinstance(request, AskKept):
                asked.append((net.now, node.name, request))
            return await answer(request)

        kept.answer = answered
        asking: Any = node.daemon.overlay.relay
        asking.inquiries._questions._own_answer = answered  # what it keeps itself

    for node in net.relays:
        listen(node)
    return asked


def loses_all(node: Node) -> None:
    """Have a relay lose what passes it, as origin, in trees and as a keeper, and say that it has it."""
    relay: Any = node.daemon.overlay.relay

    async def dropped(one: Message) -> Receipt:
        await trio.lowlevel.checkpoint()
        return Receipt("accepted")

    async def forwarded(messages: list[Message], previous: bytes, only: Any = None) -> list[int]:
        await trio.lowlevel.checkpoint()
        return []

    relay.drops.take = dropped
    relay.forwarding.take = forwarded
    relay.kept._take = lambda *_: True
