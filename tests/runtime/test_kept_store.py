"""What is kept for those who come later: floods cost their own day, and a damaged disk what it damaged."""

from __future__ import annotations

import pytest
import trio

from hushcast_protocol.base.wire import encode
from hushcast_protocol.content.kept_shares import KEPT_BESIDE, trunk_day
from hushcast_protocol.content.messages import HEADER, SEAL, TRAIL_SIZE, Message, message_id
from hushcast_protocol.content.payload_sizes import PADDED_SIZES
from hushcast_runtime.context import Context
from hushcast_runtime.counters import Counters
from hushcast_runtime.environment import simulated_environment
from hushcast_runtime.processes.keeping_section import MIN_ROOM, KeepingSection
from hushcast_runtime.storage import kept_store
from hushcast_runtime.storage.changes import Change
from hushcast_runtime.storage.kept_store import PAGE, READ_AT_ONCE, KeptStore
from hushcast_runtime.storage.store import MemoryStore
from hushcast_runtime.tracing import NoTracer

TRUNK, OTHER = b"t" * 16, b"o" * 16
MEANINGS = dict.fromkeys(("messages_kept", "messages_kept_gave_way"), "")


class Keeper:
    """A store, and what was put into it."""

    def __init__(self, store: MemoryStore | None = None, most: int = MIN_ROOM) -> None:
        self.store = store or MemoryStore()
        self.counters = Counters(MEANINGS)
        env = simulated_environment("kept", 0.0)
        self.kept = KeptStore(most, Context(env, self.store, self.counters, NoTracer(), lambda *_: None))
        self._next = 0

    async def put(
        self, day: int, trunk: bytes = TRUNK, size: int = 0, giver: bytes = b"", mark: bytes = b""
    ) -> Message:
        self._next += 1
        body = self._next.to_bytes(8, "big").ljust(HEADER + PADDED_SIZES[size] + SEAL, b".")
        message = Message(message_id(day, body), day, (trunk,), bytes(TRAIL_SIZE), body)
        self.store.write_soon(*self.kept.keep(message, giver, mark))
        if self._next % 64 == 0:
            await trio.lowlevel.checkpoint()
        return message

    async def all_of(self, day: int, trunk: bytes = TRUNK) -> list[Message]:
        found, after = [], None
        while True:
            some, after = await self.kept.read(trunk_day(day, trunk), after)
            found += some
            if after is None:
                return found

    async def again(self, most: int = MIN_ROOM) -> Keeper:
        """Restart on the same disk."""
        other = Keeper(self.store, most)
        await other.kept.load()
        return other


async def test_all_of_a_day_is_read_in_pages_and_again_after_a_restart() -> None:
    keeper = Keeper()
    sent = [await keeper.put(7, size=number % 4) for number in range(3 * READ_AT_ONCE)]
    await keeper.put(7, OTHER)
    await keeper.put(8)
    for one in (keeper, await keeper.again()):
        assert {message.id for message in await one.all_of(7)} == {message.id for message in sent}
        some, after = await one.kept.read(trunk_day(7, TRUNK), None)
        assert after is not None
        assert PAGE <= sum(len(message.body) for message in some) < PAGE + READ_AT_ONCE * PADDED_SIZES[-1]
    assert not keeper.kept.keep(sent[0]), "once"


@pytest.mark.parametrize(("trunks", "size"), [(1, 0), (1, 4), (1000, 0), (1000, 4)])
async def test_a_flood_takes_nothing_of_the_days_before(trunks: int, size: int) -> None:
    keeper = Keeper()
    honest = [await keeper.put(day) for day in range(1, 8) for _ in range(50)]
    room = 2 * MIN_ROOM // (PADDED_SIZES[size] + KEPT_BESIDE)
    for number in range(room):
        await keeper.put(8, (number % trunks).to_bytes(16, "big"), size)
    assert keeper.counters["messages_kept_gave_way"] > 0
    assert keeper.kept.size <= MIN_ROOM
    stays = {message.id for day in range(1, 8) for message in await keeper.all_of(day)}
    assert stays == {message.id for message in honest}


