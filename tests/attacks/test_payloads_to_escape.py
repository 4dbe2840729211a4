"""A writer sends payloads of control characters, each of which takes six bytes to escape, to keep a reader's
daemon busy."""

from __future__ import annotations

import json

import pytest
import trio
import trio.testing
from daemons import daemons
from small_network import ONE

from hushcast.control_messages import MAX_ANSWER, TopicSubscribeRequest, encode_line
from hushcast_local.application_requests import ApplicationRequests
from hushcast_local.conversation import Conversation
from hushcast_protocol.content.bodies import Content
from hushcast_runtime.transports.lines import Lines

LARGEST = 262_144
MESSAGES = 15  # as many as are read at once


@pytest.mark.slow
async def test_what_takes_long_to_write_is_told_in_short_steps() -> None:
    async with daemons(count=1) as network, trio.open_nursery() as nursery:
        node = network.nodes[0]
        service = node.daemon.service
        await node.listen()
        (subscription,) = service.subscriber.subscriptions
        for number in range(MESSAGES):
            content = Content(b"\x01" * LARGEST, {})
            assert subscription.inbox.put(number.to_bytes(32, "big"), network.today, content)
        await service.durable()
        requests = ApplicationRequests(dict, list)  # type: ignore[arg-type]
        requests.open(service)
        ours, theirs = trio.testing.memory_stream_pair()
        nursery.start_soon(Conversation(Lines(theirs, MAX_ANSWER), requests, node.counters[-1]).run)
        lines = Lines(ours, MAX_ANSWER)
        await lines.write(encode_line(TopicSubscribeRequest(ONE.name, since=0, window=MESSAGES, request=1)))
        heard = []
        while len(heard) < MESSAGES:
            line = await lines.read()
            assert line is not None
            if (said := json.loads(line)).get("cursor"):
                heard.append(said["cursor"])
                assert said["payload"] == "\x01" * LARGEST
        assert heard == list(range(1, MESSAGES + 1))
        nursery.cancel_scope.cancel()
