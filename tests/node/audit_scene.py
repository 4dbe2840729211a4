"""What tests of audits have in common: a host that brings nothing, and what keepers are asked for it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import trio
from hosted_network import hosts_of, in_use, subscribed
from kept_network import kept_of, next_day
from small_network import EPOCH_SECONDS, Node, SmallNetwork, until

from hushcast_protocol.base.candidate_root import CandidateRoot
from hushcast_protocol.base.epochs import EPOCHS_A_DAY
from hushcast_protocol.base.keeping_rule import KeepingRule
from hushcast_protocol.content.messages import Message
from hushcast_protocol.overlay.keeper_frames import AskKept, AskKeptMessages

TWO_DAYS = KeepingRule(6, 2)  # so that each audit is of the day before yesterday
DAY_SECONDS = EPOCHS_A_DAY * EPOCH_SECONDS


def loses_what_it_is_to_bring(host: Node) -> None:
    """Have a host take what is for its boxes, and ask keepers, and put nothing into them."""
    relay: Any = host.daemon.overlay.relay

    async def took(messages: list[Message], previous: bytes, only: Any = None) -> list[int]:
        await trio.lowlevel.checkpoint()
        return []

    async def asked(*_: object) -> bool:
        await trio.lowlevel.checkpoint()
        return True

    relay.forwarding.take = took
    relay.inquiries._ask = asked


def questions_of(net: SmallNetwork) -> list[tuple[float, AskKept | AskKeptMessages]]:
    """What keepers are asked from now on about whole days, or for messages."""
    asked: list[tuple[float, AskKept | AskKeptMessages]] = []

    def listen(node: Node) -> None:
        kept: Any = kept_of(node)
        answer = kept.answer

        async def answered(request: Any) -> Any:
            if isinstance(request, AskKeptMessages) or request.epoch is None:
                asked.append((net.now, request))
            return await answer(request)

        kept.answer = answered

    for node in net.relays:
        listen(node)
    return asked


async def brought_by_an_audit(
    net: SmallNetwork, publish: Callable[..., Awaitable[None]]
) -> tuple[Node, Node]:
    """Have a host lose what is published, and its owner find that out; return it, and the one used since.

    `publish` is given the host and payloads.
    """
    subscriber = net.clients[0]
    await subscribed(subscriber)
    ear = await subscriber.listen()
    await next_day(net)
    host = in_use(net, subscriber)
    other = next(one for one in hosts_of(net, subscriber) if one is not host)
    loses_what_it_is_to_bring(host)
    sent = [b"%d" % number for number in range(5)]
    await publish(host, *sent)
    await trio.sleep(5 * EPOCH_SECONDS)
    assert ear.payloads == [], "the host loses all"
    await ear.hears(5, within=4 * DAY_SECONDS)
    assert sorted(ear.payloads) == sorted(sent)
    assert subscriber.count("messages_from_audits") == 5
    await until(lambda: in_use(net, subscriber) is other, 5 * EPOCH_SECONDS, "the other host is used")
    return host, other


def lists_asked(net: SmallNetwork, node: Node) -> list[tuple[float, int, int]]:
    """Which candidate lists a daemon asks for from now on: when, the day, the shard."""
    asked: list[tuple[float, int, int]] = []
    shards: Any = node.daemon.overlay.shards
    candidates = shards.candidates

    async def listen(told: CandidateRoot, shard: int) -> Any:
        asked.append((net.now, told.day, shard))
        return await candidates(told, shard)

    shards.candidates = listen
    return asked
