"""The instrument that compares rounds of watched daemons: it finds what is there, and nothing else."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import pytest
import trio

from benchmarks.cover.apartness import Stratum, Telling, apart, telling
from benchmarks.cover.clients import CoveredClient, CoverRun, until_bills_went
from benchmarks.cover.compared_lines import PAIRS_AT_LEAST
from benchmarks.cover.footing import Footing
from benchmarks.cover.lines_over_tor import LinesPlan, figures_of, table
from benchmarks.cover.process_costs import ProcessCosts
from benchmarks.cover.relay_roles import CoverPart
from benchmarks.cover.sights import WatchedLine, rounds_seen, strata
from benchmarks.cover.socks_watch import Piece, SocksWatch
from benchmarks.cover.turns import COUNTED, LEAD, TURN, Doing, Turn, Turns
from hushcast_protocol.base.cover_terms import LEAST_ROUND
from hushcast_runtime.transports.endpoints import Endpoint
from hushcast_runtime.transports.streams import LOOPBACK
from hushcast_testnet.inventory import Member

DAEMONS, LETTERS, BLOCKS = 12, 16_500, 16_600
FIRST, LASTS = 1_000, 78  # rounds: two series without reading, and two with it
TOLD = FIRST + 6 * TURN + 2  # when relays were told


def turns_of(chance: random.Random, is_backwards: bool = False) -> list[Turn]:
    """The turns of a daemon whose relays were told once its first two series are over."""
    turns, found, first = Turns(chance, is_backwards), list[Turn](), FIRST
    while first < FIRST + LASTS:
        series = turns.series(first, FIRST + LASTS, first >= TOLD)
        found += series
        first = series[-1].end if series else first + 1
    return found


def line_of(
    turns: Sequence[Turn], chance: random.Random, later: float = 0.0, shorter: int = 0, outside: int = 0
) -> WatchedLine:
    """What a daemon's line shows: a fault in rounds that are not idle, and a machine that drifts by turns."""
    phase = chance.uniform(2, 18)

    def rounds() -> Iterator[tuple[Turn, float, float]]:
        for turn in turns:
            drift = chance.expovariate(1 / 0.01)
            for number in range(turn.first, turn.end):
                yield turn, number * LEAST_ROUND + phase, drift + chance.expovariate(1 / 0.01)

    at_port, at_line, heard = list[Piece](), list[Piece](), list[float]()
    for number, (turn, moment, late) in enumerate(rounds()):
        is_busy = turn.doing != Doing.IDLE
        at = moment + late + later * is_busy
        at_port.append(Piece(at, 0, True, LETTERS - shorter * is_busy))
        at_port.append(Piece(at + chance.gauss(0.5, 0.05), 0, False, BLOCKS))
        at_port.append(Piece(moment + chance.uniform(-9, 9), 1 + number, False, 5_000))  # a roster
        at_line.append(Piece(at + 0.01, 0, True, LETTERS + 500 + outside * is_busy))
        at_line.append(Piece(moment + 8, 0, True, 5_000))  # too late to be of the round's letters
        if turn.doing == Doing.READING:
            heard.append(at + 1)
    return WatchedLine(sorted(at_port, key=lambda one: one.at), at_line, heard)


