"""Epochs of a community open, and are over, at brokers that hold much of what was asked for under them.

All of it was read anew, or forgotten, in one step: 0.6 s for 4,096 filters.
"""

from __future__ import annotations

from typing import Any

import pytest
from community_tree import community_tree
from small_network import until
from steps import one_step

from hushcast_protocol.base.crypto.key_agreement import agreement_key
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.brokers.clear_words import ShownFilter
from hushcast_protocol.brokers.community.charter import check_charter, epoch_key
from hushcast_protocol.brokers.community.community_epochs import MemberEpoch
from hushcast_protocol.brokers.community.sealed_filter import seal_filter
from hushcast_protocol.brokers.exposure import OPEN

LAST = 2**24
CLIENTS, EACH = 16, 256


def shown(number: int) -> ShownFilter:
    """A filter that no other covers."""
    return ShownFilter(b"t" * 16, (LAST, 255), ((number, LAST // 2 + number), (0, 100)))


@pytest.mark.slow
async def test_an_epoch_of_many_clients_opens_and_ends_in_short_steps() -> None:
    async with community_tree((("edge", "edge", "root"),)) as network:
        root, edge, keeper = network.root, network["edge"], network.keeping[0]
        client = Seed(bytes(32))
        keeper.members = {root.key, edge.key, client.public()}
        signed = keeper.signed()
        charter = check_charter(signed, network.net.id)
        key = epoch_key(charter, agreement_key(client))
        assert key is not None
        epoch = MemberEpoch(charter.community, charter.epoch, charter.begins, key)
        interests = edge.daemon._matching.interests
        for number in range(CLIENTS * EACH):
            owner = (number // EACH + 1).to_bytes(32, "big")
            sealed = seal_filter(epoch, owner, shown(number))
            interests.load(owner, number.to_bytes(16, "big"), sealed, OPEN)
        interests.show()

        def filters(one: Any) -> int:
            return len(
                one.daemon._matching.interests.table.filters() or one.daemon._matching._below.table.filters()
            )

        count = CLIENTS * EACH
        await until(lambda: root.status("filters") == count, 300.0, "the root has them as they came")
        for one in (root, edge):
            with one_step():
                one.daemon._charters.take(signed)
        await until(lambda: filters(root) == filters(edge) == count, 300.0, "all is opened")
        for one in (root, edge):
            with one_step():
                one.daemon._charters.only(())
        await until(lambda: root.status("filters") == edge.status("filters") == 0, 300.0, "all is gone")
        assert edge.status("filters_shown") == 0
