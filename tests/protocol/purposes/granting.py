"""Grants and covers at random beside plain sets: who opens what, and what thieves and other epochs open.

    python tests/protocol/purposes/granting.py [CASES] [SEED]

tells how many there were and what covers take: 100,000 cases unless told otherwise. Nothing of the rule, the
tree or the covers is taken from the product: here a purpose is the set of its prefixes.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from random import Random

from hushcast_protocol.base.crypto.key_agreement import shared_secret
from hushcast_protocol.base.crypto.secrets import AgreementKey, Seed
from hushcast_protocol.purposes.grants import Grant, GrantScope, make_grant, read_grant
from hushcast_protocol.purposes.key_cover import CoverElement, cover
from hushcast_protocol.purposes.purpose_keys import epoch_start
from hushcast_protocol.purposes.purpose_names import Purpose
from hushcast_protocol.purposes.purpose_problems import PurposeError, PurposeProblem
from hushcast_protocol.purposes.sealed_messages import _HEADER, Opener, Sealer, _mask, _read_header, _secret
from hushcast_protocol.purposes.signed_vocabulary import SignedVocabulary, issue
from hushcast_protocol.purposes.vocabulary import Vocabulary

A_WORLD = 500  # cases with one vocabulary
READERS = 12
FIRST, EPOCHS = 2900, 4
DAY = 24 * 3600
SLOT, TAG = 40, 8


@dataclass
class Reader:
    """A reader's whole state."""

    grants: list[Grant]
    opener: Opener


@dataclass
class Sizes:
    """What covers take."""

    elements: list[int]
    seconds: list[float]
    opened: int = 0
    closed: int = 0


def above(purpose: str) -> set[str]:
    parts = purpose.split("/")
    return {"/".join(parts[:count]) for count in range(1, len(parts) + 1)}


def allowed(purpose: str, aip: set[str], pip: set[str]) -> bool:
    return bool(above(purpose) & aip) and not above(purpose) & pip


def draw_paths(random: Random, most: int) -> list[str]:
    """Draw a tree: each purpose goes below one that is there, or is a root."""
    wanted, paths = random.randint(min(20, most), most), [f"r{n}" for n in range(random.randint(1, 5))]
    while len(paths) < wanted:
        parent = random.choice(paths)
        if parent.count("/") < 7:
            paths.append(f"{parent}/{random.choice('abc')}{len(paths)}")
    return paths