@pytest.mark.parametrize("other", [Doing.PUBLISHING, Doing.SUBSCRIBING, Doing.READING])
@pytest.mark.parametrize(
    ("fault", "measure", "least", "most"),
    [
        ({}, "moment in the round", 0.35, 0.65),
        ({"later": 0.06}, "moment in the round", 0.85, 1.0),
        ({"shorter": 1}, "bytes up", 0.0, 0.0),
        ({"outside": 514}, "outside, bytes up", 1.0, 1.0),
    ],
    ids=["no fault", "later", "shorter", "a cell more outside"],
)
def test_what_is_there_is_found_and_no_more(
    fault: dict[str, int], measure: str, least: float, most: float, other: Doing
) -> None:
    chance = random.Random(5)
    seen = {}
    for daemon in range(DAEMONS):
        turns = turns_of(random.Random(daemon // 2), daemon % 2 == 1)
        seen[daemon] = rounds_seen(line_of(turns, chance, **fault), turns, LEAST_ROUND)
    compared = strata(seen, Doing.IDLE, other)
    assert sum(len(each.other) for each in compared) == 2 * COUNTED * DAEMONS
    found = apart(compared, chance)
    assert least <= found[measure].area <= most
    assert found[measure].low <= found[measure].area <= found[measure].high
    told = telling(compared, chance)
    assert (told.by_chance < 0.05) == bool(fault)


def test_a_round_counts_by_whether_a_reader_heard_something_in_it() -> None:
    chance = random.Random(7)
    turns = turns_of(chance)
    line = line_of(turns, chance)
    late = [line.heard[0], *(one + 4 * LEAST_ROUND for one in line.heard[1:2])]
    counts = Counter(
        one.turn.doing
        for one in rounds_seen(WatchedLine(line.at_port, line.outside, late), turns, LEAST_ROUND)
    )
    assert counts[Doing.READING] <= len(late)
    assert counts[Doing.IDLE] >= 4 * COUNTED - len(late)
    assert not rounds_seen(WatchedLine([], line.outside, line.heard), turns, LEAST_ROUND)


def test_a_drift_that_all_daemons_share_is_no_difference() -> None:
    """What comes later in a series has more; in each pair one daemon has the other's order, backwards."""
    chance = random.Random(9)
    compared = []
    for pair in range(10):
        for series in range(2):
            drifted = [[{"x": 10 + chance.random()} for _ in range(COUNTED)] for _ in range(2)]
            before = [[{"x": chance.random()} for _ in range(COUNTED)] for _ in range(2)]
            compared += [
                Stratum(pair, series, before[0], drifted[0]), Stratum(pair, series, drifted[1], before[1])
            ]  # fmt: skip
    assert apart(compared, chance)["x"].area == 0.5
    assert apart(compared, chance)["x"].high == 0.5
    assert telling(compared, chance).by_chance == 1.0


def test_a_daemon_is_compared_with_itself_within_a_series() -> None:
    """Daemons differ by more than what is looked for, and so do series: that tells nothing."""
    chance = random.Random(3)
    compared = [
        Stratum(daemon, series, *([{"x": at + chance.random()} for _ in range(5)] for _ in range(2)))
        for daemon in range(DAEMONS)
        for series in range(2)
        for at in [chance.uniform(0, 1_000)]
    ]
    assert 0.4 < apart(compared, chance)["x"].area < 0.6
    assert telling(compared, chance).by_chance > 0.05
    with pytest.raises(ValueError, match="rounds of both kinds"):
        apart([Stratum(0, 0, [{"x": 1.0}], [])], chance)


@pytest.mark.slow
def test_an_interval_holds_chance_as_often_as_it_says_though_rounds_of_a_turn_are_alike() -> None:
    chance = random.Random(11)

    def turn() -> list[dict[str, float]]:
        drift = chance.gauss(0, 0.5)
        return [{"x": chance.gauss(drift, 1)} for _ in range(COUNTED)]

    def holds() -> bool:
        found = apart([Stratum(one, two, turn(), turn()) for one in range(8) for two in range(2)], chance)
        return found["x"].low <= 0.5 <= found["x"].high

    assert sum(holds() for _ in range(60)) >= 54


@pytest.mark.slow
def test_what_tells_most_of_many_measures_is_found_and_chance_is_not_taken_for_it() -> None:
    """Of the planned size: twenty daemons, two series each, eighteen measures; one is apart, or none."""
    chance = random.Random(2)
    names = [str(number) for number in range(18)]

    def turn(more: float = 0.0) -> list[dict[str, float]]:
        drift = {name: chance.gauss(more * (name == "3"), 0.5) for name in names}
        return [{name: chance.gauss(drift[name], 1) for name in names} for _ in range(COUNTED)]

    def told(more: float) -> Telling:
        compared = [Stratum(one, two, turn(), turn(more)) for one in range(20) for two in range(2)]
        return telling(compared, chance)

    assert sum(told(0.0).by_chance < 0.05 for _ in range(40)) <= 5
    found = [told(0.9) for _ in range(10)]  # an AUC of 0.71
    assert sum(one.measure == "3" and one.by_chance < 0.05 for one in found) >= 8


def test_turns_are_in_another_order_each_series_and_end_in_time() -> None:
    orders = set[tuple[Doing, ...]]()
    for seed in range(20):
        turns = turns_of(random.Random(seed))
        assert [turn.first for turn in turns[:6]] == [FIRST + number * TURN for number in range(6)]
        assert turns[6].first == TOLD + LEAD, "it waits until it may hear"
        assert turns[-1].end <= FIRST + LASTS
        assert Counter(turn.doing for turn in turns) == {
            Doing.IDLE: 4, Doing.PUBLISHING: 2, Doing.SUBSCRIBING: 2, Doing.READING: 2
        }  # fmt: skip
        orders.add(tuple(turn.doing for turn in turns))
        others = turns_of(random.Random(seed), is_backwards=True)
        for series in range(4):
            forth, back = ([turn.doing for turn in of if turn.series == series] for of in (turns, others))
            assert forth == back[::-1]
    assert len(orders) > 15


def run_of(tmp_path: Path, missed: int, sound: int = 2 * PAIRS_AT_LEAST) -> CoverRun:
    """A run of so many daemons and two more, which have a fault."""
    chance = random.Random(1)
    names = ("relay-1", *(f"client-{number}" for number in range(sound + 2)))
    costs = {name: ProcessCosts(1.0, 1_000, {}) for name in names}
    relay, *members = (Member(name, "", str(tmp_path / name), str(tmp_path), None) for name in costs)
    run = CoverRun([relay], quiet=costs, taken=costs, seconds=LASTS * LEAST_ROUND, passed=10)
    run.parts, run.grown = {relay.name: dict.fromkeys(CoverPart, 1.0)}, {relay.name: 0}
    run.footing = Footing(rounds=2 * LASTS, missed=missed, published=100, heard=100)
    for member in members:
        watch = SocksWatch(Endpoint(host=LOOPBACK, port=1))
        client = CoveredClient(member, member in members[:sound], watch, turns_of(chance))
        client.line = line_of(client.turns, chance, later=0.0 if client.is_sound else 0.2)
        run.clients.append(client)
    return run


def test_a_table_has_lines_of_both_sides_of_a_tor_and_costs(tmp_path: Path) -> None:
    found = {one.figure: one for one in table(run_of(tmp_path, 0), LinesPlan(2, 2, 24))}
    for said, met in (
        ("idle and reading, of 120 and 120 rounds: what tells most, ", True),
        ("idle and reading, rounds missed: AUC", True),
        ("idle and reading, outside, bytes up: AUC", True),
        ("publishing and subscribing, bytes down: AUC", True),
        ("control, idle and reading, 30 ms later, moment in the round: AUC", True),
        ("control, idle and publishing, a byte longer, bytes up: AUC", True),
        ("MB a day up with the porter", None),
        ("CPU of all relays", None),
    ):
        (one,) = (one for name, one in found.items() if name.startswith(said))
        assert one.met is met, said


def test_lines_of_few_daemons_are_not_judged(tmp_path: Path) -> None:
    found = table(run_of(tmp_path, 0, sound=2), LinesPlan(2, 2, 24))
    judged = [one for one in found if ": AUC, " in one.figure and "control" not in one.figure]
    assert judged
    assert {one.met for one in judged} == {None}


def test_a_table_has_no_lines_of_a_run_that_lost_its_footing(tmp_path: Path) -> None:
    found = list(table(run_of(tmp_path, LASTS), LinesPlan(2, 2, 24)))
    assert not [one for one in found if "AUC" in one.figure]
    (lines,) = (one for one in found if one.met is None and one.target is not None)
    assert lines.peer == "chance (missing: lost footing: 78 of 156 rounds were missed)"


@pytest.mark.parametrize(
    ("into", "waits"), [(0, 40), (30, 10), (40, 0), (1_500, 0), (1_990, 140), (2_090, 40)]
)
def test_turns_begin_when_the_bills_of_a_day_have_gone(into: int, waits: float) -> None:
    assert until_bills_went(7 * 2_090 + into, 2_090) == waits


def test_a_run_that_lost_its_footing_says_by_what() -> None:
    assert not Footing(rounds=100, missed=5, published=100, heard=90, lateness=[0.001] * 99).lost_by()
    lost = Footing(rounds=100, missed=6, published=100, heard=80, lateness=[0.0] * 90 + [0.03] * 10)
    assert lost.lost_by() == [
        "6 of 100 rounds were missed",
        "of 100 messages for readers 80 came",
        "one look of twenty was 30 ms late or more",
    ]


async def test_footing_is_looked_at_by_how_late_the_watcher_wakes(
    autojump_clock: trio.testing.MockClock,
) -> None:
    footing = Footing()
    with trio.move_on_after(10):
        await footing.watch()
    assert len(footing.lateness) > 100


async def test_a_watched_port_passes_all_on_and_notes_it() -> None:
    async def echo(stream: trio.SocketStream) -> None:
        await stream.send_all(b"!" + await stream.receive_some())

    async with trio.open_nursery() as nursery:
        (listener,) = await nursery.start(partial(trio.serve_tcp, echo, 0, host=LOOPBACK))
        watch = SocksWatch(Endpoint(host=LOOPBACK, port=listener.socket.getsockname()[1]))
        await nursery.start(watch.run)
        for number in range(2):
            async with await trio.open_tcp_stream(LOOPBACK, watch.port) as stream:
                await stream.send_all(b"x" * 10)
                assert b"".join([part async for part in stream]) == b"!" + b"x" * 10
            seen = [(one.is_upward, one.size) for one in watch.seen if one.connection == number]
            assert seen == [(True, 10), (False, 11)]
        nursery.cancel_scope.cancel()


@pytest.mark.soak
@pytest.mark.tor
@pytest.mark.processes
def test_lines_and_costs_are_measured_over_tor() -> None:
    """Four daemons of which two have a fault, for long enough that they read."""
    found = {one.figure: one for one in figures_of(LinesPlan(2, 2, 26))}
    passed = next(one for name, one in found.items() if name.startswith("letters passed"))
    assert passed.ratio == pytest.approx(1.0, abs=0.1)
    if lost := next((one.peer for name, one in found.items() if name.startswith("lines under")), None):
        pytest.skip(lost)
    assert any("idle and reading, outside, bytes down" in name for name in found)
    longer = next(one for name, one in found.items() if "a byte longer, bytes up" in name)
    assert longer.ours == pytest.approx(1.0)
    later = next(one for name, one in found.items() if "idle and publishing, 30 ms later" in name)
    assert later.ours is not None
    assert later.ours > 0.7
