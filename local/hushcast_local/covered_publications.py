"""Covered publications: from the outbox into letters, and out of it with the receipt that a list brought."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import trio

from hushcast_local.outbox import Outbox, OutboxPublication
from hushcast_protocol.base.errors import Refusal
from hushcast_protocol.content.messages import Message
from hushcast_runtime.carriers.cover import Covering
from hushcast_runtime.context import Context
from hushcast_runtime.logs import log

AGAIN = 600.0  # seconds until one that found no room, or is too large for a letter, is looked at again

SealFor = Callable[[OutboxPublication, int], Awaitable[None]]
"""Seals a publication anew for a day, if it can be."""


class _Covered:
    """A publication, as its carrier sees it."""

    def __init__(self, publication: OutboxPublication, seal_for: SealFor) -> None:
        self._publication = publication
        self._seal_for = seal_for
        self.id = publication.id

    @property
    def only_day(self) -> int | None:
        return self._publication.message.day if self._publication.reseal is None else None

    async def sealed_for(self, day: int) -> Message:
        self._publication.attempts += 1
        if self._publication.message.day != day:
            await self._seal_for(self._publication, day)
        return self._publication.message


class CoveredPublications:
    """What one daemon publishes under cover."""

    def __init__(self, covering: Covering, outbox: Outbox, seal_for: SealFor, context: Context) -> None:
        self._covering = covering
        self._outbox = outbox
        self._seal_for = seal_for
        self._counters = context.counters

    def check_fits(self, message: Message) -> None:
        """Raise `Refusal` where a message cannot go under cover."""
        self._covering.check_fits(message)

    def begin(self, publication: OutboxPublication, next_round: bool = False) -> None:
        """Let one in the outbox go; durable with it. Whoever waits hears that there is no receipt yet.

        Raises `Refusal` where too many wait.
        """
        covered = _Covered(publication, self._seal_for)
        self._covering.begin(covered, next_round)
        publication.is_covered = publication.waits = True
        publication.reason = self._covering.outlook(covered)
        self._outbox.note(publication)
        publication.settled.set()

    async def keep(self, publication: OutboxPublication) -> None:
        """Keep it until a list has its receipt, it is given up, or somebody takes it back."""
        covered = _Covered(publication, self._seal_for)
        is_taken = False
        with publication.scope:
            while not publication.is_covered:  # it waited before a restart, perhaps without cover
                try:
                    self._covering.check_fits(publication.message)
                    self.begin(publication)
                except Refusal as refusal:
                    publication.reason = refusal.reason
                    publication.settled.set()
                    await trio.sleep(AGAIN)
            is_taken = await self._covering.taken(covered)
        if is_taken:
            self._outbox.leave(publication)
        elif not publication.scope.cancelled_caught:
            log.warning("no receipt came for a message under cover")
            self._counters.add("publications_given_up")
            publication.reason = "no receipt came under cover in time: publish it again"
            self._outbox.give_up(publication)
        self._covering.forget(covered)  # in the same commit
