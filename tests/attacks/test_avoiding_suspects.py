"""Relays that lose one topic's messages watch which publications never enter at them.

Who avoided them would subscribe to that topic. So publications enter at whatever relay is drawn.
"""

from __future__ import annotations

import pytest
from small_network import ONE, TWO, small_network

from hushcast_protocol.content.bodies import Content
from hushcast_protocol.overlay.coverage import ProbeCopy

PUBLICATIONS = 60


@pytest.mark.slow
async def test_publications_enter_at_suspects_as_at_all_others() -> None:
    async with small_network(relays=5, clients=1) as net:
        client, suspect = net.clients[0], net.relays[0]
        await client.listen(ONE)
        coverage = client.route().coverage
        coverage._outcomes += [ProbeCopy((suspect.id,), False, net.now)] * 8
        coverage._outcomes += [
            ProbeCopy((relay.id,), True, net.now) for relay in net.relays[1:] for _ in range(8)
        ]
        coverage._concluded += 1
        await coverage.judge()
        assert coverage.shunned([relay.id for relay in net.relays]) == [suspect.id]
        entered = suspect.count("messages_dropped_here")
        for number in range(PUBLICATIONS):
            await client.daemon.service.publish(TWO, Content(b"%d" % number))
        # Two of five origins: 24 are expected, and fewer than 10 happen once in 20,000 times.
        assert suspect.count("messages_dropped_here") - entered >= 10