class World:
    """A vocabulary, its issuer, readers with grants, and a writer."""

    def __init__(self, random: Random, most: int = 400) -> None:
        self.random = random
        self.paths = draw_paths(random, most)
        self.below = {path: [one for one in self.paths if path in above(one)] for path in self.paths}
        self.issuer = Seed(random.randbytes(32))
        self.vocabulary = Vocabulary(self.paths)
        self.issued = issue(self.issuer, self.vocabulary, range(FIRST, FIRST + EPOCHS), 1, 0, 0)
        self.readers = [self._reader() for _ in range(READERS)]
        self.sealer = Sealer(self.issued, random.randbytes)
        self.stolen: list[AgreementKey] = []
        self.now = epoch_start(FIRST) + 1.0

    def _reader(self) -> Reader:
        key, grants = AgreementKey(self.random.randbytes(32)), []
        for number in range(self.random.choice((0, 1, 1, 1, 2, 3, 8))):
            begin = self.random.randrange(EPOCHS)
            epochs = range(FIRST + begin, FIRST + self.random.randint(begin + 1, EPOCHS))
            asked = GrantScope(number, key.public(), Purpose(self.random.choice(self.paths)), epochs)
            data = make_grant(self.issuer, self.issued, asked, 0, self.random.randbytes)
            grants.append(read_grant(data, key, self.issuer.public()))
        return Reader(grants, Opener(grants))

    def move(self) -> None:
        """Go on to another day, now and then of another epoch; what the writer had then is stolen."""
        if self.sealer._own is not None:  # it has none until it seals
            self.stolen = [*self.stolen[-3:], self.sealer._own]
        days = [day for day in range(7 * EPOCHS) if day != (self.now - epoch_start(FIRST)) // DAY]
        self.now = epoch_start(FIRST) + (self.random.choice(days) + self.random.random()) * DAY

    def sets(self) -> tuple[set[str], set[str]]:
        """Draw what a message is for and not for: most often a few purposes, now and then near a reader's."""
        paths, random = self.paths, self.random
        aip = set(random.sample(paths, min(len(paths), random.choice((0, 1, 1, 1, 2, 3, 6)))))
        pip = set(random.sample(paths, min(len(paths), random.choice((0, 0, 1, 2, 4, 10)))))
        if random.random() < 0.5:
            grants = random.choice(self.readers).grants
            for grant in grants[:1]:
                near = random.choice(sorted(above(grant.purpose)))
                (aip if random.random() < 0.7 else pip).add(near)
        return aip, pip


def try_case(world: World, sizes: Sizes) -> None:
    """Seal one message; all readers open exactly what the sets say, and thieves nothing."""
    random = world.random
    if random.random() < 0.02:
        world.move()
    aip, pip = world.sets()
    began = time.process_time()
    elements = cover(map(Purpose, aip), map(Purpose, pip), world.vocabulary)
    sizes.seconds.append(time.process_time() - began)
    sizes.elements.append(len(elements))
    content = random.randbytes(random.choice((0, 1, 40)))
    data = world.sealer.seal(elements, content, world.now)
    epoch = int(world.now // (7 * DAY))
    for reader in random.sample(world.readers, 3):
        right = {
            grant.purpose
            for grant in reader.grants
            if epoch in grant.epochs and allowed(grant.purpose, aip, pip)
        }
        try:
            opened = reader.opener.open(data)
        except PurposeError as error:
            if right or error.problem is not PurposeProblem.NOT_GRANTED:
                raise
            sizes.closed += 1
        else:
            assert right == opened.purposes, "a false accept"
            below = {one for one in right if all(allowed(each, aip, pip) for each in world.below[one])}
            assert below == opened.throughout
            assert opened.content == content
            sizes.opened += 1
    for held in world.stolen:
        assert not fits(data, held, world.issued, epoch, elements), "a stolen sensor opens a message"


def fits(
    data: bytes, held: AgreementKey, issued: SignedVocabulary, epoch: int, elements: tuple[CoverElement, ...]
) -> list[CoverElement]:
    """Return the elements under which a thief of a one-time key finds a message's slots."""
    _, own, nonce, end = _read_header(data)
    tags = {data[at : at + TAG] for at in range(_HEADER, end, SLOT)}
    found = []
    for element in elements[:4]:  # of those that are there: no other can be found
        public = issued.public(element, epoch)
        agreed = shared_secret(held, public)
        if _mask(_secret(agreed, own, public), nonce)[:TAG] in tags:
            found.append(element)
    return found


def run(cases: int, seed: int, most: int = 400, a_world: int = A_WORLD) -> Sizes:
    """Try so many cases."""
    sizes, random = Sizes([], []), Random(seed)
    for number in range(cases):
        if number % a_world == 0:
            world = World(random, most)
        try_case(world, sizes)
    return sizes


def of_all(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def main() -> None:
    given = [int(text) for text in sys.argv[1:]]
    cases, seed = [*given, *(100_000, 1)[len(given) :]]
    began = time.perf_counter()
    sizes = run(cases, seed)
    took = time.perf_counter() - began
    told = f"{sizes.opened:,} opened and {sizes.closed:,} refused, all as the sets say"
    print(f"{cases:,} messages in {took:.0f} s: {told}")
    elements, seconds = [float(count) for count in sizes.elements], sizes.seconds
    for name, values, unit in (("elements", elements, 1.0), ("microseconds of CPU", seconds, 1e-6)):
        mean = sum(values) / len(values)
        told = [f"{value / unit:.1f}" for value in (mean, of_all(values, 0.99), max(values))]
        print(f"{name} of a cover: mean {told[0]}, 99 % {told[1]}, largest {told[2]}")


if __name__ == "__main__":
    main()
