"""A proxy that is a user, too, computes the server's key, and opens all that passes, whoever it is for.

VB §4.1 is secure "only if the proxy cannot act as a user", and anybody can. As published it reads everything;
hardened it finds sealed bodies and tokens, and knows those of topics that its user knows.
"""

from __future__ import annotations

import pytest
from central_attackers import Kept, inside, named, read, servers_key
from daemons import daemons
from small_network import ONE, TWO, derive

from hushcast_protocol.content.bodies import Content
from hushcast_protocol.content.tokens import OPEN_KEY, hashed_topic_key

WORDS, OTHERS = b"not for the proxy", b"for all who know of topic two"


@pytest.mark.parametrize("profile", ["paper", "hardened"])
async def test_a_proxy_with_a_user_reads_everything_only_as_published(
    profile: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = Kept()
    kept.watch(monkeypatch)
    async with daemons(3, profile) as network:
        reader, writer, own = network.nodes
        ear, own_ear = await reader.listen(ONE), await own.listen(TWO)
        for topic, payload in ((ONE, WORDS), (TWO, OTHERS)):
            await writer.daemon.service.publish(topic, Content(payload))
        assert await ear.hears(1) == [WORDS]
        assert await own_ear.hears(1) == [OTHERS]

        key = await servers_key(network.deliveries, own)
        assert key == network.server.keys.group
        net, day = network.net.id, network.today
        keys = [OPEN_KEY, derive(TWO, net, day)]  # of what its user subscribes to
        # All is under one key: what another proxy takes of publishers, too.
        messages = [inside(key, wrapped) for wrapped in kept.delivered]
        taken = [inside(key, request.wrapped) for request in kept.passed]
        found = {read(message, keys) for message in messages}
        assert found == {read(message, keys) for message in taken}
        hashed = {topic.name: hashed_topic_key(topic, net, day) for topic in (ONE, TWO)}
        known = {"its own": derive(TWO, net, day)}
        names = {name for request in kept.passed for name in named(key, request.tokens, hashed | known)}
        if profile == "paper":
            assert found == {WORDS, OTHERS}
            assert names == {ONE.name, TWO.name}
        else:
            assert found == {None, OTHERS}
            assert names == {"its own"}


@pytest.mark.parametrize("profile", ["paper", "hardened"])
async def test_what_comes_in_goes_out_unchanged_only_as_published(
    profile: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Proxies that compare payloads link who published with who hears; they need no key for that."""
    kept = Kept()
    kept.watch(monkeypatch)
    async with daemons(3, profile) as network:
        writer, *readers = network.nodes
        ears = [await reader.listen(ONE) for reader in readers]
        await writer.daemon.service.publish(ONE, Content(WORDS))
        for ear in ears:
            assert await ear.hears(1) == [WORDS]
        payloads = [request.wrapped.payload for request in kept.passed]
        payloads += [wrapped.payload for wrapped in kept.delivered]
        assert len(payloads) == 3
        assert len(set(payloads)) == (1 if profile == "paper" else 3)
        points = [(one.mask, one.masked) for one in (*kept.delivered, kept.passed[0].wrapped)]
        assert len({point for pair in points for point in pair}) == 6
