"""Credentials of new pseudonyms: each with a key of its own or, as published, one key for a user and day."""

from __future__ import annotations

import trio

from hushcast_central.user.pseudonym import Credentials, PseudonymRecords
from hushcast_protocol.base.crypto.group import Scalar
from hushcast_protocol.base.epochs import Calendar
from hushcast_protocol.central.introduction import PseudonymSecret, PseudonymUse
from hushcast_protocol.central.profile import CentralProfile
from hushcast_runtime.environment import Environment


class CredentialsMaker:
    """Draws the credentials of one daemon's pseudonyms."""

    def __init__(
        self, profile: CentralProfile, calendar: Calendar, records: PseudonymRecords, env: Environment
    ) -> None:
        self._profile = profile
        self._calendar = calendar
        self._records = records
        self._env = env
        self._keys: dict[int, Scalar] = {}
        self._reading = trio.Lock()

    async def load(self) -> None:
        """Read the keys of days."""
        self._keys = await self._records.day_keys()

    async def draw(self, use: PseudonymUse, day: int) -> Credentials:
        """Draw the credentials of a pseudonym of this day; a key that is to last is durable on return."""
        secret = PseudonymSecret.draw(self._env.randomness)
        if self._profile.own_pseudonyms:
            return Credentials(use, day, Scalar.draw(self._env.randomness), secret)
        async with self._reading:
            if day not in self._keys:
                lapsed = self._lapsed()
                for one in lapsed:
                    del self._keys[one]
                self._keys[day] = Scalar.draw(self._env.randomness)
                await self._records.keep_day_keys({day: self._keys[day]}, lapsed)
        return Credentials(use, day, self._keys[day], secret)

    def _lapsed(self) -> list[int]:
        if not self._env.is_certain():
            return []
        return [day for day in self._keys if self._calendar.lapse(day) <= self._env.now()]
