"""Sharing in simulations: what is drawn once for all daemons is what each would have drawn."""

from hushcast_overlay.shards.shard_reader import guides_of
from hushcast_protocol.base.addresses import memory_address
from hushcast_protocol.base.roster import Relay
from hushcast_protocol.shards.guides import GUIDES
from hushcast_testnet.simulations.record_pool import shared_reading


def seated(first: int) -> dict[bytes, Relay]:
    names = [bytes((number,)) * 32 for number in range(first, first + 20)]
    return {name: Relay(name, memory_address(name), bytes(32), 0) for name in names}


def test_guides_that_are_shared_are_those_that_each_daemon_draws() -> None:
    reading = shared_reading()
    shards = [seated(1), seated(101)]
    for _ in range(2):
        for beacon in (bytes(32), b"b" * 32):
            for shard in shards:
                drawn = reading.guides(beacon, shard)
                assert drawn == guides_of(beacon, shard)
                assert len(drawn) == GUIDES
                assert drawn <= shard.keys()
    assert guides_of(bytes(32), shards[0]) != guides_of(b"b" * 32, shards[0])


def test_guides_are_drawn_once_for_the_same_slice() -> None:
    reading, shard = shared_reading(), seated(1)
    assert reading.guides(bytes(32), shard) is reading.guides(bytes(32), shard)
