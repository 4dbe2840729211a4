"""Subscriptions: nothing acknowledged comes again, all else does, whatever happens to either side."""

from __future__ import annotations

import random
from typing import Any, Literal

import anyio
import pytest
import trio
from world import World

import hushcast
from hushcast.messages import WINDOW
from hushcast_local import application_delivery
from hushcast_local.settings import InboxSection


async def take(messages: hushcast.Messages, count: int) -> list[str]:
    return [(await anext(messages)).text for _ in range(count)]


async def again(world: World, count: int, **options: Any) -> list[str]:
    """Return what another program gets first."""
    async with hushcast.connect(world.socket) as daemon, daemon.subscribe("t", **options) as messages:
        return await take(messages, count)


async def test_what_is_done_is_acknowledged_when_the_block_is_left(world: World) -> None:
    async def program() -> None:
        await world.put("1", "2", "3")
        assert await again(world, 2) == ["1", "2"]
        assert await world.acknowledged() == 2
        assert await again(world, 1) == ["3"]

    await world.run(program)


async def test_what_the_program_failed_at_comes_again(world: World) -> None:
    async def fails() -> None:
        async with hushcast.connect(world.socket) as daemon, daemon.subscribe("t") as messages:
            async for message in messages:
                if message.text == "2":
                    raise ValueError(message.text)

    async def program() -> None:
        await world.put("1", "2", "3")
        with pytest.raises(ValueError, match="2"):
            await fails()
        assert await world.acknowledged() == 1
        assert await again(world, 2) == ["2", "3"]

    await world.run(program)


async def test_a_program_may_leave_a_message_for_later(world: World) -> None:
    async def program() -> None:
        await world.put("1", "2")
        async with hushcast.connect(world.socket) as daemon, daemon.subscribe("t") as messages:
            assert await take(messages, 2) == ["1", "2"]
            messages.undone()
        assert await again(world, 1) == ["2"]

    await world.run(program)


async def test_whoever_leaves_messages_for_later_gets_the_next_all_the_same(world: World) -> None:
    async def program() -> None:
        texts = [str(number) for number in range(WINDOW + 1)]
        await world.put(*texts)
        async with hushcast.connect(world.socket) as daemon, daemon.subscribe("t") as messages:
            for text in texts:
                assert (await messages.next_event(5)).text == text  # type: ignore[union-attr]
                messages.undone()
        assert await world.acknowledged() == 0

    await world.run(program)


async def test_what_a_cancelled_task_had_comes_again(world: World) -> None:
    async def program() -> None:
        await world.put("1", "2", "3")
        async with hushcast.connect(world.socket) as daemon:
            with anyio.CancelScope() as scope:
                async with daemon.subscribe("t") as messages:
                    assert await take(messages, 2) == ["1", "2"]
                    scope.cancel()
                    await anyio.sleep(1)
            assert scope.cancelled_caught
        assert await world.acknowledged() == 1
        assert await again(world, 2) == ["2", "3"]

    await world.run(program)


async def test_acknowledging_by_hand_is_on_disk_at_once(world: World) -> None:
    async def program() -> None:
        await world.put("1", "2", "3")
        async with (
            hushcast.connect(world.socket) as daemon,
            daemon.subscribe("t", acknowledge="manual") as messages,
        ):
            await anext(messages)
            second = await anext(messages)
            assert await world.acknowledged() == 0
            await messages.acknowledge(second)
            assert await world.acknowledged() == 2
            await anext(messages)
        assert await again(world, 1, acknowledge="manual") == ["3"]
        assert await again(world, 1, acknowledge="manual") == ["3"]

    await world.run(program)


async def test_what_was_only_shown_is_kept(world: World) -> None:
    async def program() -> None:
        await world.put("1", "2", "3")
        assert await again(world, 2, acknowledge="never") == ["1", "2"]
        assert await again(world, 1, acknowledge="never") == ["3"]
        assert await again(world, 3, acknowledge="never", since=0) == ["1", "2", "3"]
        assert await world.acknowledged() == 0

    await world.run(program)


