"""Ids of networks are for ever: topics' keys hang on them, so another one is another network."""

from __future__ import annotations

import pytest

from hushcast_protocol.base.roster import Network
from hushcast_protocol.brokers.network import BrokersNetwork
from hushcast_protocol.central.network import CentralNetwork


@pytest.mark.parametrize(
    ("network", "known"),
    [
        (
            Network("example", "hardened", 3600),
            "53a9b0d654ebf2bd71d601ecd63356caefb1661f97daedaf3bca7975839b655c",
        ),
        (
            CentralNetwork("example", "hardened", 3600, b"s" * 32, b"k" * 32),
            "81f4aa34fe1b0daf388c5bfebb59831ee040a95e7fedfb5c881d24964902a41f",
        ),
        (
            BrokersNetwork("example", "clear", 3600, b"r" * 32),
            "228aa1189bf6ba30f2ce988f92af33b94e2d8df620d9fc0caccc3b7b2514abba",
        ),
    ],
    ids=["overlay", "central", "brokers"],
)
def test_the_id_of_a_network_does_not_change(network: Network, known: str) -> None:
    assert network.id.hex() == known
