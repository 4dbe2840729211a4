"""Withdrawing: other gateways are told what was withdrawn here, again until the daemon has taken it."""

from __future__ import annotations

from collections.abc import Callable

import trio

from hushcast_gateway.purposes.rules import Purposes
from hushcast_gateway.purposes.withdrawals import UnsentWithdrawals
from hushcast_protocol.mqtt.interfaces import DoneCallback

AGAIN = 60.0  # seconds until what could not be told is tried again


class WithdrawalSender:
    """What is on its way to the daemon."""

    def __init__(self, purposes: Purposes, tell: Callable[[UnsentWithdrawals, DoneCallback], None]) -> None:
        self._purposes = purposes
        self._tell = tell
        self._under_way: set[bytes] = set()
        self._news = trio.Event()
        purposes.changes.append(self._look)

    def _look(self) -> None:
        self._news.set()

    async def run(self) -> None:
        """Tell until cancelled, what an earlier run left, too."""
        while True:
            self._news = trio.Event()
            for one in self._purposes.withdrawals.unsent():
                if one.lock not in self._under_way:
                    self._under_way.add(one.lock)
                    self._tell(one, self._done(one))
            with trio.move_on_after(AGAIN):
                await self._news.wait()

    def _done(self, one: UnsentWithdrawals) -> DoneCallback:
        def done(reason: int) -> None:
            self._under_way.discard(one.lock)
            if not reason:
                one.sent()

        return done
