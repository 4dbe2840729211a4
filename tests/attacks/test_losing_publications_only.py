"""Relays that work together lose publications and pass probes on, by whatever tells the two apart.

They confirm and hold every message until all of them have seen it, and lose it only where they hold two
copies that entered apart. Coverage is to tell what publications meet, and to name them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import pytest
import trio
from small_network import ONE, SmallNetwork, small_network, until

from hushcast_overlay.routes.route import TreeInstallation
from hushcast_protocol.content.bodies import Content
from hushcast_protocol.content.messages import Message
from hushcast_testnet.simulations.colluders import Colluders, SelectiveColluder

pytestmark = pytest.mark.slow

EPOCH = 1200


def under(planned: TreeInstallation) -> Mapping[bytes | None, Sequence[bytes]]:
    """Return who stands under whom now."""
    return planned.installation.tree.children


def count_drops(net: SmallNetwork) -> Counter[bytes]:
    """Count how often each message is dropped, at any relay."""
    seen: Counter[bytes] = Counter()
    for node in net.relays:
        assert node.daemon.overlay.relay is not None
        take = node.daemon.overlay.relay.drops.take

        async def tap(message: Message, take=take):  # type: ignore[no-untyped-def]
            seen[message.id] += 1
            return await take(message)

        node.daemon.overlay.relay.drops.take = tap  # type: ignore[method-assign]
    return seen


async def test_a_probe_enters_as_often_as_a_publication() -> None:
    async with small_network(relays=5, clients=1, epoch=EPOCH, probes_an_epoch=60.0) as net:
        await net.clients[0].listen()
        seen = count_drops(net)
        publication = await net.clients[0].daemon.service.publish(ONE, Content(b"x"))
        await trio.sleep(EPOCH / 2)
        assert len(seen) > 20
        last = list(seen)[-1]  # may be on its way
        assert {count for name, count in seen.items() if name != last} == {net.profile.origins} == {2}
        assert seen[publication.id] == 2


async def test_colluders_that_lose_only_what_they_hold_twice_are_found() -> None:
    async with small_network(relays=12, clients=1, epoch=EPOCH, probes_an_epoch=120.0) as net:
        client = net.clients[0]
        ear = await client.listen()
        subscription = client.route()
        (planned,) = subscription.planned.values()
        tops = [relay for relay, above in planned.installation.tree.parents.items() if above is None]
        together = Colluders()
        bad = set(tops[:2])
        for name in bad:
            relay = net.relay(name).daemon.overlay.relay
            assert relay is not None
            relay.forwarding._router = SelectiveColluder(relay, together)
        with trio.fail_after(2 * EPOCH):
            while set(subscription.coverage.suspects()) != bad:
                await trio.sleep(5)
                await subscription.coverage.judge()
        told = subscription.coverage.describe()
        assert told["delivered"] < 0.9
        assert told["share"] < 0.9
        await until(lambda: not any(map(under(planned).get, bad)), 2 * EPOCH, "they have no children")
        await trio.sleep(60)
        # What enters at two honest relays comes, whatever they do.
        honest = [node for node in net.relays if node.id not in bad]
        for number, node in enumerate(honest):
            await net.drop_at(node, ONE, Content(b"%d" % number))
        await ear.hears(len(honest))
