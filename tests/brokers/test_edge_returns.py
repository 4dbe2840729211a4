"""An edge broker that is back while a daemon is about to turn to another one."""

from __future__ import annotations

import trio
from attached_scene import ROWS, edge_of, edge_of_is_other, other_than
from broker_daemons import sent, tree_of_daemons
from small_network import ONE, until

from hushcast_brokers.client.attachments import EDGE_PATIENCE, LOOK_EVERY


async def test_who_is_back_while_the_root_is_slow_to_answer_is_not_left() -> None:
    async with tree_of_daemons(rows=ROWS) as network:
        reader, author = network.nodes
        ear = await reader.listen(ONE)
        edge, attachments = edge_of(network, reader), reader.daemon.brokers.routes.attachments
        place = attachments.current
        assert place is not None
        await edge.stop()
        await until(lambda: attachments._is_last_try, EDGE_PATIENCE + 2 * LOOK_EVERY, "it is tried once more")
        await trio.sleep(LOOK_EVERY - 2)
        network.root.gate.shut()
        await trio.sleep(3)
        await edge.start()
        place.look()
        await until(lambda: place.is_reached, 15.0, "it is back")
        network.root.gate.open()
        await trio.sleep(LOOK_EVERY + 10)
        assert not edge_of_is_other(network, reader, edge)
        assert other_than(network, edge).count("clients_joined") == 0
        await sent(author, b"x")
        await ear.hears(1)
