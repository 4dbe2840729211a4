"""The example of located feeds, beside a daemon and a small provider."""

from __future__ import annotations

import signal

import pytest
import trio
from example_runs import Place
from msgspec.structs import replace
from providing import Provider

import hushcast
from hushcast_protocol.spatial.offer import write_offer


@pytest.mark.slow
async def test_what_is_near_is_printed_and_a_lie_is_named(place: Place) -> None:
    await place.start()
    async with hushcast.connect(place.daemon.socket) as daemon, trio.open_nursery() as nursery:
        provider = Provider(daemon)
        await nursery.start(provider.run)
        arguments = (write_offer(provider.offer), 60.17, 24.94, "shoe", "discount", "--name", "shoes")
        nearby = await place.run("nearby.py", *arguments, "--folder", place.directory / "state")
        assert await nearby.line() == "-- the provider has taken the subscription"
        provider.batch(["shoe \x1b discount", "fish at the market"])
        await provider.answer()
        assert await nearby.line() == "shoe ? discount"
        provider.batch(["discount shoe"])
        await provider.answer(lambda one: replace(one, proof=None))
        assert await nearby.line() == "-- the provider's answer does not hold: left out, interval 2"
        assert await nearby.end(signal.SIGINT) == 0
        provider.batch(["shoe and discount"])
        await provider.answer()
        nearby = await place.run("nearby.py", *arguments, "--folder", place.directory / "state")
        assert await nearby.line() == "shoe and discount"
        assert await nearby.end(signal.SIGINT) == 0
        assert len(provider.numbers) == 1
        nursery.cancel_scope.cancel()
