"""Those who watch lanes: hosts that withhold or wait for a word, seconds that look when bills are shown."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from enum import Enum
from itertools import islice

from hushcast_protocol.cover.cover_rules import RELEASE_ROUNDS, CoverRules
from hushcast_protocol.cover.lane_papers import LANE_PAPER
from hushcast_protocol.cover.lane_porter import LanePorter
from hushcast_protocol.cover.lane_seconds import LANES
from hushcast_protocol.cover.letter_contents import NUMBER, LetterReceipt
from hushcast_protocol.cover.letter_rounds import LetterRounds
from hushcast_testnet.cover.best_fit import guessed_first
from hushcast_testnet.cover.chance_lines import LineKind, drawn_line
from hushcast_testnet.cover.counting_second import presence_line
from hushcast_testnet.cover.laned_network import LanedDaemon, LanedNetwork, LaneFault

_ROUNDS = 24  # of a network whose host withholds
_WITHHELD = 0.5  # of rounds
_NAMED = 0.9  # probability that a reader is named with
_DAYS = 30
_HOURS = 24
_RULES = CoverRules(bytes(32), 3600)
_TURN_DAYS = 12  # the first is before a quarter begins; hardly anybody is away for so long


class ErrandRule(Enum):
    """How often an owner says to its host that its lane goes on: days."""

    DAILY = 1
    WEEKLY = 7


def owner_guessed(daemons: int, trials: int, fault: LaneFault, seed: int = 1) -> float:
    """Return how many times as often as by chance a host finds the owner of a box by rounds it withholds.

    It has all lines. 1 is chance, `daemons` always.
    """
    found = 0.0
    for trial in range(trials):
        chance = random.Random(seed + trial)  # noqa: S311 - a simulation
        network = LanedNetwork(daemons, seed + trial, fault)
        lane = network.daemons[0].errands[0].lane
        withheld = [chance.random() < _WITHHELD for _ in range(_ROUNDS)]
        for is_withheld in withheld:
            network.play_round(frozenset({lane}) if is_withheld else frozenset())
        found += guessed_first([_agreement(daemon, withheld) for daemon in network.daemons])
    return found / trials * daemons


def _agreement(daemon: LanedDaemon, withheld: list[bool]) -> int:
    full = max(daemon.line)
    return sum((seen < full) == is_withheld for seen, is_withheld in zip(daemon.line, withheld, strict=True))


def empty_told_apart(fault: LaneFault, seed: int = 1) -> float:
    """Return how well a second tells an empty box from a full one by the size of a block (AUC)."""
    network = LanedNetwork(2, seed, fault)
    box = network.daemons[0].boxes[0]
    for number in range(_ROUNDS):
        body = b"item %d" % number
        box.put(body, (len(body),), network.round)
        network.play_round()
    full, empty = (network.sizes[daemon.errands[0].lane] for daemon in network.daemons)
    area = sum((a < b) + (a == b) / 2 for a in full for b in empty) / (len(full) * len(empty))
    return max(area, 1 - area)


def block_matched(daemons: int, fault: LaneFault, seed: int = 1) -> float:
    """Return how many times as often as by chance host and porters together find the owner of a lane."""
    network = LanedNetwork(daemons, seed, fault)
    for _ in range(_ROUNDS):
        network.play_round()
    found = 0.0
    for owner in network.daemons:
        lane = owner.errands[0].lane
        reached = [one for one in network.daemons if network.shares_blocks(lane, one)]
        found += (owner in reached) / len(reached) if reached else 1 / daemons
    return found


def items_lost(lost: float, a_day: int, seed: int = 1) -> float:
    """Return the share of items that a reader lacks after a week whose porter loses a share of blocks."""
    network = LanedNetwork(1, seed)
    (daemon,) = network.daemons
    daemon.loses = lost
    bodies = []
    for hour in range(9 * _HOURS):
        if hour < 2 * _HOURS:
            for number in range(a_day // _HOURS):
                bodies.append(b"%d %d" % (hour, number) + bytes(1200))
                daemon.boxes[0].put(bodies[-1], (len(bodies[-1]),), network.round)
        network.play_round()
    return sum(body not in daemon.heard for body in bodies) / len(bodies)


def blocks_until_asked(users: int, lost: float, seed: int = 1) -> int:
    """Return after how many blocks host and porter name an owner among `users` that asks for what it lacks.

    The porter loses a share of each daemon's blocks, others for each, and the host is told which lack: a
    control, as no lane has such a word.
    """
    chance = random.Random(seed)  # noqa: S311 - a simulation
    wanted, told, blocks = math.log((users - 1) * _NAMED / (1 - _NAMED)), 0.0, 0
    while told < wanted:
        blocks += 1
        told -= math.log(lost if chance.random() < lost else 1 - lost)
    return blocks


def shower_guessed(daemons: int, trials: int, only_there: bool, seed: int = 1) -> float:
    """Return how many times as often as by chance a second finds whose bill a porter shows it, by when.

    With `only_there` a porter shows bills while the daemon is there alone: a control.
    """
    chance = random.Random(seed)  # noqa: S311 - a simulation
    rules = CoverRules(bytes(32), 3600, round_seconds=3600)
    found = 0.0
    for _ in range(trials):
        lines = [presence_line(chance) for _ in range(daemons)]
        bills = [(chance.randbytes(32), chance.randbytes(LANE_PAPER)) for _ in range(LANES)]
        porter = LanePorter(rules, bills, chance.randbytes)
        rounds = [now for now in range(len(lines[0])) if bills[0] in porter.shown(now)]
        seen = [bool(lines[0][now]) or not only_there for now in rounds]
        fits = [
            sum(line[now] == is_seen for now, is_seen in zip(rounds, seen, strict=True)) for line in lines
        ]
        found += guessed_first(fits)
    return found / trials * daemons


def owner_told_of(daemons: int, trials: int, kind: LineKind, seed: int = 1) -> float:
    """Return how many times as often as by chance a host finds a box's owner by when it hears of its lane.

    Daemons have their hosts told when a quarter begins, or once they are there, in held letters. The host has
    all lines, of daemons of one kind.
    """
    chance = random.Random(seed)  # noqa: S311 - a simulation
    found = 0.0
    for _ in range(trials):
        lines = [drawn_line(chance, _TURN_DAYS, kind, stays=True) for _ in range(daemons)]
        there = [_first_rounds(line) for line in lines]
        heard = _told_in(there[0], chance)
        found += guessed_first([_tellings(rounds, heard) for rounds in there])
    return found / trials * daemons


def _first_rounds(line: int) -> list[int]:
    """Return the rounds of a quarter in which letters to the hosts of three lanes are handed in."""
    begin, end = _RULES.rounds_in(1), _RULES.rounds_in(_TURN_DAYS)
    return list(islice((now for now in range(begin, end) if line >> now & 1), LANES))


def _told_in(there: list[int], chance: random.Random) -> int:
    """Return the round in which a daemon's host hears of its lane, one of three, by the daemon's rounds."""
    rounds, lane = LetterRounds(_RULES, chance.randbytes), bytes([chance.randrange(LANES)])
    for number in range(LANES):
        rounds.publish(bytes([number]), there[0], is_held=True, is_errand=True)
    for now in there:
        for planned in rounds.plan(now):
            if planned.key == lane:
                return _RULES.released_in(planned.due)
            rounds.note_sent(
                planned, LetterReceipt(chance.randbytes(NUMBER), False, chance.randbytes(NUMBER))
            )
    raise AssertionError("a held letter goes in each round")


def _tellings(there: list[int], heard: int) -> int:
    """Return in how many ways a host hears in a round of whose letters were handed in then."""
    dues = range(heard - RELEASE_ROUNDS + 1, heard + 1)
    return sum(0 < due - now <= _RULES.held_rounds for due in dues for now in there)


def owner_waited_for(
    daemons: int, trials: int, rule: ErrandRule, seed: int = 1, are_always_there: bool = False
) -> float:
    """Return how many times as often as by chance a host finds a box's owner that tells it again and again.

    The letter of a span goes at a round drawn anew in what is left of it until the daemon is there, and is
    held for up to a day. The host has all lines of thirty days.
    """
    chance = random.Random(seed)  # noqa: S311 - a simulation
    found = 0.0
    for _ in range(trials):
        lines = [presence_line(chance, are_always_there) for _ in range(daemons)]
        heard = _heard(lines[0], rule, chance)
        found += guessed_first([_likely(line, heard, rule) for line in lines])
    return found / trials * daemons


def _spans(rule: ErrandRule) -> Iterator[tuple[int, int]]:
    span = rule.value * _HOURS
    for begin in range(0, _DAYS * _HOURS - span + 1, span):
        yield begin, begin + span


def _heard(line: list[int], rule: ErrandRule, chance: random.Random) -> list[int | None]:
    """Return the hour in which the host hears of each span, if it does."""
    heard: list[int | None] = []
    for begin, end in _spans(rule):
        weights = _handed_in(line[begin:end])
        (at,) = chance.choices([*range(begin, end), -1], [*weights, max(0.0, 1 - sum(weights))])
        heard.append(None if at < 0 else at + chance.randrange(_HOURS))
    return heard


def _likely(line: list[int], heard: list[int | None], rule: ErrandRule) -> float:
    """Return the logarithm of how likely what was heard is, if this line is the owner's, up to a constant."""
    total = 0.0
    for (begin, end), at in zip(_spans(rule), heard, strict=True):
        weights = _handed_in(line[begin:end])
        if at is None:
            likely = 1 - sum(weights)
        else:
            likely = sum(weights[max(0, at - begin - _HOURS + 1) : at - begin + 1]) / _HOURS
        total += math.log(max(likely, 1e-9))
    return total


def _handed_in(line: list[int]) -> list[float]:
    """Return how likely a letter is handed in at each hour of a span."""
    weights, left = [], 1.0
    for hour, is_there in enumerate(line):
        weights.append(left / (len(line) - hour) if is_there else 0.0)
        left -= weights[-1]
    return weights
