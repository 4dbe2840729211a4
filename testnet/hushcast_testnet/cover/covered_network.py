"""Daemons and relays under cover, round after round: real letters and queues, no network between them.

The way down (blocks through second and porter) is left out: a daemon that is there gets its third's list.
"""

from __future__ import annotations

import functools
import random
from collections import Counter
from dataclasses import dataclass, field
from enum import Enum

from hushcast_protocol.base.addresses import parse_address
from hushcast_protocol.base.crypto.secrets import ParcelKey
from hushcast_protocol.base.roster import Relay
from hushcast_protocol.base.wire import RelayId
from hushcast_protocol.cover.cover_chain import CoverChain
from hushcast_protocol.cover.cover_lists import CoverLists
from hushcast_protocol.cover.cover_rules import CoverRules
from hushcast_protocol.cover.letter_release import HeldBody, LetterRelease
from hushcast_protocol.cover.letter_rounds import LetterRounds
from hushcast_protocol.cover.letter_second import LetterSecond
from hushcast_protocol.cover.letter_third import LetterThird
from hushcast_protocol.cover.letters import (
    LetterRelays,
    Stage,
    empty_letter,
    open_letter,
    seal_letter,
)
from hushcast_protocol.cover.porter_queue import PorterQueue
from hushcast_protocol.cover.receipt_list import ReceiptList, listed_numbers
from hushcast_protocol.cover.waybills import Waybill

_FIRST_ROUND = 480_000
_ROUND_SECONDS = 3_600  # seconds: a held letter is due within 24 rounds, so that a run takes seconds
_LATER = 0.03  # seconds


class PlantedFault(Enum):
    """What a daemon does wrong, for the watcher to find."""

    NONE = "none"
    LATER = "messages 30 ms later than empty letters"
    SHORTER = "empty letters a byte shorter"


@dataclass(frozen=True, slots=True)
class LetterSight:
    """A letter as whoever watches a daemon's line sees it."""

    round: int
    at: float
    """Seconds after the daemon's moment of the round."""
    size: int


@dataclass
class CoveredDaemon:
    """One daemon, its relays, and what was seen at its line."""

    relays: LetterRelays
    rounds: LetterRounds
    queue: PorterQueue
    seen: list[LetterSight] = field(default_factory=list)
    is_there: bool = True

    def seen_in(self, rounds: range) -> list[LetterSight]:
        """Return the letters that were seen at its line in some rounds."""
        return [one for one in self.seen if one.round in rounds]


@dataclass
class _CoveredThird:
    machine: LetterThird
    receipts: ReceiptList
    release: LetterRelease


@dataclass
class _CoveredRelay:
    relay: Relay
    key: ParcelKey
    second: LetterSecond | None = None
    third: _CoveredThird | None = None
    blocks: dict[RelayId, bytes] = field(default_factory=dict)
    """A third's lists, by second."""


