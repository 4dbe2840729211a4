"""What cover costs daemons and relays, of a run in which their lines were watched.

What a day takes is said of rounds of 600 s: letters, blocks and the work on them go by rounds.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from nacl.public import PrivateKey, SealedBox

from benchmarks.cover.clients import QUIET, CoveredClient, CoverRun
from benchmarks.cover.process_costs import ProcessCosts, bytes_on_disk
from benchmarks.cover.relay_roles import split_by_part
from benchmarks.cover.sights import over_porter
from benchmarks.cover.socks_watch import Piece
from benchmarks.figures import Figure, at_most
from hushcast_protocol.base.cover_terms import LEAST_ROUND
from hushcast_protocol.cover.cover_frames import BLOCKS_A_ROUND
from hushcast_protocol.cover.cover_rules import LETTERS_A_ROUND, PASSED_A_ROUND
from hushcast_protocol.cover.lane_seals import HOST_BLOCK
from hushcast_protocol.cover.lane_seconds import LANES
from hushcast_protocol.cover.letter_contents import CONTENT
from hushcast_protocol.cover.letters import LETTER, Stage, size_at
from hushcast_protocol.cover.receipt_list import BLOCK

CELL = 514 / 498  # bytes of a cell of Tor for each byte that it carries
ROUNDS_A_DAY = 24 * 3600 // 600
WAKE = 2.0  # seconds of silence after which bytes are another wake
SEALS = 3 * LETTERS_A_ROUND  # of a daemon's round
OPENED = LETTERS_A_ROUND + 2 * PASSED_A_ROUND  # boxes that porter, second and third open for it
# Bytes of a daemon's round that its porter, second, third and hosts send and receive: letters and blocks.
# What lists take that thirds send to seconds is the same for many daemons as for few.
PASSED_BY_PART = (
    LETTERS_A_ROUND * LETTER + PASSED_A_ROUND * size_at(Stage.SECOND) + 2 * BLOCKS_A_ROUND * BLOCK,
    PASSED_A_ROUND * (size_at(Stage.SECOND) + CONTENT) + LANES * HOST_BLOCK + BLOCKS_A_ROUND * BLOCK,
    PASSED_A_ROUND * CONTENT,
    LANES * HOST_BLOCK,
)
_TIMES = 200


def cover_costs(run: CoverRun, sound: Sequence[CoveredClient]) -> Iterator[Figure]:
    """Return the costs of daemons without a fault, of all relays, and of each part that these have."""
    yield from _of_daemons(run, sound)
    yield from _of_relays(run)
    yield from _of_parts(run)


def _of_daemons(run: CoverRun, sound: Sequence[CoveredClient]) -> Iterator[Figure]:
    rounds = run.seconds / LEAST_ROUND
    yield from _of_lines(run, sound)
    taken = [run.taken[client.member.name] for client in sound]
    key = PrivateKey.generate()
    sealing = SEALS * _took(lambda: SealedBox(key.public_key).encrypt(bytes(LETTER)))
    cpu = sum(one.cpu for one in taken) / len(taken) / rounds
    yield at_most("CPU of a daemon, ms a round", cpu * 1e3, f"{SEALS} boxes sealed", sealing * 1e3, None)
    letters = LETTERS_A_ROUND * LETTER
    written = sum(one.written for one in taken) / len(taken) / rounds
    yield at_most("bytes that a daemon writes to disk a round", written, "its letters", letters, None)
    disk = sum(bytes_on_disk(Path(client.member.state)) for client in sound) / len(sound)
    yield at_most("bytes on the disk of a daemon", disk, "its letters", letters, None)


def _of_lines(run: CoverRun, sound: Sequence[CoveredClient]) -> Iterator[Figure]:
    rounds = run.seconds / LEAST_ROUND * len(sound)
    lines = [[one for one in client.watch.seen if one.at >= run.began] for client in sound]
    porters = [over_porter(pieces) for pieces in lines]
    for way, is_upward, size in (
        ("up", True, LETTERS_A_ROUND * LETTER),
        ("down", False, BLOCKS_A_ROUND * BLOCK),
    ):
        sent = sum(one.size for pieces in porters for one in pieces if one.is_upward == is_upward)
        a_day = CELL * ROUNDS_A_DAY / 1e6
        name = f"MB a day {way} with the porter, by rounds of 600 s, in cells"
        yield at_most(name, sent / rounds * a_day, "letters or blocks alone", size * a_day, None)
    wakes = sum(_wakes(pieces) for pieces in porters) / rounds * ROUNDS_A_DAY
    yield at_most("wakes a day by the porter, by rounds of 600 s", wakes, "rounds", ROUNDS_A_DAY, None)
    others = sum(one.size for pieces in lines for one in pieces)
    others -= sum(one.size for pieces in porters for one in pieces)
    letters = LETTERS_A_ROUND * LETTER
    yield at_most("bytes a round with directories, both ways", others / rounds, "letters", letters, None)


def _wakes(pieces: Sequence[Piece]) -> int:
    gaps = (later.at - earlier.at for earlier, later in itertools.pairwise(pieces))
    return 1 + sum(gap > WAKE for gap in gaps)


def _of_relays(run: CoverRun) -> Iterator[Figure]:
    key = PrivateKey.generate()
    sealed = SealedBox(key.public_key).encrypt(bytes(LETTER))
    opening = OPENED * _took(lambda: SealedBox(key).decrypt(sealed))
    passed = run.passed / run.seconds * LEAST_ROUND / len(run.clients)
    yield at_most("letters passed for a daemon a round", passed, "twice five", 2 * PASSED_A_ROUND, None)
    daemon = "for a daemon a round, more than without cover"
    cpu = _more(run, lambda cost: cost.cpu)
    yield at_most(f"CPU of all relays {daemon}, ms", cpu * 1e3, f"{OPENED} boxes opened", opening * 1e3, None)
    passed = _more(run, lambda cost: sum(cost.passed.values()))
    alone = sum(PASSED_BY_PART)
    yield at_most(f"bytes that relays send and receive {daemon}", passed, "letters and blocks", alone, None)
    written = _more(run, lambda cost: cost.written)
    kept = LETTERS_A_ROUND * LETTER + BLOCKS_A_ROUND * BLOCK
    yield at_most(f"bytes that relays write to disk {daemon}", written, "letters and blocks", kept, None)


def _more(run: CoverRun, count: Callable[[ProcessCosts], float]) -> float:
    """Return what relays took for a daemon a round, less what they took before there were any."""
    names = [relay.name for relay in run.relays]
    usual = run.seconds / QUIET * sum(count(run.quiet[name]) for name in names)
    taken = sum(count(run.taken[name]) for name in names)
    return (taken - usual) / run.seconds * LEAST_ROUND / len(run.clients)


def _of_parts(run: CoverRun) -> Iterator[Figure]:
    """Return what porter, second, third and hosts of a daemon take, each beside its formula."""
    key = PrivateKey.generate()
    sealed = SealedBox(key.public_key).encrypt(bytes(LETTER))
    opening = 1e3 * _took(lambda: SealedBox(key).decrypt(sealed))
    boxes = (LETTERS_A_ROUND * opening, PASSED_A_ROUND * opening, PASSED_A_ROUND * opening, 0.0)
    blocks = BLOCKS_A_ROUND * BLOCK  # which a porter has on disk for three days, as it does each held letter
    rounds = run.seconds / LEAST_ROUND
    taken = [run.taken[name] for name in run.parts]
    cpu = [1e3 * one.cpu / rounds for one in taken]
    yield from _by_part(run, "CPU, ms,", cpu, "boxes opened", boxes)
    passed = [sum(one.passed.values()) / rounds for one in taken]
    yield from _by_part(run, "bytes sent and received", passed, "letters and blocks alone", PASSED_BY_PART)
    written = [one.written / rounds for one in taken]
    kept = LETTERS_A_ROUND * LETTER + blocks, 0.0, 0.0, 0.0
    yield from _by_part(run, "bytes written to disk", written, "letters and blocks", kept)
    grown = [run.grown[name] / rounds for name in run.parts]
    held = LETTER + blocks, 0.0, 0.0, 0.0
    yield from _by_part(run, "bytes more on disk", grown, "a held letter and blocks", held)


def _by_part(
    run: CoverRun, what: str, taken: Sequence[float], beside: str, formulae: Sequence[float]
) -> Iterator[Figure]:
    """Split what each relay took in a round; where nothing is to be taken there is no ratio."""
    found = split_by_part(list(run.parts.values()), taken)
    for (part, cost), formula in zip(found.items(), formulae, strict=False):
        name = f"{what} of a daemon's {part.value} a round, give or take {cost.error:.2g}"
        ratio = cost.mean / formula if formula else None
        yield Figure(name, cost.mean, beside, formula, ratio, None, None)


def _took(work: Callable[[], object]) -> float:
    """Return the seconds of CPU that something takes."""
    began = time.thread_time()
    for _ in range(_TIMES):
        work()
    return (time.thread_time() - began) / _TIMES