async def test_a_daemon_that_is_restarted_is_waited_for(world: World) -> None:
    async def program() -> None:
        await world.put("1", "2")
        async with hushcast.connect(world.socket) as daemon, daemon.subscribe("t") as messages:
            assert await take(messages, 2) == ["1", "2"]
            await world.stop()
            await world.start_again()
            await world.put("3")
            assert await take(messages, 1) == ["3"], "neither lost nor again what came before"
        assert await world.acknowledged() == 3

    await world.run(program)


async def test_a_daemon_is_waited_for_longer_than_a_call_may_take(world: World) -> None:
    async def program() -> None:
        await world.put("1")
        async with (
            hushcast.connect(world.socket, timeout=0.5) as daemon,
            daemon.subscribe("t") as messages,
            anyio.create_task_group() as tasks,
        ):
            assert await take(messages, 1) == ["1"]
            await world.stop()
            assert isinstance(await messages.next_event(), hushcast.Disconnected)

            async def come_back() -> None:
                with pytest.raises(hushcast.TimedOut):
                    await daemon.status()  # so long was it away
                await world.start_again()
                await world.put("2")

            tasks.start_soon(come_back)
            assert isinstance(await messages.next_event(), hushcast.Reconnected)
            assert await take(messages, 1) == ["2"]

    await world.run(program)


async def test_absence_is_told_who_wants_to_hear_of_it(world: World) -> None:
    async def program() -> list[str]:
        kinds = []
        async with hushcast.connect(world.socket) as daemon, daemon.subscribe("t") as messages:
            await world.put("1")
            async for event in messages.events():
                kinds.append(type(event).__name__)
                if kinds == ["Message"]:
                    await world.stop()
                elif kinds[-1] == "Disconnected":
                    await world.start_again()
                elif kinds[-1] == "Reconnected":
                    await world.put("2")
                else:
                    break
        return kinds

    assert await world.run(program) == ["Message", "Disconnected", "Reconnected", "Message"]


async def test_without_reconnecting_it_ends_with_an_error(world: World) -> None:
    async def program() -> None:
        async with (
            hushcast.connect(world.socket, reconnect=False) as daemon,
            daemon.subscribe("t") as messages,
        ):
            await world.stop()
            with pytest.raises(hushcast.NoDaemon, match="closed the connection"):
                await anext(messages)
            with pytest.raises(hushcast.NoDaemon, match="closed the connection"):
                await daemon.status()

    await world.run(program)


async def test_an_acknowledgement_that_the_daemon_did_not_hear_is_told_again(world: World) -> None:
    async def program() -> None:
        await world.put("1", "2")
        async with hushcast.connect(world.socket) as daemon, daemon.subscribe("t") as messages:
            assert await take(messages, 2) == ["1", "2"]
            await world.stop()
            messages.done()  # into a connection that is gone
            await world.start_again()
            await world.put("3")
            assert await take(messages, 1) == ["3"]
            assert await world.acknowledged() == 2

    await world.run(program)


async def test_what_was_shown_and_the_daemon_did_not_hear_is_told_again(world: World) -> None:
    async def program() -> None:
        await world.put("1", "2")
        async with (
            hushcast.connect(world.socket) as daemon,
            daemon.subscribe("t", acknowledge="never") as messages,
        ):
            assert await take(messages, 2) == ["1", "2"]
            await world.stop()
            messages.done()  # into a connection that is gone
            await world.start_again()
            assert isinstance(await messages.next_event(), hushcast.Disconnected)
            assert isinstance(await messages.next_event(), hushcast.Reconnected)
        await world.put("3")
        assert await again(world, 1, acknowledge="never") == ["3"]

    await world.run(program)


async def test_a_subscription_that_was_begun_anew_counts_from_1(world: World) -> None:
    async def program() -> None:
        await world.put("1", "2")
        async with (
            hushcast.connect(world.socket) as daemon,
            hushcast.connect(world.socket) as other,
            daemon.subscribe("t") as messages,
        ):
            assert await take(messages, 2) == ["1", "2"]
            await world.stop()
            world.daemon.store = type(world.daemon.store)()  # its state was lost
            await world.start_again()
            assert await other.subscriptions() == []
            await world.put("new")
            assert await take(messages, 1) == ["new"]

    await world.run(program)


