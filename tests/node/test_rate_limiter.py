"""A previous hop that sends too much to one next hop is slowed; nobody else is; nothing is lost."""

from __future__ import annotations

import pytest
import trio
from small_network import ONE, TWO, small_network

from hushcast_overlay.relay import rate_limiter
from hushcast_overlay.relay.rate_limiter import MAX_FLOWS, RateLimiter
from hushcast_protocol.content.bodies import Content
from hushcast_protocol.overlay.hops import relay_hop
from hushcast_runtime.environment import simulated_environment

A, B = relay_hop(b"a" * 32), relay_hop(b"b" * 32)


async def test_each_pair_of_link_and_next_hop_has_a_bucket_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rate_limiter, "FORWARDS_AT_ONCE", 10.0)
    monkeypatch.setattr(rate_limiter, "FORWARDS_A_SECOND", 2.0)
    kept = RateLimiter(simulated_environment(1))
    assert kept.debt(b"p" * 32, {A: 10}) == 0
    assert kept.debt(b"p" * 32, {A: 4}) == 2
    assert kept.debt(b"p" * 32, {B: 1}) == 0
    assert kept.debt(b"q" * 32, {A: 1}) == 0
    await trio.sleep(2)
    assert kept.debt(b"p" * 32, {A: 1}) == 0.5


async def test_the_number_of_flows_is_bounded() -> None:
    kept = RateLimiter(simulated_environment(1))
    for number in range(MAX_FLOWS + 100):
        kept.debt(number.to_bytes(32, "big"), {A: 1})
    assert len(kept._buckets) == MAX_FLOWS


async def test_a_link_that_floods_a_next_hop_is_slowed_and_loses_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rate_limiter, "FORWARDS_AT_ONCE", 20.0)
    monkeypatch.setattr(rate_limiter, "FORWARDS_A_SECOND", 2.0)
    async with small_network(relays=6, clients=3, origins=1, epoch=4 * 3600) as net:
        flooded, other, publisher = net.clients
        ear, other_ear = await flooded.listen(ONE), await other.listen(TWO)
        (planned,) = flooded.route(ONE).planned.values()
        tree = planned.installation.tree
        below = next(net.relay(relay) for relay, above in tree.parents.items() if above is not None)
        began = trio.current_time()
        async with trio.open_nursery() as flood:
            for number in range(60):
                flood.start_soon(net.drop_at, below, ONE, Content(b"%d" % number))
        await publisher.daemon.service.publish(TWO, Content(b"quick"))
        await other_ear.hears(1)
        assert trio.current_time() - began < 10, "other links are not slowed"
        await trio.sleep(60)
        for number in range(5):  # behind the flood, on the same link
            await net.drop_at(below, ONE, Content(b"later %d" % number))
        await ear.hears(65, within=120)
        assert len(ear.payloads) == 65
        assert net.count("links_slowed") > 0