async def test_a_flood_through_one_proxy_takes_nothing_of_another() -> None:
    keeper = Keeper()
    honest = [await keeper.put(7, giver=b"honest") for _ in range(50)]
    for number in range(2 * MIN_ROOM // PADDED_SIZES[0]):
        await keeper.put(7, number.to_bytes(16, "big"), giver=b"flood")
    assert {message.id for message in await keeper.all_of(7)} == {message.id for message in honest}


async def test_days_that_are_over_go_and_with_them_what_is_damaged() -> None:
    keeper = Keeper()
    for day in (5, 6, 7):
        for _ in range(3):
            await keeper.put(day, mark=day.to_bytes(32, "big"))
    name = trunk_day(6, TRUNK)
    gone, damaged, *_ = await keeper.store.scan("kept", name)  # type: ignore[arg-type]
    keeper.store.write_soon(Change("kept", gone[0], None))  # type: ignore[arg-type]
    keeper.store.write_soon(Change("kept", damaged[0], b"no record"))  # type: ignore[arg-type]
    [(key, value), *_] = await keeper.store.scan("kept-message", trunk_day(7, TRUNK))  # type: ignore[arg-type]
    keeper.store.write_soon(Change("kept-message", key, value[:-1] + b"!"))  # type: ignore[arg-type]
    other = await keeper.again()
    assert [len(await other.all_of(day)) for day in (5, 6, 7)] == [3, 1, 2]
    assert other.kept.find((6).to_bytes(32, "big")) == name
    await other.kept.lapse(7)
    assert other.kept.find((6).to_bytes(32, "big")) is None
    days = [int.from_bytes(key[:8], "big") for key, _ in await keeper.store.scan("kept-message")]  # type: ignore[arg-type]
    assert days == [7, 7, 7]
    await other.kept.lapse(8)
    for kind in ("kept", "kept-message"):
        assert not await keeper.store.scan(kind)  # type: ignore[arg-type]
    assert not other.kept.size


async def test_what_gives_way_while_its_day_is_forgotten_is_forgotten_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(kept_store, "FORGOTTEN_AT_ONCE", 1)
    keeper = Keeper()
    for number in range(2 * MIN_ROOM // 3 // PADDED_SIZES[4]):
        await keeper.put(1, (number % 8).to_bytes(16, "big"), size=4)
    before = keeper.counters["messages_kept_gave_way"]
    async with trio.open_nursery() as nursery:
        nursery.start_soon(keeper.kept.lapse, 2)
        for number in range(60):
            await keeper.put(2, (number % 8).to_bytes(16, "big"), size=4)
            if number % 6 == 0:
                await trio.lowlevel.checkpoint()
    assert keeper.counters["messages_kept_gave_way"] > before
    assert not await keeper.store.scan("kept", (1).to_bytes(8, "big"))  # type: ignore[arg-type]


async def test_what_an_operator_makes_smaller_gives_way_at_the_next_start() -> None:
    keeper = Keeper(most=2 * MIN_ROOM)
    for number in range(MIN_ROOM // PADDED_SIZES[3]):
        await keeper.put(7, number.to_bytes(16, "big"), 3)
    other = await keeper.again(MIN_ROOM // 2)
    assert 0 < other.kept.size <= MIN_ROOM // 2
    nothing = await other.again(0)
    assert not nothing.kept.size
    assert not await keeper.store.scan("kept-message")  # type: ignore[arg-type]


async def test_a_message_in_the_place_of_another_is_left_out() -> None:
    keeper = Keeper()
    first, second = await keeper.put(7), await keeper.put(7)
    key = trunk_day(7, TRUNK) + first.id
    keeper.store.write_soon(Change("kept-message", key, encode(second)))  # type: ignore[arg-type]
    assert [message.id for message in await keeper.all_of(7)] == [second.id]


def test_what_is_kept_in_words() -> None:
    assert KeepingSection(days=0).text == "nothing"
    assert KeepingSection().text == "14 days, 256 MiB"
