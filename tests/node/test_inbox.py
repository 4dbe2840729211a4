"""The inbox: what was acknowledged never comes again, all else is kept until retention."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio
import trio.testing
from hypothesis import given, settings
from hypothesis import strategies as st
from mortal_store import MortalStore

from hushcast_local import inbox as module
from hushcast_local.inbox import Inbox, InboxListener
from hushcast_local.settings import InboxSection
from hushcast_node.counters import COUNTERS
from hushcast_protocol.base.errors import Refusal
from hushcast_protocol.content.bodies import Content
from hushcast_runtime.counters import Counters
from hushcast_runtime.environment import Environment, simulated_environment

NAME = b"subscription 1 ."
DAY = 24 * 3600.0


class Desk:
    """An inbox that can be restarted."""

    def __init__(self, retention: InboxSection | None = None) -> None:
        self.store = MortalStore()
        self.env: Environment = simulated_environment(1, 1e9)
        self.counters = Counters(COUNTERS)
        self.retention = retention or InboxSection()
        self.put_so_far = 0
        self.inbox = self._open()

    def _open(self) -> Inbox:
        return Inbox(NAME, self.env, self.store, self.counters, self.retention)

    async def put(self, count: int = 1, size: int = 8) -> None:
        for _ in range(count):
            self.put_so_far += 1
            number = self.put_so_far
            assert self.inbox.put(number.to_bytes(32, "big"), 1, Content(payload(number, size)))
        await self.inbox.durable()

    async def restart(self, killed: bool = False) -> None:
        if not killed:
            await self.store.write()
        self.store.die()
        self.inbox = self._open()
        await self.inbox.load()
        await self.inbox.lapse(0)  # as a daemon does that starts

    async def rest(self, since: int | None = None) -> tuple[list[int], int]:
        """What a listener that begins now gets, and how much it is told to have lost."""
        listener = self.inbox.listen(since)
        lost = listener.lost()
        numbers = await drain(self.inbox, listener)
        listener.close()
        return numbers, lost + listener.lost()


def payload(number: int, size: int = 8) -> bytes:
    return number.to_bytes(8, "big").ljust(size, b".")


async def drain(inbox: Inbox, listener: InboxListener) -> list[int]:
    numbers = []
    while listener.position < inbox.last:
        arrival = await listener.next()
        assert arrival is not None
        number, received = arrival
        assert received.payload[:8] == payload(number)
        numbers.append(number)
    return numbers


@asynccontextmanager
async def desk(**retention: int) -> AsyncIterator[Desk]:
    opened = Desk(InboxSection(**retention))
    yield opened


async def test_shown_is_where_a_plain_listener_goes_on_and_deletes_nothing() -> None:
    async with desk() as d:
        await d.put(5)
        listener = d.inbox.listen()
        listener.shown(3)
        assert (await d.rest(), await d.rest(0), await d.rest(4)) == (
            ([4, 5], 0),
            ([1, 2, 3, 4, 5], 0),
            ([5], 0),
        )
        await d.restart()
        assert (await d.rest(), await d.rest(0)) == (([4, 5], 0), ([1, 2, 3, 4, 5], 0))


async def test_acknowledged_is_deleted_and_never_comes_again() -> None:
    async with desk() as d:
        await d.put(5)
        await d.inbox.acknowledge(3)
        assert (await d.rest(), await d.rest(0)) == (([4, 5], 0), ([4, 5], 0))
        await d.restart(killed=True)
        assert (await d.rest(), await d.rest(0)) == (([4, 5], 0), ([4, 5], 0))
        assert len(await d.store.scan("inbox")) == 2
        assert not d.inbox.put((2).to_bytes(32, "big"), 1, Content(b"again")), "its id is still known"


async def test_cursors_go_on_after_everything_was_acknowledged_and_restarted() -> None:
    async with desk() as d:
        await d.put(3)
        await d.inbox.acknowledge(3)
        await d.restart(killed=True)
        await d.put(1)
        assert await d.rest(0) == ([4], 0)


async def test_cursors_go_on_after_retention_removed_everything() -> None:
    async with desk(max_age_days=1) as d:
        await d.put(3)
        await trio.sleep(2 * DAY)
        await d.restart()
        await d.restart()
        await d.put(1)
        assert await d.rest(0) == ([4], 3)


async def test_a_cursor_that_no_message_had_is_refused() -> None:
    async with desk() as d:
        await d.put(2)
        with pytest.raises(Refusal, match="has come to cursor 2, not yet to 3"):
            await d.inbox.acknowledge(3)
        with pytest.raises(Refusal, match="begun anew"):
            d.inbox.listen(3)
        assert await d.rest(2) == ([], 0)
        assert d.inbox.describe() == {"cursor": 2, "shown": 0, "acknowledged": 0, "dropped": 0}


async def test_a_listener_gets_what_another_acknowledges_meanwhile() -> None:
    async with desk() as d:
        await d.put(4)
        slow = d.inbox.listen()
        await d.inbox.acknowledge(4)
        assert await d.rest(0) == ([], 0)
        assert await drain(d.inbox, slow) == [1, 2, 3, 4]
        slow.close()
        await d.store.write()
        assert await d.store.scan("inbox") == []


async def test_age_removes_what_nobody_acknowledged_and_counts_it() -> None:
    async with desk(max_age_days=2) as d:
        await d.put(3)
        await d.inbox.acknowledge(1)
        await trio.sleep(1.5 * DAY)
        await d.put(1)
        await trio.sleep(1.0 * DAY)
        await d.inbox.lapse(1)
        assert d.counters["messages_lost_inbox"] == 2
        assert d.inbox.describe()["dropped"] == 2
        assert await d.rest(0) == ([4], 2)
        await d.restart()
        assert d.inbox.describe()["dropped"] == 2
        assert await d.rest(0) == ([4], 2)
        assert await d.rest(3) == ([4], 0)


async def test_size_removes_the_oldest_and_empty_messages_count_too() -> None:
    async with desk(max_bytes=2000) as d:
        await d.put(10, size=500)
        numbers, lost = await d.rest(0)
        assert numbers == [8, 9, 10]
        assert lost == d.counters["messages_lost_inbox"] == 7
        await d.put(1000, size=0)
        assert len(await d.store.scan("inbox")) < 100
        await d.restart()
        assert d.inbox._size <= 2000


async def test_a_subscription_keeps_so_many_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_MESSAGES", 3)
    async with desk() as d:
        await d.put(5)
        assert await d.rest(0) == ([3, 4, 5], 2)


async def test_a_listener_that_retention_overtakes_is_told_once() -> None:
    async with desk(max_bytes=2000) as d:
        await d.put(2, size=500)
        slow = d.inbox.listen()
        assert (await slow.next() or (0,))[0] == 1
        await d.put(6, size=500)
        assert slow.lost() == 4
        assert slow.lost() == 0
        assert await drain(d.inbox, slow) == [6, 7, 8]
        assert slow.lost() == 0


async def test_a_loss_in_the_very_moment_of_reading_is_told() -> None:
    async with desk(max_bytes=2000) as d:
        slow = d.inbox.listen()
        await d.put(8, size=500)
        await d.store.write()
        assert (await slow.next() or (0,))[0] == 6
        assert slow.lost() == 5


async def test_what_was_acknowledged_and_waits_for_a_slow_listener_is_no_loss_when_removed() -> None:
    async with desk(max_bytes=2000) as d:
        await d.put(3, size=500)
        slow = d.inbox.listen()
        await d.inbox.acknowledge(2)
        await d.put(3, size=500)
        assert d.counters["messages_lost_inbox"] == 1
        assert slow.lost() == 3, "the slow listener is told all the same"


async def test_a_listener_waits_for_what_is_to_come_and_hears_the_end() -> None:
    async with desk() as d:
        heard: list[object] = []

        async def listen() -> None:
            listener = d.inbox.listen()
            while (arrival := await listener.next()) is not None:
                heard.append(arrival[0])
            heard.append("end")

        async with trio.open_nursery() as nursery:
            nursery.start_soon(listen)
            await trio.testing.wait_all_tasks_blocked()
            await d.put(2)
            await trio.testing.wait_all_tasks_blocked()
            d.inbox.close()
        assert heard == [1, 2, "end"]


async def test_a_message_whose_link_breaks_while_it_is_written_is_heard_of() -> None:
    """The connection is cancelled in the middle of `put`; the peer sends again, and is a repeat."""
    async with desk() as d:
        heard: list[int] = []

        async def listen() -> None:
            arrival = await d.inbox.listen().next()
            assert arrival is not None
            heard.append(arrival[0])

        async with trio.open_nursery() as nursery:
            nursery.start_soon(listen)
            await trio.testing.wait_all_tasks_blocked()
            with trio.CancelScope() as scope:
                scope.cancel()
                await d.put(1)
            await trio.testing.wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
        assert heard == [1]


async def test_erasing_leaves_nothing_whatever_is_said_afterwards() -> None:
    async with desk() as d:
        await d.put(3)
        listener = d.inbox.listen()
        await listener.next()
        d.inbox.close()
        await d.inbox.erase()
        listener.shown(1, acknowledged=True)
        listener.close()
        await d.store.write()
        assert all([await d.store.scan(kind) == [] for kind in ("inbox", "inbox-seen", "inbox-progress")])


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.integers(1, 4)),
        st.tuples(st.sampled_from(["show", "acknowledge", "acknowledge soon"]), st.integers(0, 20)),
        st.tuples(st.sampled_from(["open", "open at"]), st.integers(0, 20)),
        st.tuples(st.sampled_from(["take", "close"]), st.integers(0, 3)),
        st.tuples(st.sampled_from(["restart", "kill"]), st.just(0)),
    ),
    max_size=40,
)


@pytest.mark.slow
@pytest.mark.parametrize("max_bytes", [1_000_000, 600], ids=["room for all", "room for a few"])
@settings(max_examples=100, deadline=None)
@given(steps=STEPS)
async def test_acknowledged_never_again_and_all_else_kept(
    max_bytes: int, steps: list[tuple[str, int]]
) -> None:
    d = Desk(InboxSection(max_bytes=max_bytes))
    acknowledged = durable = 0
    listeners: list[InboxListener] = []
    begun: dict[int, int] = {}  # by listener: where it began, plus what it got or was told to have lost

    def account(listener: InboxListener, got: int) -> None:
        begun[id(listener)] += got + listener.lost()

    for step, number in steps:
        inbox = d.inbox
        upto = min(number, inbox.last)
        if step == "put":
            await d.put(number, size=60)
        elif step == "show":
            inbox.listen().shown(upto)
        elif step == "acknowledge":
            await inbox.acknowledge(upto)
            acknowledged = durable = max(acknowledged, upto)
        elif step == "acknowledge soon" and listeners:
            listeners[0].shown(upto, acknowledged=True)
            acknowledged = max(acknowledged, upto)
        elif step in ("open", "open at") and len(listeners) < 3:
            listeners.append(inbox.listen(upto if step == "open at" else None))
            assert listeners[-1].position >= acknowledged
            begun[id(listeners[-1])] = listeners[-1].position
        elif step == "take" and number < len(listeners):
            listener = listeners[number]
            account(listener, 0)
            if listener.position < inbox.last:
                arrival = await listener.next()
                assert arrival is not None
                account(listener, 1)
        elif step == "close" and number < len(listeners):
            listener = listeners.pop(number)
            account(listener, len(await drain(inbox, listener)))
            assert begun[id(listener)] == inbox.last, "each listener got, or was told of, every message"
            listener.close()
        elif step in ("restart", "kill"):
            await d.restart(killed=step == "kill")
            assert (durable if step == "kill" else acknowledged) <= d.inbox.progress.acknowledged
            assert d.inbox.progress.acknowledged <= acknowledged
            acknowledged = durable = d.inbox.progress.acknowledged
            listeners = []
        inbox = d.inbox
        assert inbox.last == d.put_so_far
        numbers, lost = await d.rest(0)
        assert all(number > acknowledged for number in numbers)
        assert len(numbers) + lost == inbox.last - acknowledged, "all else is kept, or told as lost"
        assert inbox._size <= max_bytes
        if max_bytes == 1_000_000:
            assert lost == 0
