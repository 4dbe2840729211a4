"""Keeps hidden subscriptions at a daemon, and the list of relays that lose what is sent to them.

A hidden subscription is to a topic that nobody else can guess, so its probes look as any other's. Each lasts
for a time of its own and tells of one tree; then another takes its place. No two begin or end together: who
sees leases come and go at one moment would know that they belong together.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

import trio

from hushcast_directory.server import expulsion_list
from hushcast_directory.server.loss_trials import HiddenSubscription, LossTrials
from hushcast_protocol.authorities.expulsion import EVIDENCE_DAYS, ExpelledRelay, LossTrial, extended, losers
from hushcast_protocol.base.epochs import Calendar
from hushcast_protocol.base.errors import HushcastError
from hushcast_runtime.environment import Environment
from hushcast_runtime.logs import log

LIFE = 8.0, 16.0  # epochs that a hidden subscription lasts, drawn for each: time for a relay's copies to come
GAP = 0.0, 2.0  # epochs until the next takes its place
AGAIN = 0.25  # epochs until a daemon that could not do what was asked is asked again

_TOPIC = 16  # random bytes of a topic's name


class ProbeSubscriber(Protocol):
    """A daemon with subscriptions; all may raise a `HushcastError`."""

    async def subscribe(self, topic: str) -> None:
        """Subscribe; return once messages reach the daemon."""

    async def unsubscribe(self, topic: str) -> None:
        """End a subscription, if there is one."""

    async def losses(self, topic: str) -> LossTrial | None:
        """Return what each relay lost and passed on of a subscription's probes, `None` without one."""


class HiddenSubscriptions:
    """The hidden subscriptions of one authority, and the relays that it expels."""

    def __init__(
        self,
        subscriber: ProbeSubscriber,
        calendar: Calendar,
        env: Environment,
        file: Path,
        subscriptions: int,
    ) -> None:
        """Keep the list in `file`, and the evidence beside it."""
        self._subscriber = subscriber
        self._calendar = calendar
        self._env = env
        self._file = file
        self._count = subscriptions
        self._trials = LossTrials(file.with_name(file.name + ".evidence"))
        self.problem: str | None = None
        """What the daemon said last, where it did not do what was asked."""

    @property
    def trials(self) -> int:
        """How many trials count now."""
        return len(self._trials.trials)

    def expelled(self) -> tuple[ExpelledRelay, ...]:
        """Return the list as it stands in the file; raise `UsageError` if it cannot be used."""
        return expulsion_list.read(self._file)

    async def run(self) -> None:
        """Probe until cancelled; raises `UsageError` if list or evidence cannot be used."""
        expulsion_list.write(self._file, self.expelled())
        self._trials.load()
        places: Iterable[HiddenSubscription | None] = [*self._trials.hidden, *[None] * self._count]
        async with trio.open_nursery() as nursery:
            for hidden in list(places)[: self._count]:
                nursery.start_soon(self._keep, hidden)
            for hidden in self._trials.hidden[self._count :]:
                nursery.start_soon(self._end, hidden)

    async def _keep(self, hidden: HiddenSubscription | None) -> None:
        """Keep one place taken: by a subscription that a restart interrupted, and by one after another."""
        while True:
            if hidden is None:
                await trio.sleep(self._epochs(GAP))
                hidden = await self._begin()
            await self._env.sleep_until(hidden.ends)
            await self._end(hidden)
            hidden = None

    async def _begin(self) -> HiddenSubscription:
        while True:
            hidden = HiddenSubscription(
                self._env.randomness(_TOPIC).hex(), self._env.now() + self._epochs(LIFE)
            )
            # Noted before there is one: whatever happens in between, it is ended.
            self._trials.begin(hidden)
            try:
                await self._subscriber.subscribe(hidden.topic)
            except HushcastError as error:
                await self._trouble(error)
                await self._end(hidden)
                continue
            self.problem = None
            return hidden

    async def _end(self, hidden: HiddenSubscription) -> None:
        trial: LossTrial | None = None
        while True:
            try:  # what is asked again may have been done already, and there is nothing to tell of by then
                trial = await self._subscriber.losses(hidden.topic) or trial
                await self._subscriber.unsubscribe(hidden.topic)
            except HushcastError as error:
                await self._trouble(error)
                continue
            break
        now = self._env.now()
        days = EVIDENCE_DAYS * self._calendar.day_seconds
        self._trials.end(hidden, trial, now, now - days)
        if trial:
            self._judge(now)

    def _judge(self, now: float) -> None:
        trials = self._trials.trials
        met = {relay for trial in trials for relay in trial}
        found = losers(trials)
        before = self.expelled()
        after = extended(before, found, self._calendar.epoch(now), met)
        if after != before:
            expulsion_list.write(self._file, after)
        log.info("relays judged", relays=len(met), count=len(after))

    async def _trouble(self, error: HushcastError) -> None:
        self.problem = str(error)
        log.warning("the daemon did not do what was asked", reason=str(error))
        await trio.sleep(AGAIN * self._calendar.epoch_seconds)

    def _epochs(self, between: tuple[float, float]) -> float:
        return self._env.uniform(*between) * self._calendar.epoch_seconds
