"""Withdrawals go out: other gateways are told of each, again until the daemon has taken it."""

from __future__ import annotations

from collections.abc import Callable

import trio

from hushcast_gateway.purposes.rules import Purposes
from hushcast_gateway.purposes.withdrawals import UnsentWithdrawals
from hushcast_protocol.mqtt.mqtt_messages import MqttMessage
from hushcast_protocol.mqtt.network_publication import NetworkPublication

AGAIN = 60.0  # seconds until what could not be told is tried again


class WithdrawalMessage(NetworkPublication):
    """What tells the other gateways that messages of a topic are withdrawn."""

    __slots__ = ("unsent",)

    def __init__(self, unsent: UnsentWithdrawals) -> None:
        super().__init__(MqttMessage(unsent.topic, b""), None)
        self.unsent = unsent


class WithdrawalSender:
    """What is on its way to the daemon."""

    def __init__(self, purposes: Purposes, publish: Callable[[NetworkPublication], int | None]) -> None:
        """`publish` returns why it is refused, `None` where `answered` hears of it later."""
        self._purposes = purposes
        self._publish = publish
        self._under_way: set[bytes] = set()

    async def run(self) -> None:
        """Tell until cancelled, what an earlier run left, too."""
        while True:
            changed = self._purposes.changed
            for one in self._purposes.withdrawals.unsent():
                if one.lock not in self._under_way and self._publish(WithdrawalMessage(one)) is None:
                    self._under_way.add(one.lock)
            with trio.move_on_after(AGAIN):
                await changed.wait()

    def answered(self, message: WithdrawalMessage, reason: int) -> None:
        """Hear whether the daemon has it."""
        self._under_way.discard(message.unsent.lock)
        if not reason:
            self._purposes.withdrawals.sent(message.unsent)