@pytest.mark.parametrize("mode", ["automatic", "manual"])
async def test_a_daemon_that_lost_its_state_is_subscribed_to_again(
    world: World, mode: Literal["automatic", "manual"]
) -> None:
    async def program() -> None:
        await world.put("1", "2")
        async with (
            hushcast.connect(world.socket) as daemon,
            daemon.subscribe("t", acknowledge=mode) as messages,
        ):
            assert await take(messages, 2) == ["1", "2"]
            await world.stop()
            world.daemon.store = type(world.daemon.store)()
            await world.start_again()
            assert isinstance(await messages.next_event(), hushcast.Disconnected)
            assert isinstance(await messages.next_event(), hushcast.Reconnected)
            await world.put("new")
            assert await take(messages, 1) == ["new"]

    await world.run(program)


async def test_a_cursor_that_a_new_subscription_has_not_come_to_leaves_none_behind(world: World) -> None:
    async def program() -> None:
        async with hushcast.connect(world.socket) as daemon:
            with pytest.raises(hushcast.Refusal, match="not yet to 5"):
                async with daemon.subscribe("t", since=5):
                    pass
            assert await daemon.subscriptions() == []

    await world.run(program)


async def test_the_end_of_a_subscription_ends_its_listeners(world: World) -> None:
    async def program() -> list[str]:
        async with hushcast.connect(world.socket) as daemon, daemon.subscribe("t") as messages:
            await world.put("1")
            texts = []
            async for message in messages:
                texts.append(message.text)
                await daemon.unsubscribe("t")
            return texts

    assert await world.run(program) == ["1"]


@pytest.mark.slow
async def test_a_slow_reader_holds_up_nobody_else(world: World) -> None:
    """The daemon sends no more than the window, and other subscriptions of the connection go on."""

    async def program() -> None:
        async with (
            hushcast.connect(world.socket) as daemon,
            daemon.subscribe("slow") as slow,
            daemon.subscribe("t") as quick,
        ):
            await world.put(*map(str, range(2 * WINDOW)), topic="slow")
            await world.put(*map(str, range(20)))
            assert await take(quick, 20) == [str(number) for number in range(20)]
            assert len(slow._call._answers) <= WINDOW  # type: ignore[union-attr]
            assert await take(slow, 2 * WINDOW) == [str(number) for number in range(2 * WINDOW)]

    await world.run(program)


async def test_what_retention_removed_is_told(world: World) -> None:
    async def program() -> list[hushcast.Event]:
        await world.put("0")
        subscription = await world.do(world.daemon.hold, "t")
        subscription.inbox.retention = InboxSection(max_bytes=1024**2)
        await world.put(*("x" * 200_000 for _ in range(8)))
        async with hushcast.connect(world.socket) as daemon, daemon.subscribe("t") as messages:
            return [await messages.next_event() for _ in range(2)]  # type: ignore[misc]

    lost, first = await world.run(program)
    assert isinstance(lost, hushcast.Lost)
    assert isinstance(first, hushcast.Message)
    assert (lost.count, lost.cursor) == (first.cursor - 1, first.cursor - 1)


async def test_who_waits_hears_of_a_loss_before_another_message(world: World) -> None:
    """Nobody may publish for days: a loss elsewhere is told at once."""

    async def program() -> list[hushcast.Event | None]:
        subscription = await world.do(world.daemon.hold, "t")
        async with hushcast.connect(world.socket) as daemon, daemon.subscribe("t") as messages:
            await world.put("before")
            told = [await messages.next_event(timeout=10)]

            async def lose() -> None:
                subscription.lose(None)

            await world.do(lose)
            told.append(await messages.next_event(timeout=10))
            await world.put("after")
            return [*told, await messages.next_event(timeout=10)]

    before, lost, after = await world.run(program)
    assert isinstance(before, hushcast.Message)
    assert isinstance(lost, hushcast.Lost)
    assert isinstance(after, hushcast.Message)
    assert (before.cursor, lost.count, lost.cursor, after.cursor) == (1, None, 1, 2)


