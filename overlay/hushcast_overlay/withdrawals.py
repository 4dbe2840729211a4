"""Withdrawals: tells relays to forget what an ended subscription installed, until all confirmed."""

from __future__ import annotations

import trio

from hushcast_overlay.installing import Installer
from hushcast_overlay.subscription import Planned, SubscriptionRecords
from hushcast_protocol.base.epochs import Calendar
from hushcast_runtime.environment import Environment


class Withdrawals:
    """What one daemon still has to withdraw."""

    def __init__(
        self,
        installer: Installer,
        records: SubscriptionRecords,
        calendar: Calendar,
        env: Environment,
        nursery: trio.Nursery,
    ) -> None:
        self._installer = installer
        self._records = records
        self._calendar = calendar
        self._env = env
        self._nursery = nursery

    def begin(self, planned: Planned) -> None:
        """See to it in the background that an installation is withdrawn.

        Each is repeated at moments of its own: a common one would show whose installations are one daemon's.
        """
        planned.withdrawing = True
        self._nursery.start_soon(self._repeat, planned)

    async def _repeat(self, planned: Planned) -> None:
        while not planned.withdrawn:
            await trio.sleep(self._calendar.lead * self._env.uniform(0.0, 1.5))
            await self.withdraw(planned)

    async def withdraw(self, planned: Planned) -> None:
        """Tell the relays that have not confirmed; forget what all have confirmed, or what has lapsed."""
        installation = planned.installation
        if planned.withdrawal_under_way or planned.withdrawn:
            return
        if self._calendar.lapse(installation.day) > self._env.now() or not self._env.is_certain():
            planned.withdrawal_under_way = True
            try:
                await self._installer.deliver(
                    installation.tree,
                    sorted(planned.missing),
                    installation.withdraw,
                    planned.missing.difference_update,
                )
            finally:
                planned.withdrawal_under_way = False
            if planned.missing:
                await self._records.keep_installation(planned)
                return
        planned.withdrawn = True
        self._records.forget_installation(planned)
