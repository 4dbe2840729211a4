"""Withdrawals: has the server forget pseudonyms that nobody wants, each at a moment of its own."""

from __future__ import annotations

from collections.abc import Collection

import trio

from hushcast_central.user.pseudonym import Pseudonym, PseudonymRecords
from hushcast_central.user.token_registration import TokenRegistration
from hushcast_central.user.user_links import UserLinks
from hushcast_protocol.base.epochs import Calendar
from hushcast_protocol.base.errors import PeerError, Refusal
from hushcast_runtime.context import Context
from hushcast_runtime.logs import log
from hushcast_runtime.transports.base import TransportError


class PseudonymWithdrawals:
    """What one daemon still has to have forgotten."""

    def __init__(
        self,
        links: UserLinks,
        registering: TokenRegistration,
        records: PseudonymRecords,
        calendar: Calendar,
        context: Context,
    ) -> None:
        self._links = links
        self._registering = registering
        self._records = records
        self._calendar = calendar
        self._env = context.env
        self._spawn = context.spawn

    async def end(self, pseudonyms: Collection[Pseudonym]) -> None:
        """Note, durably and in one commit, that nobody wants these; have them forgotten in the background."""
        for pseudonym in pseudonyms:
            pseudonym.is_ending = True
        await self._records.keep(*pseudonyms)
        for pseudonym in pseudonyms:
            self.begin(pseudonym)

    def begin(self, pseudonym: Pseudonym) -> None:
        """See to it in the background that a pseudonym is forgotten.

        Each is repeated at moments of its own: a common one would show whose pseudonyms are one daemon's.
        """
        self._spawn(self._repeat, pseudonym)

    async def _repeat(self, pseudonym: Pseudonym) -> None:
        while not pseudonym.is_done:
            await trio.sleep(self._calendar.lead * self._env.uniform(0.0, 1.5))
            await self.withdraw(pseudonym)

    async def withdraw(self, pseudonym: Pseudonym) -> None:
        """Receive by it no more, and have the server forget it; return when it has, or did not answer."""
        if pseudonym.is_under_way or pseudonym.is_done:
            return
        pseudonym.scope.cancel()
        if pseudonym.is_known and not self._has_lapsed(pseudonym):
            pseudonym.is_under_way = True
            try:
                if not await self._withdraw(pseudonym):
                    return
            finally:
                pseudonym.is_under_way = False
        pseudonym.is_done = True
        self._records.forget(pseudonym)

    async def _withdraw(self, pseudonym: Pseudonym) -> bool:
        """Tell whether the server has forgotten it."""
        try:
            async with self._links.open(self._links.proxy(pseudonym.proxy)) as talk:
                await self._registering.withdraw_all(talk, pseudonym)
        except (TransportError, PeerError, Refusal) as error:
            log.info("a pseudonym was not withdrawn yet", reason=str(error))
            return False
        return True

    def _has_lapsed(self, pseudonym: Pseudonym) -> bool:
        return self._env.is_certain() and self._calendar.lapse(pseudonym.day) <= self._env.now()
