"""Sockets that no task of their own waits for: each call is made once, at something to read, or the end."""

from __future__ import annotations

from functools import partial

import trio
import trio.testing

from hushcast_runtime.transports.at_once import call_when_readable, close_at_once, read_at_once

Ends = tuple[trio.SocketStream, trio.SocketStream]
MOST = 65536


def pair() -> Ends:
    near, far = trio.socket.socketpair()
    return trio.SocketStream(near), trio.SocketStream(far)


def tasks() -> int:
    root, count = trio.lowlevel.current_root_task(), 0
    waiting = [root]
    while waiting:
        task = waiting.pop()
        assert task is not None
        count += 1
        waiting += [child for nursery in task.child_nurseries for child in nursery.child_tasks]
    return count


async def test_many_are_waited_for_by_one_task() -> None:
    pairs = [pair() for _ in range(50)]
    stirred: list[int] = []
    woken = [trio.Event() for _ in pairs]
    before = tasks()

    def stir(number: int) -> None:
        stirred.append(number)
        woken[number].set()

    for number, (near, _) in enumerate(pairs):
        assert read_at_once(near, MOST) is None
        assert call_when_readable(near, partial(stir, number))
    assert tasks() == before + 1
    await trio.testing.wait_all_tasks_blocked()
    assert stirred == []
    with trio.fail_after(5):
        for number in (7, 3):
            await pairs[number][1].send_all(b"something")
            await woken[number].wait()
    assert stirred == [7, 3]
    await pairs[7][1].send_all(b" more")
    await trio.sleep(0.05)
    assert stirred == [7, 3], "once, until it is asked for again"
    assert read_at_once(pairs[7][0], MOST) == b"something more"
    for near, far in pairs:
        close_at_once(near)
        await far.aclose()


async def test_the_end_is_something_to_read() -> None:
    near, far = pair()
    over = trio.Event()
    assert call_when_readable(near, over.set)
    await far.aclose()
    with trio.fail_after(5):
        await over.wait()
    assert read_at_once(near, MOST) == b""
    assert call_when_readable(near, over.set), "and again, as long as it is not closed"
    close_at_once(near)


async def test_who_closes_it_has_it_called_at_once_and_its_number_is_another_ones() -> None:
    near, far = pair()
    stirred: list[str] = []
    number = near.socket.fileno()
    assert call_when_readable(near, lambda: stirred.append("closed"))
    close_at_once(near)
    close_at_once(near)
    await trio.testing.wait_all_tasks_blocked()
    assert stirred == ["closed"]
    await far.aclose()
    other, there = pair()
    assert number in (other.socket.fileno(), there.socket.fileno())
    if there.socket.fileno() == number:
        other, there = there, other
    woken = trio.Event()
    assert call_when_readable(other, woken.set)
    await there.send_all(b"something")
    with trio.fail_after(5):
        await woken.wait()
    assert stirred == ["closed"]
    close_at_once(other)
    await there.aclose()


def test_each_run_has_sockets_of_its_own() -> None:
    for _ in range(2):
        trio.run(test_the_end_is_something_to_read)


async def test_an_error_of_one_call_costs_no_other() -> None:
    """It ended the daemon."""
    pairs = [pair() for _ in range(2)]
    woken = trio.Event()

    def fail() -> None:
        raise AssertionError("an error of this program")

    for (near, _), call in zip(pairs, (fail, woken.set), strict=True):
        assert call_when_readable(near, call)
    with trio.fail_after(5):
        for _, far in pairs:
            await far.send_all(b"something")
        await woken.wait()
    for near, far in pairs:
        close_at_once(near)
        await far.aclose()
