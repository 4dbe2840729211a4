"""The lab's table: what cover is measured by, the bar of each figure, and controls to be found."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from hushcast_protocol.content.parts import MAX_PARTS
from hushcast_protocol.cover.hold_rule import HoldRule
from hushcast_testnet.cover.chance_lines import LineKind
from hushcast_testnet.cover.colluding_relays import (
    CollusionScene,
    fresh_chains,
    kept_chains,
    plain_messages,
)
from hushcast_testnet.cover.counting_second import PorterFault, presence_guessed
from hushcast_testnet.cover.covered_network import CoveredNetwork, PlantedFault
from hushcast_testnet.cover.line_watcher import told_apart
from hushcast_testnet.cover.losing_porter import (
    AuthorHabit,
    PorterLoss,
    dropping_at_once,
    losing_outcome,
    pairs_drawn,
)
from hushcast_testnet.cover.presence_watcher import PresenceScene, presence_outcome
from hushcast_testnet.cover.probing_porter import third_guessed

_LETTERS = 150  # of each author, of the control
_DAEMONS = 4  # of the network whose letters are sealed; its relays and rounds
_RELAYS = 12
_BEFORE, _BUSY, _AFTER = 24, 4, 40  # rounds: until all queues have begun, with messages in them, to the end
_TRIALS = 40
_OF_A_PORTER = 20  # lines that a second compares
_NAMED_BY_LOSSES = 0.05  # share of authors that a porter names which loses letters, at the most
# Shares of rounds that it loses, and messages a day.
_LOSSES = (
    *((0.04, 12), (0.059, 4), (0.059, 12), (0.08, 12), (0.1, 100)),
    *((0.2, 4), (0.2, 12), (0.2, 100), (0.4, 12), (0.6, 12), (0.9, 12), (0.9, 24)),
)
# The same by hours, each with all that a third lets go together: who loses little learns most so.
_BY_HOURS = (0.02, 12), (0.02, 100), (0.04, 12), (0.04, 100)
# What is measured of a porter that knows when messages wait, too: of it a day, and share of rounds lost.
_HABITS = (
    ("12 messages", AuthorHabit(12), 0.2, PorterLoss.LOSES),
    ("12 messages", AuthorHabit(12), 0.04, PorterLoss.HALVES),
    ("100 messages", AuthorHabit(100), 0.2, PorterLoss.LOSES),
    ("64 KiB", AuthorHabit(1, MAX_PARTS), 0.4, PorterLoss.LOSES),
)
_HELD = 12, 100  # messages a day
_FOUND = 0.3  # share of authors of a hundred held messages that are named where thirds drop at once
_WIDTH = 4  # thirds that a porter probes
# Of whom it is asked who was there, by how many messages, the share that may be named, and the candidates of
# 1,000 users that have to be left after twenty.
_THERE = (LineKind.BY_DAY, 20, 0.1, 250.0), (LineKind.ALWAYS, 60, 0.02, 140.0)
_NOT_HELD = 60  # messages
_PLAIN = ("an author", 5), ("a reader", 50)  # and messages a day at others' lines


@dataclass(frozen=True, slots=True)
class CoverFigure:
    """One figure and what it has to be."""

    name: str
    value: float
    least: float
    most: float

    @property
    def holds(self) -> bool:
        """Whether it is within its bar."""
        return self.least <= self.value <= self.most


@dataclass(frozen=True, slots=True)
class _Bar:
    share: float
    named: float
    candidates: float  # of 1,000 users
    named_of_lost: float  # and these where they lose all letters but the author's
    of_lost: float


_BARS = _Bar(0.1, 0.003, 900, 0.01, 800), _Bar(0.2, 0.015, 750, 0.03, 700)


def cover_figures(scene: CollusionScene, progress: Callable[[str], None]) -> list[CoverFigure]:
    """Measure everything; the scene's `share` and `is_third_told` are set here."""
    progress("letters of a network in rounds")
    found = list(_lines(scene.seed))
    progress("seconds that count letters")
    found += _seconds(scene.seed)
    progress("a porter that probes thirds")
    found += _porters(scene.seed)
    progress("a porter that loses letters")
    found += _losing(scene)
    progress("who is there")
    found += _presence(scene)
    progress("relays that collude")
    found += _authors(scene)
    return found


def _lines(seed: int) -> Iterator[CoverFigure]:
    for fault in PlantedFault:
        network, sent = published(0.01 if fault == PlantedFault.NONE else 0.0, seed, fault)
        rounds = range(network.first + _BEFORE, network.first + _BEFORE + _BUSY)
        busy, idle = (daemon.seen_in(rounds) for daemon in network.daemons[:2])
        apart = told_apart(idle, busy)
        if fault == PlantedFault.NONE:
            yield CoverFigure("lines: busy and idle told apart (AUC)", apart, 0.5, 0.55)
            lost = sum(body not in network.dropped for body in sent)
            yield CoverFigure("messages lost, 1 % of letters lost on each stretch", lost, 0, 0)
        else:
            yield CoverFigure(f"control: {fault.value} (AUC)", apart, 0.6, 1)


def published(loss: float, seed: int, fault: PlantedFault) -> tuple[CoveredNetwork, list[bytes]]:
    """Return a network whose first daemon published on ten topics at once, and those messages."""
    network = CoveredNetwork(_DAEMONS, _RELAYS, loss, seed, fault)
    bodies = [b"message %d" % number for number in range(10)]
    for played in range(_BEFORE + _BUSY + _AFTER):
        if played == _BEFORE:
            for body in bodies:
                network.daemons[0].rounds.publish(body, network.round, is_held=False, topic=body.decode())
        network.play_round()
    return network, bodies


