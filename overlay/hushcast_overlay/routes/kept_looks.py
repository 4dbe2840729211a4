"""Kept looks: what a publisher asks keepers to find out whether they have what it dropped.

Three keepers drawn anew, each over a fresh circuit, for all of an epoch or of the day: the question names no
message. Where one of them alone does not show it, two more may outvote that one. It is asked for every
publication, and for every probe, whatever became of it. On a day that is cut an authority is asked first,
once, who keeps in the topic's shard; a look that comes before the answer is left to the next one.
"""

from __future__ import annotations

from collections.abc import Collection

import trio

from hushcast_overlay.keepers.candidate_lists import CandidateLists
from hushcast_overlay.keepers.keeper_questions import KeeperQuestions, Places
from hushcast_overlay.routes.dropper import Dropper
from hushcast_overlay.shards.shard_keeper import FAILURES
from hushcast_overlay.shards.shards import Shards
from hushcast_protocol.content.messages import Message
from hushcast_protocol.overlay.keeper_frames import AskKept
from hushcast_protocol.overlay.kept_answers import last_epoch, windows
from hushcast_runtime.carriers.carrier import Handover
from hushcast_runtime.carriers.looks import Looked
from hushcast_runtime.context import Context
from hushcast_runtime.logs import log

MAX_PRETENDED = 256  # probes that wait for their look; more are not looked for


class KeptLooks:
    """What one daemon asks; implements `Looking`."""

    def __init__(
        self,
        lists: CandidateLists,
        dropper: Dropper,
        questions: KeeperQuestions,
        shards: Shards,
        context: Context,
    ) -> None:
        self._lists = lists
        self._dropper = dropper
        self._questions = questions
        self._shards = shards
        self._env = context.env
        self._counters = context.counters
        self._spawn = context.spawn
        self._pretended = 0
        # Days and trunks whose keepers are asked for.
        self._awaited: frozenset[tuple[int, bytes]] = frozenset()

    def can_look(self, message: Message, width: int) -> bool:
        """Tell whether the keepers can be known, and keep it all: of a wide topic each shard has its own."""
        trunk = message.tokens[0]
        whole = len(self._shards.copies(message.day, trunk, width)) == 1
        return whole and self._lists.can_place(message.day, trunk)

    def prepare(self, message: Message) -> None:
        """Find out who the keepers are before the earliest look, where nobody has told yet.

        At a moment of its own: an authority that is asked right before a look would tie the two.
        """
        wanted = message.day, message.tokens[0]
        if self._shards.is_cut(message.day) and wanted not in self._awaited:
            self._awaited |= {wanted}
            self._spawn(self._fetch_ahead, *wanted)

    async def _fetch_ahead(self, day: int, trunk: bytes) -> None:
        await trio.sleep(self._env.uniform(0.0, self._shards.manner.earliest_look))
        try:
            await self._lists.fetch_published(day, trunk)
        except FAILURES as error:
            log.info("it is not known whom a look asks", reason=str(error))
        finally:
            self._awaited -= {(day, trunk)}

    def _keepers(self, message: Message) -> Places | None:
        """Return the keepers, and where; `None` where nobody told yet, and then the next look knows it.

        A look that fetched the list itself would tie the two, and an authority need only fail once for that.
        """
        places = self._lists.published_places(message.day, message.tokens[0])
        if places is None:
            self.prepare(message)
        return places

    async def look(self, message: Message, since: float) -> Looked:
        """Ask keepers for what came in the epoch, or on the day if it was dropped in another one.

        It is there where all show it who answered, or all of five but one. Who does not, and was away in this
        epoch, or in the day's last if that is over, is passed over as one that is silent.
        """
        calendar, trunk = self._shards.calendar, message.tokens[0]
        epoch = calendar.epoch(self._env.now())
        question = AskKept(message.day, trunk, epoch if calendar.epoch(since) == epoch else None)
        judged = epoch if epoch in windows(message.day) else last_epoch(message.day)
        places = self._keepers(message) or {}
        left = self._env.sample(list(places), len(places))
        manner = self._shards.manner
        asked, more = manner.keepers_asked, manner.keepers_asked_more
        shown = missed = 0
        while left and shown + missed < asked + (more if missed == 1 else 0):
            self._counters.add("keepers_looked_at")
            keeper = left.pop()
            for kept in (await self._questions.ids({keeper: places[keeper]}, question)).values():
                shown += message.id in kept.ids
                missed += kept.lacks(message.id, judged)
        return Looked(shown, missed, shown > 0 == missed or shown - missed >= asked)

    async def drop_anew(
        self, message: Message, handover: Handover, avoided: Collection[bytes], is_shown: bool
    ) -> None:
        """Drop it at as many origins as at first, others where there are any; raise `Refusal`.

        At more where nobody shows it. Where somebody does, others may lie, and hosts get it anyway.
        """
        times = 1 if is_shown else self._shards.manner.times_anew
        await self._dropper.drop_anew(message, handover, avoided, times)

    def pretend(self, message: Message, width: int) -> None:
        """Look as for a publication after a probe: else keepers could tell the two apart."""
        if self._pretended < MAX_PRETENDED and self.can_look(message, width):
            self._pretended += 1
            self.prepare(message)
            self._spawn(self._pretend, message, self._env.now())

    async def _pretend(self, message: Message, since: float) -> None:
        manner, lapse = self._shards.manner, self._shards.calendar.lapse(message.day)
        places: Places | None = None
        while places is None and self._env.now() < lapse:  # as long as a publication waits for its first look
            await trio.sleep(self._env.uniform(manner.earliest_look, manner.latest_look))
            places = self._keepers(message)
        self._pretended -= 1
        await self.look(message, since)
