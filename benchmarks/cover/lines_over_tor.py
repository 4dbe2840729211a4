"""Figure: what lines tell of daemons under cover, and what cover costs, over a private Tor, tors 40 ms apart.

Daemons publish and do not, in turns; each one's line is watched at its SOCKS port. Some have a fault, which
has to be found by the same measures. Rounds take 20 s, as short as a network may have them. What a day takes
is said of rounds of 600 s: letters, blocks and the work on them go by rounds.
"""

from __future__ import annotations

import itertools
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import trio
from nacl.public import PrivateKey, SealedBox

from benchmarks.cover.apartness import apart_by
from benchmarks.cover.clients import QUIET, CoveredClient, CoverRun, CoverScene
from benchmarks.cover.process_costs import ProcessCosts, bytes_on_disk
from benchmarks.cover.sights import BLOCKS, RoundSeen, apart, over_porter, rounds_seen, split
from benchmarks.cover.socks_watch import Piece
from benchmarks.figures import Effort, Figure, at_most, missing
from hushcast_protocol.base.cover_terms import LEAST_ROUND
from hushcast_protocol.base.errors import HushcastError
from hushcast_protocol.cover.cover_frames import BLOCKS_A_ROUND
from hushcast_protocol.cover.cover_rules import LETTERS_A_ROUND, PASSED_A_ROUND
from hushcast_protocol.cover.letters import LETTER
from hushcast_protocol.cover.receipt_list import BLOCK
from hushcast_testnet import testnet
from hushcast_testnet.inventory import FILE
from hushcast_testnet.tor.distance import Distance

DISTANCE = Distance(40)
RELAYS, DIRECTORIES = 15, 3  # three more than cover needs: on a busy machine one is missing now and then
SOUND, FAULTY = 10, 4  # daemons
COUNTED = 10  # rounds of a block: of daemons without a fault two hundred idle and two hundred busy ones
EPOCH = 30  # seconds: a day, within which a porter begins, is twelve minutes
ROUNDS_A_DAY = 24 * 3600 // 600
CELL = 514 / 498  # bytes of a cell of Tor for each byte that it carries
BAR = 0.55  # AUC of lines at most
WAKE = 2.0  # seconds of silence after which bytes are another wake
SEALS = 3 * LETTERS_A_ROUND  # of a daemon's round
OPENED = LETTERS_A_ROUND + 2 * PASSED_A_ROUND  # boxes that porter, second and third open for it
SENT_ON = (
    2 * PASSED_A_ROUND * LETTER + BLOCK
)  # bytes from porter to second, from there to the third, and a list down
_TIMES = 200


def figures(effort: Effort) -> Iterator[Figure]:
    """Measure once, for half an hour, up to twelve minutes of which porters take to begin."""
    with tempfile.TemporaryDirectory(prefix="hushcast-bench-") as place:
        directory = Path(place) / "net"
        why: BaseException | None = None
        found: list[Figure] = []
        try:
            found = list(table(_measured(directory, effort.amount(COUNTED))))
        except* (HushcastError, trio.TooSlowError) as failures:
            why = failures.exceptions[0]
        finally:
            if (directory / FILE).exists():
                testnet.down(directory)
        yield from found
        if why is not None:
            yield missing("lines under cover, over Tor", None, "chance", why, None)


def _measured(directory: Path, counted: int) -> CoverRun:
    testnet.up(
        directory,
        RELAYS,
        SOUND + FAULTY,
        "tor",
        EPOCH,
        _tell,
        authorities=DIRECTORIES,
        keepers=0,
        cover=True,
        distance=DISTANCE,
    )
    return trio.run(CoverScene(directory, SOUND, counted).measure)


def table(run: CoverRun) -> Iterator[Figure]:
    """Return the lines of what was seen and counted."""
    sound, faulty = ([one for one in run.clients if one.is_sound == is_sound] for is_sound in (True, False))
    seen = _seen(sound)
    yield from _lines("publishing or not", seen, BAR)
    yield from _lines("control: messages 30 ms later than empty letters", _seen(faulty), None)
    shorter = [RoundSeen(one.block, one.is_busy, _shorter(one)) for one in seen]
    yield from _lines("control: rounds with messages a byte shorter", shorter, None)
    yield from _of_daemons(run, sound)
    yield from _of_relays(run)


def _seen(clients: Sequence[CoveredClient]) -> list[RoundSeen]:
    watched = [(one.watch.seen, one.course) for one in clients if one.course is not None]
    return [one for pieces, course in watched for one in rounds_seen(pieces, course, LEAST_ROUND)]


def _shorter(one: RoundSeen) -> dict[str, float]:
    return {**one.measures, "bytes up": one.measures["bytes up"] - one.is_busy}


def _lines(name: str, rounds: Sequence[RoundSeen], bar: float | None) -> Iterator[Figure]:
    kinds = idle, busy = split(rounds, range(BLOCKS))
    found = [(f"what tells most in other rounds, of {len(idle)} idle, {len(busy)} busy", apart(rounds))]
    found += [(measure, apart_by(measure, kinds)) for measure in idle[0]]
    for what, one in found:
        low, high = one.interval
        text = f"{name}, {what}: AUC, {low:.3f} to {high:.3f}"
        if bar is not None and one is found[0][1]:
            yield at_most(f"{text}: at most times", one.area, "the bar", bar, 1.0)
        else:
            yield at_most(text, one.area, "chance", 0.5, None)


def _of_daemons(run: CoverRun, sound: Sequence[CoveredClient]) -> Iterator[Figure]:
    rounds = run.seconds / LEAST_ROUND
    everybody = len(run.clients)
    yield at_most("rounds missed", sum(one.missed for one in run.clients), "all", rounds * everybody, None)
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
    epochs = run.seconds / EPOCH * len(sound)
    others = sum(one.size for pieces in lines for one in pieces)
    others -= sum(one.size for pieces in porters for one in pieces)
    letters = LETTERS_A_ROUND * LETTER
    yield at_most("bytes an epoch with directories, both ways", others / epochs, "letters", letters, None)


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
    for what, count in (
        ("bytes on links between relays", lambda cost: float(sum(cost.passed.values()))),
        ("bytes that relays write to disk", lambda cost: float(cost.written)),
    ):
        yield at_most(f"{what} {daemon}", _more(run, count), "letters and a list", SENT_ON, None)


def _more(run: CoverRun, count: Callable[[ProcessCosts], float]) -> float:
    """Return what relays took for a daemon a round, less what they took before there were any."""
    names = [relay.name for relay in run.relays]
    usual = run.seconds / QUIET * sum(count(run.quiet[name]) for name in names)
    taken = sum(count(run.taken[name]) for name in names)
    return (taken - usual) / run.seconds * LEAST_ROUND / len(run.clients)


def _took(work: Callable[[], object]) -> float:
    """Return the seconds of CPU that something takes."""
    began = time.thread_time()
    for _ in range(_TIMES):
        work()
    return (time.thread_time() - began) / _TIMES


def _tell(text: str) -> None:
    print(f"  {text}", file=sys.stderr)