def _seconds(seed: int) -> Iterator[CoverFigure]:
    for fault in PorterFault:
        guessed = presence_guessed(_OF_A_PORTER, _TRIALS, fault, seed)
        if fault == PorterFault.NONE:
            yield CoverFigure("second's guess at a porter's daemon (times chance)", guessed, 0, 1.5)
        else:
            yield CoverFigure(f"control: a porter that {fault.value}", guessed, 5, _OF_A_PORTER)


def _porters(seed: int) -> Iterator[CoverFigure]:
    for is_told in (False, True):
        guessed = third_guessed(_WIDTH, _TRIALS, is_told, seed)
        if is_told:
            name = "control: the same where it knows the key in the waybill"
            yield CoverFigure(name, guessed, _WIDTH / 2, _WIDTH)
        else:
            yield CoverFigure("a probing porter's guess at a daemon's third (times chance)", guessed, 0, 1.5)


def _losing(scene: CollusionScene) -> Iterator[CoverFigure]:
    for lost, often in _LOSSES:
        yield _losing_of(scene, lost, AuthorHabit(often), PorterLoss.LOSES)
    for how in PorterLoss:
        if how != PorterLoss.LOSES:
            yield _losing_of(scene, 0.2, AuthorHabit(12), how)
    for lost, often in _BY_HOURS:
        yield _losing_of(scene, lost, AuthorHabit(often), PorterLoss.RELEASES)
    for often in _HELD:
        yield _losing_of(scene, 0.2, AuthorHabit(often, is_held=True), PorterLoss.LOSES)
    held, draws = AuthorHabit(_HELD[-1], is_held=True), scene.draws
    yield _losing_of(scene, 0.2, held, PorterLoss.RELEASES)
    found = losing_outcome(scene.users, 0.2, held, draws, seed=scene.seed, rules=dropping_at_once())
    yield CoverFigure("control: the same where thirds drop messages at once", found.named, _FOUND, 1)
    for what, habit, lost, how in _HABITS:
        found = losing_outcome(scene.users, lost, habit, scene.draws, how, scene.seed)
        name = f"authors of {what} a day named by a porter that {how.value} {lost:.1%} of rounds"
        if habit.parts > 1:
            yield CoverFigure(f"{name}, by {found.needed} rounds", found.named, 0, _NAMED_BY_LOSSES)
        name += " and knows when one waits"
        yield CoverFigure(name, found.named_waiting, 0, _NAMED_BY_LOSSES)
    drawn = pairs_drawn(scene.seed)
    yield CoverFigure("pairs drawn for a porter that loses all letters, in a year", drawn, 1, 2)


def _losing_of(scene: CollusionScene, lost: float, habit: AuthorHabit, how: PorterLoss) -> CoverFigure:
    found = losing_outcome(scene.users, lost, habit, scene.draws, how, scene.seed)
    what = f"{habit.a_day} held messages" if habit.is_held else f"{habit.a_day} messages"
    name = f"authors of {what} a day named by a porter that {how.value} {lost:.1%} of rounds"
    return CoverFigure(f"{name}, by {found.needed} messages", found.named, 0, _NAMED_BY_LOSSES)


def _presence(scene: CollusionScene) -> Iterator[CoverFigure]:
    for author, messages, most, least in _THERE:
        found = presence_outcome(PresenceScene(scene.users, author), messages, scene.draws, scene.seed)
        what = f"authors who are {author.value}"
        yield CoverFigure(f"{what}, named by {messages} messages", found.named_by(messages), 0, most)
        least *= scene.users / 1000
        yield CoverFigure(f"candidates, median, {what}, after 20", found.candidates, least, scene.users)
    plain = PresenceScene(scene.users, LineKind.BY_DAY, HoldRule.NEVER)
    found = presence_outcome(plain, _NOT_HELD, scene.draws, scene.seed)
    name = f"control: authors who are there by day and hold nothing, named by {_NOT_HELD} messages"
    yield CoverFigure(name, found.named_by(_NOT_HELD), 0.3, 1)


def _authors(scene: CollusionScene) -> Iterator[CoverFigure]:
    for bar in _BARS:
        bad = replace(scene, share=bar.share)
        least = bar.candidates * scene.users / 1000
        outcome = kept_chains(bad)
        name = f"{bar.share:.0%} of relays collude"
        yield CoverFigure(f"authors named, {name}", outcome.named, 0, bar.named)
        yield CoverFigure(f"candidates, median, {name}", outcome.candidates, least, scene.users)
        told = kept_chains(replace(bad, is_third_told=True)).candidates
        yield CoverFigure(f"control: candidates, porters told the third, {name}", told, 1, least)
        lost = kept_chains(replace(bad, loses_others=True))
        name += " and lose all letters but the author's"
        least = bar.of_lost * scene.users / 1000
        yield CoverFigure(f"authors named, {name}", lost.named, 0, bar.named_of_lost)
        yield CoverFigure(f"candidates, median, {name}", lost.candidates, least, scene.users)
    name = f"control: authors named in {_LETTERS} letters, second and third drawn anew, 20 %"
    yield CoverFigure(name, fresh_chains(replace(scene, share=0.2), _LETTERS), 0.05, 0.3)
    for who, a_day in _PLAIN:
        plain = plain_messages(scene.users, _TRIALS, a_day, scene.seed)
        yield CoverFigure(f"control: messages until {who} without cover is known", plain, 1, 3)
