"""The spool: what it counts, moves and refuses."""

from __future__ import annotations

from hushcast_node import spool as spools
from hushcast_node.spool import Move, Spool
from hushcast_protocol.forwarding import Send
from hushcast_protocol.hops import Hop, mailbox_hop, relay_hop
from hushcast_protocol.messages import Message
from hushcast_protocol.trail import TRAIL_SIZE
from hushcast_runtime.store import MemoryStore

ONE, OTHER = relay_hop(b"1" * 32), mailbox_hop(b"2" * 32)
MIB = 1024 * 1024


def message(number: int, size: int = 1000) -> Message:
    return Message(number.to_bytes(32, "big"), 7, (b"t" * 16,), bytes(TRAIL_SIZE), bytes(size))


async def hops_of(spool: Spool) -> dict[Hop, int]:
    return {hop: len(await spool.waiting(hop)) for hop in (ONE, OTHER)}


async def test_a_moved_message_waits_in_one_place_after_a_restart_too() -> None:
    store = MemoryStore()
    spool = Spool(store)
    placed = [item for _, item in spool.put([Send(ONE, message(n)) for n in range(3)])]
    moved = await spool.move([Move(placed[1], OTHER, message(9))])
    assert [hop for hop, _ in moved] == [OTHER]
    assert not spool.holds(placed[1])
    assert await hops_of(spool) == {ONE: 2, OTHER: 1}
    again = Spool(store)
    assert sorted(await again.load()) == sorted([ONE, OTHER])
    assert (await again.waiting(OTHER))[0].message == message(9)
    assert again.size == spool.size == 3000


async def test_what_was_settled_meanwhile_is_not_moved() -> None:
    spool = Spool(MemoryStore())
    ((_, item),) = spool.put([Send(ONE, message(1))])
    spool.done([item])
    assert await spool.move([Move(item, OTHER, message(1))]) == []
    assert spool.size == 0


async def test_one_next_hop_has_an_eighth_of_the_spool() -> None:
    spool = Spool(MemoryStore())
    big = [Send(OTHER, message(n, MIB)) for n in range(spools.MAX_SHARE // MIB)]
    placed = spool.put(big)
    assert not spool.has_share(OTHER, 1)
    assert spool.has_share(ONE, spools.MAX_SHARE)
    assert not spool.is_full(MIB)
    spool.done(item for _, item in placed)
    assert spool.has_share(OTHER, spools.MAX_SHARE)
