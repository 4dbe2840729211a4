"""Covered messages: what a daemon has under cover, from the outbox's word to a third's list; on disk."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress

import msgspec
import trio

from hushcast_overlay.routes.cover.covered_errand import CoveredErrand
from hushcast_overlay.routes.cover.presence_records import PresenceRecords
from hushcast_protocol.base.epochs import Calendar
from hushcast_protocol.base.errors import Refusal
from hushcast_protocol.base.record_kinds import RecordKind, StateOwner
from hushcast_protocol.base.wire import Counter, encode
from hushcast_protocol.content.messages import Message
from hushcast_protocol.content.parts import parts_of
from hushcast_protocol.cover.cover_rules import CoverRules
from hushcast_protocol.cover.letter_contents import kept_number
from hushcast_protocol.cover.letter_rounds import (
    MAX_UNDER_COVER,
    CoveredMessage,
    LetterRounds,
    PlannedLetter,
)
from hushcast_protocol.cover.letters import SealedLetter
from hushcast_protocol.cover.topic_rounds import rounds_taken
from hushcast_protocol.overlay.letter_errands import DropErrand, errand_body
from hushcast_runtime.carriers.cover import CoveredPublication
from hushcast_runtime.context import Context
from hushcast_runtime.storage.changes import Change
from hushcast_runtime.storage.recovery import restore, sized
from hushcast_runtime.storage.store import record_reader
from hushcast_runtime.wording import span

# Rounds from a message's arrival at a host to its owner: in a block within 1.2 of them, handed down behind
# the end of the next, there with the letters of the one after that.
_READ_ROUNDS = 4
_ID = 32  # bytes; of a part its number follows, in one
_KIND = RecordKind(
    "covered-message",
    StateOwner.OVERLAY_DAEMON,
    holds="of each message or part under cover whether it is held, until when it goes, its letter's number",
    lifetime="until a receipt, or until it is given up or taken back; two days at most",
    bound=f"{MAX_UNDER_COVER}",
)


class _StoredMessage(msgspec.Struct, frozen=True, array_like=True):
    is_held: bool
    until: Counter
    last_due: int
    number: bytes
    waits_until: Counter


_decode = record_reader(_StoredMessage, "message under cover")


class _Waiting:
    """A publication that waits for its receipt."""

    def __init__(self, covered: CoveredPublication) -> None:
        self.covered = covered
        self.missing: set[bytes] = set()
        """The keys of what has no receipt."""
        self.is_taken = False
        self.is_over = trio.Event()


class CoveredMessages:
    """The messages of one daemon; implements `Covering`."""

    def __init__(
        self,
        rules: CoverRules,
        calendar: Calendar,
        presence: PresenceRecords,
        context: Context,
    ) -> None:
        self._rules = rules
        self.calendar = calendar
        """The network's epochs and days."""
        self.presence = presence
        """In how many rounds this daemon was there."""
        self.problem: str | None = None
        """Why nothing arrives, for people; `None`: letters go, or the first round has not come."""
        self.begins: int | None = None
        """The first round whose letters are passed; `None` while that is not known."""
        self._env = context.env
        self._store = context.store
        self.rounds = LetterRounds(rules, context.env.randomness)
        self._waiting: dict[bytes, _Waiting] = {}
        self._restored: dict[bytes, CoveredMessage] = {}
        self._errands: dict[bytes, CoveredErrand] = {}

    async def load(self) -> None:
        """Read back what waited before a restart; it goes on once the outbox has it, too."""
        await restore(self._store, _KIND, self._take)

    def _take(self, key: bytes, value: bytes) -> None:
        one = _decode(value)
        number = kept_number(one.number) if one.number else None
        last_due = None if one.last_due < 0 else one.last_due
        self._restored[key if len(key) == _ID + 1 else sized(key, _ID)] = CoveredMessage(
            key, one.is_held, one.until, last_due, number, one.waits_until
        )

    def check_fits(self, message: Message) -> None:
        """Raise `Refusal` where a message is too large for a letter, or too many wait."""
        count = parts_of(message)
        if count == 1:
            errand_body(DropErrand(message))
        self._check_room(count)

    def _check_room(self, count: int) -> None:
        if len(self.rounds.messages) + count > MAX_UNDER_COVER:
            raise Refusal("too many messages wait for a letter: publish later")

    def begin(self, covered: CoveredPublication, next_round: bool) -> None:
        """Let it go, in the next round or as messages are held; durable with the next commit."""
        if covered.id in self._waiting:
            return
        keys = _keys(covered)
        waiting = _Waiting(covered)
        if kept := [self._restored.pop(key) for key in keys if key in self._restored]:
            for message in kept:  # parts that are not there any more have their receipts
                message.topic = covered.topic
                self.rounds.restore(message)
                waiting.missing.add(message.key)
        else:
            self._check_room(len(keys))
            is_held = not next_round and self.presence.holds
            now = self._rules.round_at(self._env.now())
            for key in keys:
                last_due = self.last_due(covered.only_day)
                self._keep(self.rounds.publish(key, now, is_held, last_due, covered.topic))
            waiting.missing.update(keys)
        self._waiting[covered.id] = waiting

    def send(self, errand: CoveredErrand, is_held: bool, day: int | None = None, topic: str = "") -> None:
        """Let an errand go in a letter that is dealt with on a day, or before that ends; it is not kept.

        Those of one `topic` go in rounds of their own, as the messages of one do.

        Raises `Refusal` where there is no room for errands.
        """
        if not self.has_room():
            raise Refusal("too many letters wait")
        now = self._rules.round_at(self._env.now())
        self.rounds.publish(errand.key, now, is_held, self.last_due(day), topic, is_errand=True)
        self._errands[errand.key] = errand

    def has_room(self, held: int = 0, routes: int = 1) -> bool:
        """Tell whether another errand may wait of one of some routes, which has so many.

        They leave half of the room to messages, and routes leave each other equal shares of it.
        """
        most = MAX_UNDER_COVER // 2
        is_full = len(self._errands) >= most or len(self.rounds.messages) >= MAX_UNDER_COVER
        return not is_full and held < max(1, most // max(1, routes))

    def recall(self, errand: bytes) -> None:
        """Let the errand with this key go no more."""
        if self._errands.pop(errand, None) is not None:
            self.rounds.forget(errand)

    def last_due(self, day: int | None) -> int | None:
        """Return the last round whose letters are dropped on a day, or while what is of it is taken."""
        if day is None:
            return None
        lapse = self.calendar.lapse(day)
        due = self._rules.round_at(lapse)
        while self._rules.released_at(due + 1) > lapse:
            due -= 1
        return due

    async def taken(self, covered: CoveredPublication) -> bool:
        """Return whether there is a receipt, once there is one or it was given up."""
        waiting = self._waiting[covered.id]
        await waiting.is_over.wait()
        return waiting.is_taken

    def forget(self, publication: bytes) -> None:
        """Let it go no more; durable with the next commit."""
        if (waiting := self._waiting.pop(publication, None)) is not None:
            for key in waiting.missing:
                self.rounds.forget(key)
            self._store.write_soon(*(Change(_KIND, key, None) for key in waiting.missing))

    def outlook(self, covered: CoveredPublication) -> str:
        """Say for people when it goes, and when its receipt may be there."""
        if self.problem is not None:
            return f"under cover, and nothing arrives now: {self.problem}"
        rules, now = self._rules, self._env.now()
        begin = "within a day"
        if self.begins is not None:
            begin = f"in {span(max(0.0, self.begins * rules.round_seconds - now))}"
        is_begun = self.begins is not None and self.begins <= rules.round_at(now)
        first = "under cover" if is_begun else f"under cover letters begin {begin}; then"
        soon = f"{span((rules.receipt_rounds + 1) * rules.round_seconds)} later"
        keys = set(_keys(covered))
        is_held = any(one.is_held for one in self.rounds.messages if one.key in keys)
        number = self.rounds.rounds_until(keys)
        if covered.parts > 1:
            longest = span((number + (rules.held_rounds if is_held else 0)) * rules.round_seconds)
            return f"{first} its {covered.parts} parts go within {longest}, and the last receipt comes {soon}"
        if is_held:
            longest = span((max(0, number - 1) + rules.held_rounds) * rules.round_seconds)
            return f"{first} it is held for up to {longest}, and its receipt comes up to {soon}"
        when = "in one of the next rounds" if number <= 1 else f"within {span(number * rules.round_seconds)}"
        return f"{first} it goes {when}, and its receipt comes up to {soon}"

    def letters_take(self, letters: int, topics: int) -> float:
        """Return the seconds from now on in which a host's letter, and then others, are dealt with as a rule.

        Each of some topics has as many.
        """
        receipts = 2 * (self._rules.receipt_rounds + 1)
        rounds = rounds_taken(1, topics) + rounds_taken(letters, topics) + receipts
        begin = 0.0 if self.begins is None else self.begins * self._rules.round_seconds - self._env.now()
        return max(0.0, begin) + rounds * self._rules.round_seconds

    def reads_outlook(self, keys: Collection[bytes], letters: int, topic: str, day: int) -> str:
        """Say for people when messages come that a subscription wants.

        `keys` are of its errands that wait, `letters` how many of its topic follow once a host has its
        receipt; they tell of trees of a `day`.
        """
        rules = self._rules
        lasts = span(_READ_ROUNDS * rules.round_seconds)
        now = self._env.now()
        opens = self.calendar.day_start(day) - now
        if not keys and not letters:
            begin = f", as the next day begins in {span(opens)}," if opens > 0 else ""
            return f"under cover{begin} messages come up to {lasts} after they reached their host"
        if self.problem is not None:
            return f"under cover, and nothing arrives now: {self.problem}"
        if self.begins is None:
            return "under cover letters begin within a day; then relays are told"
        rounds = self.rounds.rounds_until(keys) + rules.receipt_rounds + 1
        if letters:
            rounds = self.rounds.rounds_for(topic, letters, rounds) + rules.receipt_rounds + 1
        seconds = max(0.0, self.begins * rules.round_seconds - now) + rounds * rules.round_seconds
        then = f"{span(opens - seconds)} later, as the next day begins," if opens > seconds else "then"
        return (
            f"under cover letters tell relays of it, within {span(seconds)}; "
            f"{then} messages come, up to {lasts} after they reached their host"
        )

    async def bodies(self, planned: Sequence[PlannedLetter], within: float) -> dict[bytes, bytes]:
        """Return the letters' bodies by the messages' keys; what is not sealed `within` seconds waits."""
        found: dict[bytes, bytes] = {}
        with trio.move_on_after(within):
            for letter in planned:
                waiting = None if letter.key is None else self._waiting.get(letter.key[:_ID])
                if letter.key in self._errands:
                    with suppress(Refusal):
                        found[letter.key] = await self._errands[letter.key].body(letter.due)
                if waiting is None or letter.key is None:
                    continue
                number = letter.key[_ID] if len(letter.key) > _ID else 0
                day = self.calendar.day(self._rules.released_at(letter.due))
                try:
                    message = await waiting.covered.sealed_for(day, number)
                    found[letter.key] = errand_body(DropErrand(message))
                except Refusal:
                    self._end(letter.key, is_taken=False)
        return found

    def note_sent(self, planned: PlannedLetter, letter: SealedLetter) -> None:
        """Take notice that a letter was handed in."""
        message = self.rounds.note_sent(planned, letter.receipt)
        if message is not None and not message.is_errand:
            self._keep(message)

    def note_listed(self, numbers: frozenset[bytes]) -> None:
        """Take a third's list; its messages are forgotten when the outbox has noted their receipts."""
        for key in self.rounds.note_listed(numbers):
            if key in self._errands:
                self._errands.pop(key).end(True)
                continue
            waiting = self._waiting.get(key[:_ID])
            if waiting is None or waiting.missing == {key}:
                self._end(key, is_taken=True)
            else:
                waiting.missing.discard(key)
                self._store.write_soon(Change(_KIND, key, None))

    def tell_given_up(self) -> None:
        """Tell of messages that no letter brought there in time."""
        for key in self.rounds.given_up():
            self._end(key, is_taken=False)

    def begin_at(self, begins: int) -> None:
        """Take notice of the first round whose letters are passed: what waits has its time from then."""
        self.begins = begins
        for message in self.rounds.begin_at(begins):
            if not message.is_errand:
                self._keep(message)

    def forget_unknown(self) -> None:
        """Forget what was read back and the outbox does not have."""
        for key in self._restored:
            self._store.write_soon(Change(_KIND, key, None))
        self._restored.clear()

    def _end(self, key: bytes, is_taken: bool) -> None:
        if (errand := self._errands.pop(key, None)) is not None:
            errand.end(is_taken)
        if (waiting := self._waiting.get(key[:_ID])) is not None:
            waiting.is_taken = is_taken
            waiting.is_over.set()

    def _keep(self, message: CoveredMessage) -> None:
        stored = _StoredMessage(
            message.is_held,
            message.until,
            -1 if message.last_due is None else message.last_due,
            message.number or b"",
            message.waits_until,
        )
        self._store.write_soon(Change(_KIND, message.key, encode(stored)))


def _keys(covered: CoveredPublication) -> list[bytes]:
    """Return what its letters are known by: its id, and of each part its number."""
    if covered.parts == 1:
        return [covered.id]
    return [covered.id + bytes([number]) for number in range(covered.parts)]
