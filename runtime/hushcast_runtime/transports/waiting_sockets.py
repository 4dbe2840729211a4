"""Sockets that are waited for without a task each: one of a run's tasks waits for all of them."""

from __future__ import annotations

import select
from collections.abc import Callable

import trio

from hushcast_runtime.transports.next_turn import CALLS_AT_ONCE, in_next_turn

_HAS_EPOLL = hasattr(select, "epoll")  # else each has its task


class _WaitingSockets:
    """The sockets of one run of trio that somebody waits for."""

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self.calls: dict[int, Callable[[], None]] = {}
        trio.lowlevel.spawn_system_task(self._run)

    def add(self, number: int, call: Callable[[], None]) -> None:
        try:  # the kernel forgets those that were closed
            self._epoll.modify(number, select.EPOLLIN | select.EPOLLONESHOT)
        except FileNotFoundError:
            self._epoll.register(number, select.EPOLLIN | select.EPOLLONESHOT)
        self.calls[number] = call

    async def _run(self) -> None:
        with self._epoll:
            while True:
                await trio.lowlevel.wait_readable(self._epoll.fileno())
                for number, _ in self._epoll.poll(0, CALLS_AT_ONCE):
                    if (call := self.calls.pop(number, None)) is not None:
                        in_next_turn(call)  # what it raises would end the run


_WAITING: trio.lowlevel.RunVar[_WaitingSockets] = trio.lowlevel.RunVar("waiting sockets")


def call_when_readable(socket: trio.socket.SocketType, call: Callable[[], None]) -> bool:
    """Have `call`, which takes a millisecond at most, called once a socket can be read; log what it raises.

    Returns whether it will be.
    """
    if not _HAS_EPOLL:
        return False
    try:
        waiting = _WAITING.get()
    except LookupError:
        waiting = _WaitingSockets()
        _WAITING.set(waiting)
    waiting.add(socket.fileno(), call)
    return True


def closes(socket: trio.socket.SocketType) -> Callable[[], None] | None:
    """Forget a socket that is about to be closed; return what was to be called for it."""
    try:
        return _WAITING.get().calls.pop(socket.fileno(), None)
    except (LookupError, RuntimeError):  # nobody ever waited, or the run is over
        return None
