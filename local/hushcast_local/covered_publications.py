"""Covered publications: from the outbox into letters, and out of it with the receipt that a list brought."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable

import trio

from hushcast_local.outbox import Outbox, OutboxPublication, PartCut
from hushcast_local.part_seals import PartSeals
from hushcast_protocol.base.errors import Refusal
from hushcast_protocol.content.messages import Message
from hushcast_protocol.content.parts import parts_of
from hushcast_protocol.content.topics import Topic, write_link
from hushcast_runtime.carriers.cover import Covering
from hushcast_runtime.context import Context
from hushcast_runtime.logs import log

SECRET = 32  # bytes from which the key that signs a message's parts comes
AGAIN = 600.0  # seconds until one that found no room, or is too large for a letter, is looked at again

SealFor = Callable[[OutboxPublication, int], Awaitable[None]]
"""Seals a publication anew for a day, if it can be."""


class _Covered:
    """A publication, as its carrier sees it."""

    def __init__(self, publication: OutboxPublication, seal_for: SealFor, part_seals: PartSeals) -> None:
        self._publication = publication
        self._seal_for = seal_for
        self._part_seals = part_seals
        self.id = publication.id
        self.topic = publication.topic
        self.parts = parts_of(publication.message)

    @property
    def only_day(self) -> int | None:
        sealed_once = self._publication.reseal is None and self.parts == 1
        return self._publication.message.day if sealed_once else None

    async def sealed_for(self, day: int, number: int) -> Message:
        self._publication.attempts += 1
        if self.parts > 1:
            return await self._part_seals.sealed(self._publication, number, day)
        if self._publication.message.day != day:
            await self._seal_for(self._publication, day)
        return self._publication.message


class CoveredPublications:
    """What one daemon publishes under cover."""

    def __init__(
        self, covering: Covering, outbox: Outbox, seal_for: SealFor, part_seals: PartSeals, context: Context
    ) -> None:
        self._covering = covering
        self._outbox = outbox
        self._seal_for = seal_for
        self._part_seals = part_seals
        self._env = context.env
        self._counters = context.counters

    def check_fits(self, message: Message) -> None:
        """Raise `Refusal` where a message cannot go under cover."""
        self._covering.check_fits(message)

    def cut(self, message: Message, topic: Topic, tags: Iterable[str]) -> PartCut | None:
        """Return what a message's parts are sealed with; `None` where it goes as it is."""
        if parts_of(message) == 1:
            return None
        return PartCut(write_link(topic), tuple(tags), self._env.randomness(SECRET))

    def begin(self, publication: OutboxPublication, next_round: bool = False) -> None:
        """Let one in the outbox go; durable with it. Whoever waits hears that there is no receipt yet.

        Raises `Refusal` where too many wait.
        """
        covered = self._covered(publication)
        if covered.parts > 1 and publication.cut is None:
            if (reseal := publication.reseal) is None:
                raise Refusal("it was signed without cover and is too large for a letter")
            publication.cut = PartCut(reseal.link, reseal.tags, self._env.randomness(SECRET))
        self._covering.begin(covered, next_round)
        publication.is_covered = publication.waits = True
        publication.reason = self._covering.outlook(covered)
        self._outbox.note(publication)
        publication.settled.set()

    async def keep(self, publication: OutboxPublication) -> None:
        """Keep it until a list has its receipt, it is given up, or somebody takes it back."""
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
            is_taken = await self._covering.taken(self._covered(publication))
        if is_taken:
            self._outbox.leave(publication)
        elif not publication.scope.cancelled_caught:
            log.warning("no receipt came for a message under cover")
            self._counters.add("publications_given_up")
            publication.reason = "no receipt came under cover in time: publish it again"
            self._outbox.give_up(publication)
        self._covering.forget(publication.id)  # in the same commit

    def _covered(self, publication: OutboxPublication) -> _Covered:
        return _Covered(publication, self._seal_for, self._part_seals)
