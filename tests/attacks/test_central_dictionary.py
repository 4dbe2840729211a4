"""The server opens what reaches it with its own key, and looks for its topics in a dictionary.

VB §4.1 says that it can do neither. As published it can do both; hardened it finds sealed bodies and tokens.
"""

from __future__ import annotations

import pytest
from central_attackers import Kept, inside, named, read
from daemons import daemons
from small_network import ONE, TWO, derive

from hushcast_protocol.base.crypto.secrets import TopicSecret
from hushcast_protocol.content.bodies import Content
from hushcast_protocol.content.tokens import OPEN_KEY, hashed_topic_key, token
from hushcast_protocol.content.topics import Topic

WORDS = b"not for the server"
PRIVATE = Topic(ONE.name, secret=TopicSecret(b"p" * 32))  # its name is in the dictionary
DICTIONARY = [Topic("news"), ONE, TWO, Topic("weather")]


@pytest.mark.parametrize("profile", ["paper", "hardened"])
async def test_the_server_reads_and_names_only_as_published(
    profile: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = Kept()
    kept.watch(monkeypatch)
    async with daemons(profile=profile) as network:
        reader, writer = network.nodes
        ear = await reader.listen(ONE)
        await writer.daemon.service.publish(ONE, Content(WORDS))
        assert await ear.hears(1) == [WORDS]
        key, net, day = network.server.keys.group, network.net.id, network.today
        hashed = {topic.name: hashed_topic_key(topic, net, day) for topic in DICTIONARY}
        register = network.server.daemon._register

        (request,) = kept.taken
        message = inside(key, request.wrapped)
        subscribed = [named(key, one.tokens, hashed) for one in register._subscribers.values()]
        if profile == "paper":
            assert read(message, [OPEN_KEY]) == WORDS
            assert named(key, request.tokens, hashed) == {ONE.name}
            assert subscribed == [{ONE.name}]
        else:
            assert read(message, [OPEN_KEY, *hashed.values()]) is None
            assert named(key, request.tokens, hashed) == set()
            assert subscribed == [set()]
            # It may pay for guesses, as a relay of the overlay may; nothing else protects an open topic.
            assert token(derive(ONE, net, day)) in message.tokens
            assert read(message, [derive(ONE, net, day)]) == WORDS


async def test_a_private_topic_is_in_no_dictionary(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = Kept()
    kept.watch(monkeypatch)
    async with daemons() as network:
        reader, writer = network.nodes
        ear = await reader.listen(PRIVATE)
        await writer.daemon.service.publish(PRIVATE, Content(WORDS))
        assert await ear.hears(1) == [WORDS]
        key, net, day = network.server.keys.group, network.net.id, network.today
        paid = {topic.name: derive(topic, net, day) for topic in DICTIONARY}
        (request,) = kept.taken
        assert named(key, request.tokens, paid) == set()
        assert read(inside(key, request.wrapped), [OPEN_KEY, *paid.values()]) is None