async def test_coverage_is_an_event(world: World) -> None:
    async def program() -> hushcast.Event | None:
        async with (
            hushcast.connect(world.socket) as daemon,
            daemon.subscribe("t", coverage=True) as messages,
        ):
            return await messages.next_event()

    assert isinstance(await world.run(program), hushcast.Coverage)


async def test_a_slow_reader_of_coverage_gets_what_came_before_the_end(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(application_delivery, "COVERAGE_EVERY", 0.01)
    coverage, looked = world.daemon.service.coverage, trio.Event()

    async def look(*asked: Any) -> list[dict[str, Any]]:
        if not (found := await coverage(*asked)):
            looked.set()  # there is nothing to tell of any more
        return found

    monkeypatch.setattr(world.daemon.service, "coverage", look)

    async def sent() -> None:
        (listener,) = (await world.daemon.hold("t")).inbox._listeners
        while listener.position < WINDOW:  # noqa: ASYNC110
            await trio.sleep(0.01)

    async def program() -> list[hushcast.Event]:
        async with (
            hushcast.connect(world.socket) as daemon,
            daemon.subscribe("t", coverage=True) as messages,
        ):
            await world.put(*map(str, range(WINDOW)))
            await world.do(sent)
            await daemon.unsubscribe("t")
            await world.do(looked.wait)
            return [event async for event in messages.events()]

    events = await world.run(program)
    assert sum(isinstance(event, hushcast.Message) for event in events) == WINDOW


async def test_waiting_ends_when_it_was_to_and_loses_nothing(world: World) -> None:
    async def program() -> None:
        async with hushcast.connect(world.socket) as daemon, daemon.subscribe("t") as messages:
            with pytest.raises(hushcast.TimedOut, match=r"0\.05 s"):
                await messages.next_event(0.05)
            await world.put("1")
            event = await messages.next_event(5)
            assert isinstance(event, hushcast.Message)

    await world.run(program)


@pytest.mark.parametrize("seed", range(4))
async def test_through_deaths_of_either_side_at_any_moment(world: World, seed: int) -> None:
    """A program that dies and a daemon that dies: what was acknowledged came once, the rest came."""
    chance = random.Random(seed)

    async def program() -> None:
        sent = [str(number) for number in range(60)]
        await world.put(*sent)
        done: list[str] = []
        handed_out = 0
        while len(done) < len(sent):
            lives = chance.randrange(1, 15)
            with anyio.CancelScope() as scope:
                async with hushcast.connect(world.socket) as daemon, daemon.subscribe("t") as messages:
                    async for message in messages:
                        handed_out += 1
                        if chance.random() < 0.1:
                            await world.stop()
                            await world.start_again()
                        lives -= 1
                        if not lives:
                            scope.cancel()
                            await anyio.sleep(1)
                        assert message.text not in done, "what was acknowledged came again"
                        done.append(message.text)
                        if len(done) == len(sent):
                            break
        assert done == sent, "nothing was lost, and nothing out of order"
        assert handed_out < 2 * len(sent)

    await world.run(program)


async def test_a_subscription_is_opened_before_it_is_read_and_ends_with_its_block(world: World) -> None:
    async def program() -> list[str]:
        async with hushcast.connect(world.socket) as daemon:
            with pytest.raises(hushcast.UsageError, match=r"async with daemon\.subscribe"):
                async for _ in daemon.subscribe("t"):
                    pass
            await world.put("1", "2")
            async with daemon.subscribe("t") as messages:
                assert await take(messages, 1) == ["1"]
            return [message.text async for message in messages]

    assert await world.run(program) == []


async def test_bytes_that_are_no_text_end_no_loop(world: World) -> None:
    async def program() -> list[str]:
        await world.do(world.daemon.put, "t", b"\xff!")
        async with hushcast.connect(world.socket) as daemon, daemon.subscribe("t") as messages:
            return await take(messages, 1)

    assert await world.run(program) == ["\ufffd!"]
