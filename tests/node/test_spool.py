"""The spool: what it counts, moves and refuses."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from hushcast_protocol.base.wire import encode
from hushcast_protocol.content.hops import Hop, HopMessage
from hushcast_protocol.content.messages import TRAIL_SIZE, Message, message_id
from hushcast_protocol.overlay.hops import host_hop, relay_hop
from hushcast_runtime.storage import spool as spools
from hushcast_runtime.storage.changes import Change
from hushcast_runtime.storage.recovery import DAMAGED
from hushcast_runtime.storage.spool import Spool, SpooledMessage, SpoolMove
from hushcast_runtime.storage.store import MemoryStore
from hushcast_runtime.time_slices import in_steps

ONE, OTHER = relay_hop(b"1" * 32), host_hop(b"2" * 32)
MIB = 1024 * 1024
LARGE = 200_000


def anything(message: Message) -> None:
    """The messages of these tests have ids of their own."""


def message(number: int, size: int = 1000) -> Message:
    return Message(number.to_bytes(32, "big"), 7, (b"t" * 16,), bytes(TRAIL_SIZE), bytes(size))


def real(number: int) -> Message:
    """A message that others would take."""
    body = number.to_bytes(1167, "big")
    return Message(message_id(7, body), 7, (b"t" * 16,), bytes(TRAIL_SIZE), body)


async def hops_of(spool: Spool) -> dict[Hop, int]:
    return {hop: len(await spool.waiting(hop)) for hop in (ONE, OTHER)}


async def test_a_moved_message_waits_in_one_place_after_a_restart_too() -> None:
    store = MemoryStore()
    spool = Spool(store)
    placed = [item for _, item in spool.put([HopMessage(ONE, message(n)) for n in range(3)])]
    moved = await spool.move([SpoolMove(placed[1], OTHER, message(9))])
    assert [hop for hop, _ in moved] == [OTHER]
    assert not spool.holds(placed[1])
    assert await hops_of(spool) == {ONE: 2, OTHER: 1}
    again = Spool(store)
    assert sorted(await again.load(anything)) == sorted([ONE, OTHER])
    assert (await again.waiting(OTHER))[0].message == message(9)
    assert again.size == spool.size == 3000


async def test_what_was_settled_meanwhile_is_not_moved() -> None:
    spool = Spool(MemoryStore())
    ((_, item),) = spool.put([HopMessage(ONE, message(1))])
    spool.done([item])
    assert await spool.move([SpoolMove(item, OTHER, message(1))]) == []
    assert spool.size == 0


def hops(count: int) -> list[Hop]:
    return [relay_hop(number.to_bytes(32, "big")) for number in range(count)]


async def test_a_body_for_many_next_hops_is_stored_and_counted_once() -> None:
    store = MemoryStore()
    spool = Spool(store)
    to = hops(50)
    one, two = message(1, LARGE), message(2, LARGE)
    placed = spool.put([HopMessage(hop, each) for each in (one, two) for hop in to])
    assert spool.size == 2 * LARGE + 100 * spools.REFERENCE
    held = await store.scan("spool") + await store.scan("spool-body")
    assert sum(len(key) + len(value) for key, value in held) <= spool.size
    for hop in (to[0], to[-1]):
        first, second = await spool.waiting(hop)
        assert (first.message, second.message) == (one, two)
        assert first.message.body is one.body, "in memory, too, there is one"
        assert not spool.has_share(hop, spools.MAX_SHARE - 2 * LARGE + 1)
    spool.done(item for _, item in placed[:-1])
    assert [key for key, _ in await store.scan("spool-body")] == [(50).to_bytes(8, "big")]
    assert spool.size == LARGE + spools.REFERENCE
    assert (await spool.waiting(to[-1]))[0].message == two
    spool.done([placed[-1][1]])
    assert spool.size == 0
    assert await store.scan("spool") == await store.scan("spool-body") == []


async def test_references_are_read_back_after_a_restart_and_hold_one_body_in_memory() -> None:
    store = MemoryStore()
    spool = Spool(store)
    to = hops(4)
    spool.put([HopMessage(hop, message(1)) for hop in to])
    spool.put([HopMessage(to[0], message(2))])
    again = Spool(store)
    assert await again.load(anything) == sorted(to)
    assert again.size == spool.size == 2000 + 4 * spools.REFERENCE
    waiting = {hop: await again.waiting(hop) for hop in to}
    assert [item.message for item in waiting[to[0]]] == [message(1), message(2)]
    assert len({id(items[0].message.body) for items in waiting.values()}) == 1
    (_, placed), *_ = again.put([HopMessage(to[1], message(3)), HopMessage(to[2], message(3))])
    assert [item.message for item in await again.waiting(to[1])] == [message(1), message(3)]
    assert again.holds(placed)
    again.done(item for items in waiting.values() for item in items)
    assert again.size == 1000 + 2 * spools.REFERENCE


async def test_a_reference_that_moves_leaves_its_body_where_it_is() -> None:
    store = MemoryStore()
    spool = Spool(store)
    to = hops(6)
    placed = spool.put([HopMessage(hop, message(1)) for hop in to[:3]])
    detour = Message(message(1).id, 7, (b"t" * 16, b"b" * 16), bytes(TRAIL_SIZE), message(1).body)
    moved = await spool.move([SpoolMove(placed[0][1], to[3], detour), SpoolMove(placed[1][1], to[4], detour)])
    assert [hop for hop, _ in moved] == to[3:5]
    assert spool.size == 1000 + 3 * spools.REFERENCE
    assert len(await store.scan("spool-body")) == 1
    again = Spool(store)
    await again.load(anything)
    assert again.size == spool.size
    assert [item.message for item in await again.waiting(to[4])] == [detour]
    spool.done([placed[2][1], *(item for _, item in moved)])
    assert await store.scan("spool-body") == []


async def test_what_an_earlier_version_kept_is_read_and_what_nothing_refers_to_goes() -> None:
    """Earlier versions kept every copy whole."""
    store = MemoryStore()
    for number, hop in enumerate((ONE, OTHER)):
        key = hop + number.to_bytes(8, "big")
        store.write_soon(Change("spool", key, encode(message(1))))
    store.write_soon(Change("spool-body", bytes(8), b"nobody's"))
    spool = Spool(store)
    assert sorted(await spool.load(anything)) == sorted([ONE, OTHER])
    assert spool.size == 2000
    assert [item.message for item in await spool.waiting(OTHER)] == [message(1)]
    await spool.durable()
    assert await store.scan("spool-body") == []


async def test_a_days_end_takes_bodies_with_it() -> None:
    store = MemoryStore()
    spool = Spool(store)
    spool.put([HopMessage(hop, message(1)) for hop in hops(3)])
    spool.put([HopMessage(ONE, message(2))])
    assert await in_steps(spool.expire(lambda _, day: day == 7)) == 0
    assert await in_steps(spool.expire(lambda _, day: False)) == 4
    assert spool.size == 0
    assert await store.scan("spool") == await store.scan("spool-body") == []


async def test_room_is_told_in_next_hops(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spools, "MAX_SPOOL", 10_000)
    spool = Spool(MemoryStore())
    assert spool.takes(10_000, 1) == 1
    assert spool.takes(10_001, 1) == 0
    assert spool.takes(10_000 - 3 * spools.REFERENCE, 7) == 3
    spool.put([HopMessage(hop, message(1)) for hop in hops(spool.takes(1000, 100))])
    assert spool.size <= 10_000
    assert spool.takes(1000, 100) == 0
    spool.reserve(-500)
    assert spool.size <= 9_500


async def test_one_next_hop_has_an_eighth_of_the_spool() -> None:
    spool = Spool(MemoryStore())
    big = [HopMessage(OTHER, message(n, MIB)) for n in range(spools.MAX_SHARE // MIB)]
    placed = spool.put(big)
    assert not spool.has_share(OTHER, 1)
    assert spool.has_share(ONE, spools.MAX_SHARE)
    assert not spool.is_full(MIB)
    spool.done(item for _, item in placed)
    assert spool.has_share(OTHER, spools.MAX_SHARE)


async def numbers(spool: Spool, after: SpooledMessage | None = None, size: int = 0) -> list[int]:
    return [int.from_bytes(item.message.id, "big") for item in await spool.waiting(ONE, after, size)]


async def test_what_waits_is_read_on_by_bytes() -> None:
    spool = Spool(MemoryStore())
    placed = [item for _, item in spool.put([HopMessage(ONE, message(number)) for number in range(100)])]
    spool.put([HopMessage(OTHER, message(200))])
    assert await numbers(spool) == list(range(15))
    assert await numbers(spool, placed[39], 31_000) == list(range(40, 85))
    assert await numbers(spool, placed[84], 31_000) == list(range(85, 100))
    assert await numbers(spool, placed[99], 31_000) == []
    spool.done(placed[40:70])
    assert await numbers(spool, placed[39]) == list(range(70, 85))


class LapsingStore(MemoryStore):
    """A store that is read while a day lapses."""

    def __init__(self) -> None:
        super().__init__()
        self.lapse: Callable[[], object] = list

    async def scan(
        self, kind: str, prefix: bytes = b"", after: bytes | None = None, limit: int = -1
    ) -> list[tuple[bytes, bytes]]:
        found = await super().scan(kind, prefix, after, limit)
        self.lapse()
        return found


async def test_what_expires_while_it_is_read_hides_nothing_behind_it() -> None:
    """Who reads nothing takes it that nothing waits, and does not ask again."""
    store = LapsingStore()
    spool = Spool(store)
    spool.put([HopMessage(ONE, message(number)) for number in range(20)])
    later = replace(message(20), day=8)
    spool.put([HopMessage(ONE, later)])
    store.lapse = lambda: list(spool.expire(lambda _, day: day == 8))
    assert [item.message for item in await spool.waiting(ONE)] == [later]
    store.lapse = lambda: list(spool.expire(lambda _, day: False))
    assert await spool.waiting(ONE) == []


async def test_a_damaged_body_takes_those_that_refer_to_it_along_and_no_others() -> None:
    store = MemoryStore()
    spool = Spool(store)
    to = hops(3)
    whole, bad, good = (real(number) for number in range(3))
    spool.put([HopMessage(ONE, whole)])
    for each in (bad, good):
        spool.put([HopMessage(hop, each) for hop in to])
    (first, damaged), _ = await store.scan("spool-body")
    store.write_soon(Change("spool-body", first, damaged[:-1] + b"x"), Change("spool-body", b"x", b"junk"))
    again = Spool(store)
    assert sorted(await again.load()) == sorted([ONE, *to])
    assert len(again) == 4
    assert again.size == 2 * len(good.body) + 3 * spools.REFERENCE
    for hop in to:
        assert [item.message for item in await again.waiting(hop)] == [good]
    assert len(await store.scan("spool-body")) == 1
    assert [kind for kind, _ in await store.scan(DAMAGED)] == [b"spool"]


async def test_a_missing_body_does_not_end_a_start() -> None:
    store = MemoryStore()
    Spool(store).put([HopMessage(hop, real(1)) for hop in hops(2)])
    ((name, _),) = await store.scan("spool-body")
    store.write_soon(Change("spool-body", name, None))
    again = Spool(store)
    assert await again.load() == []
    assert again.size == 0