class CoveredNetwork:
    """A whole network in one process."""

    def __init__(self, daemons: int, relays: int, loss: float, seed: int, fault: PlantedFault) -> None:
        """`loss` is the share of letters that each stretch of the way loses."""
        self._random = random.Random(seed)  # noqa: S311 - a simulation
        self._draw = self._random.randbytes
        self._loss = loss
        self._fault = fault
        self.rules = CoverRules(self._draw(32), epoch_seconds=_ROUND_SECONDS, round_seconds=_ROUND_SECONDS)
        self._relays = {one.relay.id: one for one in (self._relay() for _ in range(relays))}
        lists = CoverLists.drawn(self.rules, self._draw(32), self._relays)
        self._seconds = sorted(lists.seconds)
        for relay in self._seconds:
            own = self._relays[relay]
            own.second = LetterSecond(self.rules, relay, own.key, lists.thirds, _FIRST_ROUND)
        for relay in lists.thirds:
            own = self._relays[relay]
            own.third = _CoveredThird(
                LetterThird(self.rules, relay, own.key, _FIRST_ROUND),
                ReceiptList(self._draw),
                LetterRelease(self.rules),
            )
        self.first = self.round = _FIRST_ROUND
        self.daemons = [self._daemon(lists) for _ in range(daemons)]
        self.dropped: Counter[bytes] = Counter()
        """Messages that thirds were given to drop, and how often."""
        self.passed: list[Counter[RelayId]] = []
        """Letters that each porter passed, round by round."""

    def _relay(self) -> _CoveredRelay:
        key = ParcelKey.draw(self._draw)
        relay = Relay(self._draw(32), parse_address("127.0.0.1:9"), key.public(), 0)
        return _CoveredRelay(relay, key)

    def _daemon(self, lists: CoverLists) -> CoveredDaemon:
        chain = CoverChain.drawn(self._relays.keys(), lists, 0, 0.0, self._draw)
        porter, second, third = (self._relays[one] for one in (chain.porter, chain.second, chain.third))
        waybill = Waybill.drawn(self.rules, second.relay, chain.third, self._draw)
        assert second.second is not None
        second.second.show(waybill.sealed, self.round, chain.porter)
        relays = LetterRelays(porter.relay, second.relay, third.relay, waybill)
        queue = PorterQueue(self.rules, self.round, self._draw)
        return CoveredDaemon(relays, LetterRounds(self.rules, self._draw), queue)

    def play_round(self) -> None:
        """Let all daemons that are there have a round, and all relays pass what it brought."""
        for daemon in self.daemons:
            if daemon.is_there:
                self._speak(daemon)
        self._pass_by_porters()
        self._pass_by_seconds()
        self._deal_by_thirds()
        self.round += 1

    def _speak(self, daemon: CoveredDaemon) -> None:
        third = self._relays[daemon.relays.third.id]
        if (block := third.blocks.get(daemon.relays.second.id)) is not None:
            daemon.rounds.note_listed(listed_numbers(block))
        daemon.rounds.end_round(self.round - 1, is_handed_in=True, is_line_there=True)
        is_passed = daemon.queue.begins <= self.round
        for planned in daemon.rounds.plan(self.round, is_passed):
            letter = seal_letter(self.rules, daemon.relays, planned.due, planned.key, self._draw)
            if is_passed:
                daemon.rounds.note_sent(planned, letter.receipt)
            self._hand_in(daemon, letter.sealed, planned.key is not None)

    def _hand_in(self, daemon: CoveredDaemon, sealed: bytes, is_message: bool) -> None:
        at = _LATER if self._fault == PlantedFault.LATER and is_message else 0.0
        short = self._fault == PlantedFault.SHORTER and not is_message
        daemon.seen.append(LetterSight(self.round, at, len(sealed) - short))
        if self._is_lost():
            return
        porter = daemon.relays.porter.id
        letter = open_letter(self.rules, Stage.PORTER, porter, self._relays[porter].key, sealed)
        assert letter.onward == daemon.relays.second.id
        daemon.queue.take(letter, self.round)

    def _pass_by_porters(self) -> None:
        passed: Counter[RelayId] = Counter()
        for daemon in self.daemons:
            second = self._relays[daemon.relays.second.id].second
            assert second is not None
            for sealed in daemon.queue.end_round(self.round, functools.partial(self._empty, daemon)):
                passed[daemon.relays.porter.id] += 1
                if not self._is_lost():
                    second.take(sealed, self.round, daemon.relays.porter.id)
        self.passed.append(passed)

    def _pass_by_seconds(self) -> None:
        for relay in self._relays.values():
            if relay.second is not None:
                for onward, letter in relay.second.end_round(self.round, self._draw):
                    third = self._relays[onward].third
                    assert third is not None
                    if not self._is_lost():
                        third.machine.take(letter, self.round, relay.relay.id)

    def _deal_by_thirds(self) -> None:
        for relay in self._relays.values():
            if (third := relay.third) is not None:
                for second, content in third.machine.end_round(self._draw):
                    if content.body is not None:
                        done = content.receipt.done
                        third.release.hold(HeldBody(second, done, content.body, self.round), self._draw)
                    if content.is_listed:
                        third.receipts.note(second, content.receipt.number)
                for one in third.release.let_go(self.round, self._draw):
                    self.dropped[one.body] += 1
                    third.receipts.note_done(one.second, one.done)
                relay.blocks = {one: third.receipts.end_round(one) for one in self._seconds}

    def _empty(self, daemon: CoveredDaemon) -> bytes:
        relays = daemon.relays
        return empty_letter(self.rules, relays.second, relays.waybill.name, self.round, self._draw)

    def _is_lost(self) -> bool:
        return self._random.random() < self._loss
