"""Relays that know no topic lose what has a certain size or tokens, as publications do and probes did not.

They want messages lost that have two receipts, while coverage says that all arrive.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import trio
from small_network import Node, small_network

from hushcast_protocol.content.bodies import Content
from hushcast_protocol.content.messages import Message, padded_size
from hushcast_protocol.content.topics import Topic, make_topic, parse_values
from hushcast_protocol.overlay.frames import Receipt

pytestmark = pytest.mark.slow

EPOCH = 1200
TOPIC = make_topic("heights", ["kind", "height:0..65535"])
KINDS = make_topic("kinds", ["kind"])


def make_it_lose(node: Node, loses: Callable[[Message], bool]) -> None:
    """Have a relay confirm some messages, dropped or passed on to it, and send them nowhere."""
    relay: Any = node.daemon.overlay.relay
    drop, take = relay.drops.take, relay.forwarding.take

    async def dropped(message: Message) -> Any:
        return Receipt("accepted") if loses(message) else await drop(message)

    async def passed_on(messages: list[Message], previous: bytes, **only: Any) -> Any:
        return await take([message for message in messages if not loses(message)], previous, **only)

    relay.drops.take, relay.forwarding.take = dropped, passed_on


class Repeats:
    """Relays that note together which tokens they saw, and lose what has one that another message had."""

    def __init__(self) -> None:
        self._first: dict[bytes, bytes] = {}

    def __call__(self, message: Message) -> bool:
        _, *others = message.tokens
        seen = [self._first.setdefault(token, message.id) for token in others]
        return any(first != message.id for first in seen)


@pytest.mark.parametrize(
    ("loses", "topic", "size", "attributes"),
    [
        (lambda message: padded_size(message) > 1024, TOPIC, 2000, ["kind=a", "height=7"]),
        (lambda message: len(message.tokens) == 8, TOPIC, 20, ["kind=a"]),
        (Repeats(), KINDS, 20, ["kind=a"]),
    ],
    ids=["large ones", "those with few tokens", "those whose tokens come again"],
)
async def test_who_loses_one_form_is_found(
    loses: Callable[[Message], bool], topic: Topic, size: int, attributes: list[str]
) -> None:
    async with small_network(
        relays=6, clients=2, seed=3, epoch=EPOCH, probes_an_epoch=120.0, late_routes=False
    ) as net:
        reader, writer = net.clients
        await reader.listen(topic)
        box = reader.route(topic).box
        assert box is not None
        # Not its host, which is no relay of the tree: what that loses shows as lost, and as nobody's fault.
        tree = [node for node in net.relays if node.id != box.hosts.current]
        for node in tree[:2]:
            make_it_lose(node, loses)
        coverage = reader.route(topic).coverage
        bad = {node.id for node in tree[:2]}
        told: list[float] = []  # the shares; there is none of the new tree that is made once they are found
        with trio.fail_after(3 * EPOCH):
            while not bad & set(coverage.suspects()):
                content = Content(bytes(size), parse_values(topic, attributes))
                await writer.daemon.service.publish(topic, content)
                await trio.sleep(60)
                told += [share for share in [coverage.describe()["share"]] if share is not None]
                await coverage.judge()
        assert min(told) < 0.95
        assert set(coverage.suspects()) <= bad


async def test_probes_have_the_sizes_and_numbers_of_tokens_of_publications() -> None:
    async with small_network(relays=4, clients=2, epoch=EPOCH, probes_an_epoch=120.0) as net:
        reader, writer = net.clients
        seen: dict[bytes, tuple[int, int]] = {}
        for node in net.relays:
            relay: Any = node.daemon.overlay.relay

            async def tap(message: Message, take: Any = relay.drops.take) -> Any:
                seen[message.id] = padded_size(message), len(message.tokens)
                return await take(message)

            relay.drops.take = tap
        ear = await reader.listen(TOPIC, "kind = a")
        content = Content(bytes(6000), parse_values(TOPIC, ["kind=a"]))
        published = [await writer.daemon.service.publish(TOPIC, content) for _ in range(5)]
        await ear.hears(5)
        before = set(seen)
        await trio.sleep(EPOCH)
        forms = [form for name, form in seen.items() if name not in before]
        assert len(forms) > 50  # fewer than small ones: they may have 8 KiB each beside what came
        assert seen[published[0].id] == (16 * 1024, 8)
        assert forms.count(seen[published[0].id]) > 0.8 * len(forms)
