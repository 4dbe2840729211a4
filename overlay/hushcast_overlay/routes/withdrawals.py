"""Withdrawals: tells relays to forget what an ended subscription installed, until all confirmed."""

from __future__ import annotations

from collections.abc import Iterable

import trio

from hushcast_overlay.routes.installer import Installer
from hushcast_overlay.routes.owned_boxes import OwnedBoxes
from hushcast_overlay.routes.route import TreeInstallation, Withdrawal
from hushcast_overlay.routes.route_box import RouteBox
from hushcast_overlay.routes.route_records import RouteRecords
from hushcast_overlay.shards.shards import Shards
from hushcast_protocol.base.errors import PeerError, Refusal
from hushcast_runtime.context import Context
from hushcast_runtime.logs import log
from hushcast_runtime.transports.base import TransportError


class LeaseWithdrawals:
    """What one daemon still has to withdraw."""

    def __init__(
        self,
        installer: Installer,
        boxes: OwnedBoxes,
        records: RouteRecords,
        shards: Shards,
        context: Context,
    ) -> None:
        self._installer = installer
        self._boxes = boxes
        self._records = records
        self._shards = shards
        self._calendar = shards.calendar
        self._env = context.env
        self._spawn = context.spawn

    async def end(
        self, name: bytes, box: RouteBox | None, installed: Iterable[TreeInstallation]
    ) -> list[Withdrawal]:
        """Turn what was installed for an interest into withdrawals, durably; return them, begun."""
        ended = await self._records.end(name, box, installed)
        for withdrawal in ended:
            self.begin(withdrawal)
        return ended

    def begin(self, withdrawal: Withdrawal) -> None:
        """See to it in the background that an installation is withdrawn.

        Each is repeated at moments of its own: a common one would show whose installations are one daemon's.
        """
        self._spawn(self._repeat, withdrawal)

    async def _repeat(self, withdrawal: Withdrawal) -> None:
        while not withdrawal.is_done:
            await trio.sleep(self._calendar.lead * self._env.uniform(0.0, 1.5))
            await self.withdraw(withdrawal)

    async def withdraw(self, withdrawal: Withdrawal) -> None:
        """Tell the relays that have not confirmed; forget what all have confirmed, or what has lapsed."""
        installation = withdrawal.installation
        if withdrawal.is_under_way or withdrawal.is_done:
            return
        if self._calendar.lapse(installation.day) > self._env.now() or not self._env.is_certain():
            withdrawal.is_under_way = True
            try:
                await self._deliver(withdrawal)
            finally:
                withdrawal.is_under_way = False
            if withdrawal.left:
                await self._records.keep_withdrawal(withdrawal)
                return
        withdrawal.is_done = True
        self._records.forget(withdrawal)

    async def _deliver(self, withdrawal: Withdrawal) -> None:
        installation = withdrawal.installation
        try:
            near = await self._shards.find(installation.day, installation.trunk, installation.copy)
        except (TransportError, PeerError, Refusal) as error:
            log.info("who is to forget an installation is not known now", reason=str(error))
            return
        await self._installer.deliver(
            installation.tree,
            near,
            sorted(withdrawal.left),
            installation.withdraw,
            withdrawal.left.difference_update,
            self._boxes.link(installation.root),
        )
