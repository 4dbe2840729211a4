"""Withdrawals: tells relays to forget what an ended subscription installed, until all confirmed."""

from __future__ import annotations

from collections.abc import Iterable

import trio

from hushcast_overlay.installing import Installer
from hushcast_overlay.route import Planned, RouteRecords
from hushcast_protocol.base.epochs import Calendar
from hushcast_runtime.context import Context


class Withdrawals:
    """What one daemon still has to withdraw."""

    def __init__(
        self,
        installer: Installer,
        records: RouteRecords,
        calendar: Calendar,
        context: Context,
    ) -> None:
        self._installer = installer
        self._records = records
        self._calendar = calendar
        self._env = context.env
        self._spawn = context.spawn

    async def end(self, name: bytes, installed: Iterable[Planned]) -> None:
        """Mark what was installed for an interest as being withdrawn, durably, and begin to withdraw it."""
        ended = list(installed)
        await self._records.end(name, ended)
        for planned in ended:
            self.begin(planned)

    def begin(self, planned: Planned) -> None:
        """See to it in the background that an installation is withdrawn.

        Each is repeated at moments of its own: a common one would show whose installations are one daemon's.
        """
        planned.withdrawing = True
        self._spawn(self._repeat, planned)

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
