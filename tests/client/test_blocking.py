"""The blocking twin: the same names, for scripts."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from concurrent.futures import Future, wait
from pathlib import Path

import pytest
import trio
from world import World

import hushcast

in_thread = pytest.mark.parametrize("backend", ["trio"])


@in_thread
async def test_a_script_publishes_and_reads(world: World) -> None:
    def script() -> list[str]:
        with hushcast.connect_sync(world.socket) as daemon, daemon.subscribe("t") as messages:
            daemon.publish("t", "1")
            daemon.accepted(daemon.enqueue("t", "2"))
            first, second = next(messages), next(messages)  # type: ignore[call-overload]
            assert [held.cursor for held in daemon.subscriptions()] == [2]
            return [first.text, second.text]

    assert await trio.to_thread.run_sync(script) == ["1", "2"]
    assert await world.acknowledged() == 2


@in_thread
async def test_an_error_in_the_loop_leaves_the_message_for_later(world: World) -> None:
    await world.put("1", "2")

    def fails() -> None:
        with hushcast.connect_sync(world.socket) as daemon, daemon.subscribe("t") as messages:
            for message in messages:
                raise ValueError(message.text)

    def works() -> str:
        with hushcast.connect_sync(world.socket) as daemon, daemon.subscribe("t") as messages:
            return next(iter(messages)).text

    with pytest.raises(ValueError, match="1"):
        await trio.to_thread.run_sync(fails)
    assert await trio.to_thread.run_sync(works) == "1"


@in_thread
@pytest.mark.parametrize("goes_on", [True, False])
async def test_a_message_that_comes_in_the_moment_of_an_interrupt_is_not_passed_over(
    world: World, monkeypatch: pytest.MonkeyPatch, goes_on: bool
) -> None:
    await world.put("1", "2", "3")

    def interrupt(future: Future[object], timeout: float | None = None) -> None:
        wait([future])  # it is there, and nobody has it yet
        raise KeyboardInterrupt

    def interrupted(call: Callable[[], object]) -> None:
        with monkeypatch.context() as patched:
            patched.setattr(Future, "result", interrupt)
            with pytest.raises(KeyboardInterrupt):
                call()

    def script() -> list[str]:
        with hushcast.connect_sync(world.socket) as daemon, daemon.subscribe("t") as messages:
            texts = [next(iter(messages)).text]
            interrupted(lambda: next(iter(messages)))
            messages.done()  # with what it got
            if goes_on:
                texts += [event.text for event in (messages.next_event(5) for _ in range(2))]  # type: ignore[union-attr]
        return texts

    assert await trio.to_thread.run_sync(script) == (["1", "2", "3"] if goes_on else ["1"])
    assert await world.acknowledged() == (3 if goes_on else 1)


@in_thread
async def test_it_ends_with_the_subscription_and_tells_events(world: World) -> None:
    await world.put("1")

    def script() -> list[str]:
        with hushcast.connect_sync(world.socket) as daemon, daemon.subscribe("t") as messages:
            found = []
            for event in messages.events():
                found.append(type(event).__name__)
                daemon.unsubscribe("t")
            return found

    assert await trio.to_thread.run_sync(script) == ["Message"]


@in_thread
async def test_no_daemon_is_told(world: World, tmp_path: Path) -> None:
    def script() -> None:
        with hushcast.connect_sync(tmp_path / "nothing"):
            pass

    with pytest.raises(hushcast.NoDaemon):
        await trio.to_thread.run_sync(script)


@pytest.mark.parametrize(
    ("one", "twin"),
    [(hushcast.Daemon, hushcast.BlockingDaemon), (hushcast.Messages, hushcast.BlockingMessages)],
)
def test_both_have_the_same_names_and_arguments(one: type, twin: type) -> None:
    inner = {"ask", "connection", "keep", "leave"}  # between `Daemon` and `Messages`
    ours = [base for base in one.__mro__ if base is not object]
    names = {name for base in ours for name in vars(base) if not name.startswith("_")} - inner
    assert names - {"topic", "nodes"} == {n for n in vars(twin) if not n.startswith("_")} - {"topic", "nodes"}
    for name in names:
        if callable(getattr(one, name, None)):
            assert (
                inspect.signature(getattr(one, name)).parameters.keys()
                == inspect.signature(getattr(twin, name)).parameters.keys()
            ), name
