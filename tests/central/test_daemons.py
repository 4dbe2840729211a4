"""Daemons over the central system: what applications get of it, through restarts, days and lost disks."""

from __future__ import annotations

import pytest
from daemons import daemons
from small_network import ONE

from hushcast_protocol.content.bodies import Content

both_profiles = pytest.mark.parametrize("profile", ["hardened", "paper"])


@both_profiles
async def test_what_is_published_is_heard_once(profile: str) -> None:
    async with daemons(profile=profile) as network:
        here, there = network.nodes
        ear, other = await here.listen(), await there.listen()
        for number in range(5):
            publication = await there.daemon.service.publish(ONE, Content(b"%d" % number))
            assert publication.origins == [network.net.server]
        assert await ear.hears(5) == await other.hears(5) == [b"%d" % number for number in range(5)]
