"""Cover rounds: at its moment of each round a daemon hands four letters to its porter, in use or not.

All that takes longer for a message than for none is done ahead: at its moment a round is one frame of one
size. A round that is missed is not made up for, and nothing goes another way.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import trio

from hushcast_overlay.rosters import RosterKeeper
from hushcast_overlay.routes.cover.covered_messages import CoveredMessages
from hushcast_overlay.routes.cover.covered_reader import CoveredReader
from hushcast_overlay.routes.cover.kept_chain import KeptChain
from hushcast_overlay.routes.cover.porter_link import PorterLink
from hushcast_protocol.base.errors import AuthenticationError, DecodeError, PeerError, Refusal
from hushcast_protocol.base.findings import Finding
from hushcast_protocol.base.roster import Roster
from hushcast_protocol.cover.cover_chain import CoverLoss
from hushcast_protocol.cover.cover_frames import BLOCK_DAYS, CoverBills, CoverBlocks, CoverLetters
from hushcast_protocol.cover.cover_rules import CoverRules
from hushcast_protocol.cover.letter_rounds import PlannedLetter, is_behind
from hushcast_protocol.cover.letters import LetterRelays, SealedLetter, seal_letter
from hushcast_protocol.cover.network_cover import network_cover
from hushcast_protocol.cover.receipt_list import listed_numbers
from hushcast_runtime.context import Context
from hushcast_runtime.logs import log
from hushcast_runtime.transports.base import TransportError
from hushcast_runtime.wording import counted

_SEALED = 0.05  # share of a round before its moment: by then all that may take long has ended
_TARDY = 0.05  # share of a round after its moment: who comes later, as the machine slept, has missed it
# Seconds before its moment at which a daemon wakes. What runs after a long sleep is slower at first, and one
# that publishes has slept less: without this its letters go a millisecond earlier.
_AWAKE = 0.05
_DAY = 86_400  # seconds
_DIRECTORY_SILENT = 2  # epochs without an answer of a directory either: then it is this daemon's own line


@dataclass(eq=False)
class Opening:
    """A link that is being opened."""

    scope: trio.CancelScope = field(default_factory=trio.CancelScope)
    is_over: trio.Event = field(default_factory=trio.Event)
    refusal: str | None = None
    """Why the porter has no place, if it said so."""


Prepared = list[tuple[PlannedLetter, SealedLetter]]
"""Letters, sealed, that wait for their moment."""


class CoverRounds:
    """The rounds of one daemon, while it runs."""

    def __init__(
        self,
        rules: CoverRules,
        chain: KeptChain,
        messages: CoveredMessages,
        reader: CoveredReader,
        link: PorterLink,
        rosters: RosterKeeper,
        context: Context,
    ) -> None:
        self._rules = rules
        self._chain = chain
        self._messages = messages
        self._reader = reader
        self._link = link
        self._rosters = rosters
        self._env = context.env
        self._counters = context.counters
        manner = rosters.manner
        share = context.env.uniform(manner.round_from, manner.round_until)
        self._phase = share * rules.round_seconds  # seconds from a round's begin, for as long as this runs
        self._ahead = manner.link_ahead * rules.round_seconds
        self._opens_within = manner.link_within * rules.round_seconds
        self._billed: int | None = None  # the day on which bills went over this link last
        self._was_there = False  # this daemon's line, in the round before the last
        self._opening: Opening | None = None  # of the link, while it is under way

    async def run(self) -> None:
        """Have a round after the other, until cancelled."""
        last: int | None = None
        self._messages.rounds.judge_by(self._chain.losses)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._reader.run)
            while True:
                number = self._next(last)
                if last is not None:
                    self._counters.add("cover_rounds_missed", max(0, number - last - 1))
                await self._env.sleep_until(self._moment(number) - self._ahead)
                if last is not None:
                    self._messages.forget_unknown()
                    await self._end(last, number)
                try:
                    prepared = await self._prepared(number, nursery)
                    await self._env.sleep_until(self._moment(number) - _AWAKE)
                    await self._env.sleep_until(self._moment(number))
                    await self._hand_in(number, prepared)
                    self._tell(self._problem(number))
                except (Refusal, TransportError, PeerError) as error:
                    self._counters.add("cover_rounds_missed")
                    self._messages.problem = str(error)
                last = number

    @property
    def _loss(self) -> CoverLoss:
        if self._chain.has_no_lists(self._rules):
            return CoverLoss.LISTS
        return CoverLoss.LETTERS if self._messages.rounds.judge.is_alarmed else CoverLoss.NOTHING

    def _problem(self, number: int) -> str | None:
        """Why nothing arrives, and for how long, for people; `None`: messages go."""
        if self._loss == CoverLoss.NOTHING:
            is_late = self._chain.is_away and is_behind(self._chain.held.since, number)
            return "receipts are late, so no message goes until they come" if is_late else None
        days = math.ceil(max(0.0, self._chain.held.chain.leaves_at() - self._env.now()) / _DAY)
        drawn = "another is drawn " + ("in the next round" if days == 0 else f"in {counted(days, 'day')}")
        if self._loss == CoverLoss.LISTS:
            return f"no receipts come, though the porter answers: {drawn}"
        return f"a relay loses more letters than restarts do, so no message goes by it: {drawn}"

    def _tell(self, problem: str | None) -> None:
        if problem is not None and self._messages.problem is None:
            log.warning("letters are lost under cover", reason=problem)
        self._messages.problem = problem

    @property
    def _is_cut_off(self) -> bool:
        """Whether no directory answers either: then it is this daemon's own line."""
        return self._rosters.silence > _DIRECTORY_SILENT * self._rules.epoch_seconds

    async def _end(self, last: int, number: int) -> None:
        """Judge the round before, and have the link opened anew where the porter did not answer in it.

        One without its answer counts if this daemon's line was there before and after it: a directory is
        asked, whatever waits. Else each short absence of a line, and each wake, would be the porter's loss.
        """
        is_handed_in = self._chain.handed_in == last
        is_answered = is_handed_in and self._chain.held.since >= last
        if is_handed_in and not is_answered:
            self._chain.note_away()
            await self._link.close()
        is_next = number == last + 1
        is_there = is_answered
        if is_next and not is_answered and self._chain.is_away:
            with trio.move_on_after(self._left(number) / 2):
                is_there = await self._rosters.is_answered()
        if is_handed_in or (self._chain.is_away and self._chain.is_passed(last)):
            is_sure = is_answered or (self._was_there and is_there)
            self._messages.rounds.end_round(last, is_handed_in, is_sure)
            self._chain.note_judged()
        self._was_there = is_next and is_there

    def _moment(self, number: int) -> float:
        return number * self._rules.round_seconds + self._phase

    def _next(self, last: int | None) -> int:
        """Return the next round whose preparation is not over, and that had no letters yet."""
        begun = self._rules.round_at(self._env.now() - self._phase + self._ahead)
        # Those that are to come were noted by a clock that was wrong.
        past = [one for one in (last, self._chain.handed_in) if one is not None and one <= begun + 1]
        return max([begun, *past]) + 1

    def _left(self, number: int) -> float:
        """Return the seconds until all has to be sealed for a round."""
        moment = self._moment(number) - _SEALED * self._rules.round_seconds
        return max(0.0, moment - self._env.now())

    async def _prepared(self, number: int, nursery: trio.Nursery) -> Prepared:
        """Open the link where there is none, and seal the letters of a round; raise why none can go."""
        self._messages.tell_given_up()
        relays = await self._relays()
        if not self._link.is_open:
            await self._open_by(number, relays, nursery)
        planned = self._messages.rounds.plan(number, self._chain.is_passed(number), self._chain.held.since)
        self._messages.tell_given_up()
        bodies = await self._messages.bodies(planned, self._left(number))
        return [self._sealed(relays, one, bodies) for one in planned]

    def _sealed(
        self, relays: LetterRelays, planned: PlannedLetter, bodies: dict[bytes, bytes]
    ) -> tuple[PlannedLetter, SealedLetter]:
        body = None if planned.key is None else bodies.get(planned.key)
        if body is None:  # without a message, or it was not sealed in time
            planned = PlannedLetter(planned.due, None)
        return planned, seal_letter(self._rules, relays, planned.due, body, self._env.randomness)

    async def _relays(self) -> LetterRelays:
        roster = self._roster()
        cover = network_cover(roster)
        if cover.rules != self._rules:
            raise Refusal("the network's cover has other rounds or lists now: start the daemon again")
        if self._is_cut_off:
            self._chain.forgive()
        if await self._chain.follow(cover, roster, self._loss):
            self._messages.rounds.begin_anew(self._chain.losses)
            if self._opening is not None:
                self._opening.scope.cancel()  # it is another porter's
                self._opening = None
            await self._link.close()
        await self._reader.follow(cover, roster, self._chain.held.chain)
        return self._chain.relays(roster)

    def _roster(self) -> Roster:
        """Return the roster of now: in the coming one a quarter may begin that has not begun."""
        calendar, now = self._rosters.calendar, self._env.now()
        roster = self._rosters.of_day(calendar.day(now))
        if roster is None:
            raise Refusal("no roster yet")
        return roster

    async def _open_by(self, number: int, relays: LetterRelays, nursery: trio.Nursery) -> None:
        """Have the link open in time for a round; raise `Refusal` where it is not."""
        opening = self._opening
        if opening is None:
            opening = self._opening = Opening()
            nursery.start_soon(self._open, opening, relays, nursery)
        with trio.move_on_after(self._left(number)):
            await opening.is_over.wait()
        if not self._link.is_open:
            self._chain.note_away()
            raise Refusal(opening.refusal or "the porter does not answer")

    async def _open(self, opening: Opening, relays: LetterRelays, nursery: trio.Nursery) -> None:
        """Open the link, also if that takes longer than a round leaves: then the next one has it."""
        try:
            with opening.scope:
                opening.scope.deadline = trio.current_time() + self._opens_within
                begins = await self._link.open(relays, self._chain.held.place, self._chain.begins is None)
                number = self._rules.round_at(self._env.now() - self._phase) + 1  # of the letters that come
                if begins > number + self._rules.held_rounds:
                    opening.refusal = "the porter puts letters off"
                    await self._link.close()
                    return
                self._messages.begin_at(self._chain.note_placed(begins, number, self._rules))
                self._billed = None
                self._reader.routes.stir()  # now it is known when letters begin
                nursery.start_soon(self._link.listen, self._take)
        except Refusal as refusal:
            opening.refusal = f"the porter refuses this daemon: {refusal}"
        except (TransportError, PeerError):
            pass
        finally:
            if self._opening is opening:
                self._opening = None
            opening.is_over.set()

    async def _hand_in(self, number: int, prepared: Prepared) -> None:
        if self._env.now() - self._moment(number) > _TARDY * self._rules.round_seconds:
            raise Refusal("the machine slept, or was too busy")
        if not self._link.is_open:
            self._chain.note_away()
            raise Refusal("the link to the porter ended")
        oldest = number - self._rules.rounds_in(BLOCK_DAYS)
        since = min(max(self._chain.held.since, oldest), number)
        if since == oldest:
            self._messages.rounds.judge.forget_before(oldest)
        # First this: nothing that depends on what is in the letters stands between the moment and them.
        letters = CoverLetters(number, since, tuple(letter.sealed for _, letter in prepared))
        with trio.move_on_after(self._rules.round_seconds - self._ahead) as patience:
            await self._link.hand_in(letters, self._bills())
        if patience.cancelled_caught:  # it does not read
            self._chain.note_away()
            await self._link.close()
            raise Refusal("the porter does not answer")
        if self._chain.is_passed(number):
            for planned, letter in prepared:
                self._messages.note_sent(planned, letter)
        self._counters.add("cover_rounds")
        self._messages.presence.note(self._rosters.calendar.day(self._env.now()))
        self._chain.note_handed_in(number)

    def _bills(self) -> CoverBills | None:
        """Return the bills where they are due: with the first letters of a link, and of each day."""
        day = self._rosters.calendar.day(self._env.now())
        if self._billed == day:
            return None
        self._billed = day
        return self._reader.bills

    def _take(self, blocks: CoverBlocks) -> None:
        """Take the blocks of a round; raise `DecodeError` for what was not asked for."""
        now = self._rules.round_at(self._env.now())
        if not self._chain.held.since <= blocks.round <= now:
            raise DecodeError("a porter says the blocks of a round that nobody asked for")
        self._chain.note_read(blocks.round)
        self._reader.take(blocks)
        try:
            listed = self._chain.held.waybill.opened_list(blocks.listed, blocks.blocks[-1])
        except AuthenticationError:
            return  # no list came in that round
        self._chain.note_listed()
        self._messages.note_listed(listed_numbers(listed))

    def examine(self) -> list[Finding]:
        """Return what a doctor has to say of who reads with this daemon."""
        return self._messages.presence.examine()

    def describe(self) -> dict[str, Any]:
        """Return how it goes, as `hushcast status` shows it; nothing names a relay."""
        now, rules = self._env.now(), self._rules
        waiting = [one for one in self._messages.rounds.messages if not one.is_errand]
        begins = self._chain.begins
        is_away = self._chain.is_away or self._loss == CoverLoss.LISTS
        first = min((one.until for one in waiting), default=None)
        return {
            "round_seconds": rules.round_seconds,
            "porter": "away" if is_away else "not asked" if begins is None else "there",
            "problem": self._messages.problem,
            "begins_in": None if begins is None else max(0, round(begins * rules.round_seconds - now)),
            "rounds": self._counters["cover_rounds"],
            "missed": self._counters["cover_rounds_missed"],
            "waiting": len(waiting),
            "held": sum(one.is_held for one in waiting),
            "given_up_in": None if first is None else max(0, round(rules.end_of(first) - now)),
            "lanes_silent": self._reader.describe(),
            "holds": self._messages.presence.holds,
            "presence": self._messages.presence.told,
        }
