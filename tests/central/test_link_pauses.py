"""How long a proxy waits before it opens its link to the server again."""

from __future__ import annotations

import trio
from small_central import small_central
from small_network import until

from hushcast_central.proxy.server_link import LONGEST_PAUSE


async def test_a_link_that_breaks_is_opened_again_at_once_though_the_server_was_away_before() -> None:
    async with small_central() as network:
        await network.server.stop()
        await trio.sleep(10 * LONGEST_PAUSE)
        await network.server.start()
        await network.linked()
        proxy = network.deliveries
        opened = proxy.count("links_opened")
        await proxy.daemon._server._writer.channel._stream.aclose()
        await until(lambda: proxy.count("links_opened") > opened, 5.0, "there is another link")
        assert proxy.count("links_failed") > 0
