"""Coverage: inference of lossy relays from a subscriber's probes (threat model, row 11).

A probe enters at several relays, as a publication does, and its copies climb known paths. The top relay that
brings a copy shows which path it took; its arrival or loss tests all relays of that path at once.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Generator, Iterable, Mapping, Sequence, Set
from typing import NamedTuple

from hushcast_protocol.base.intervals import wilson
from hushcast_protocol.base.wire import RelayId
from hushcast_protocol.content.messages import Message
from hushcast_protocol.overlay.tree import Tree

MIN_LOST = 2  # lost probes that make a relay suspect: one may be bad luck
MIN_LOST_OF_A_KIND = 3  # likewise of those of one size: there are up to nine such kinds to be unlucky in
MIN_LOSS = 0.05  # least loss rate of a suspect, as the lower end of a 97.5 % confidence bound
_NEVER = 1e-12  # in place of a probability of 0 in a divisor
_ROUNDS = 100  # iterations of the estimate: further ones change it by less than a hundredth
_DOUBT = 0.5  # loss rate that the estimate starts from, the same for all relays
_FORGIVEN = 1.0  # lost probes of each relay that are forgiven: chance losses are not spread over many relays
_TRUST = 0.5  # prior: probes that each relay is assumed to have passed before any was sent
_STEP = 256  # probes counted, or paths laid, between two pauses: some 2 ms


class MessageForm(NamedTuple):
    """By what messages of a topic differ for who does not know the topic."""

    size: int
    """Bytes of the body."""
    tokens: int


def form_of(message: Message) -> MessageForm:
    """Return a message's form, as it is dropped."""
    return MessageForm(len(message.body), len(message.tokens))


class ProbePath(NamedTuple):
    """The path from one origin to the subscriber."""

    relays: tuple[RelayId, ...]
    """Those that a loss may be due to, the origin first."""
    tops: frozenset[RelayId]
    """Those that hand it to the subscriber: one in each tree."""


class ProbeCopy(NamedTuple):
    """One copy of a probe: the relays on its path, origin first, and whether it arrived."""

    way: tuple[RelayId, ...]
    arrived: bool
    sent: float  # Unix seconds
    weight: float = 1.0
    """How many copies it stands for: see `weight`."""
    form: MessageForm = MessageForm(0, 0)
    """As it was dropped."""


def ways(
    trees: Sequence[Tree], origins: Iterable[RelayId], top: RelayId | None = None
) -> dict[RelayId, ProbePath]:
    """Return the path of every origin that has a seat in the trees of one subscription.

    With several trees a copy may come by any of them, so a loss can only be blamed on its origin. `top`
    stands for all top relays if the subscriber is a listed root, which gets one copy whoever brings it.
    """
    found = {}
    for origin in origins:
        if all(origin in tree.parents for tree in trees):
            climbed = [tree.way(origin) for tree in trees]
            tops = frozenset([top] if top is not None else [way[-1] for way in climbed])
            found[origin] = ProbePath(climbed[0] if len(climbed) == 1 else (origin,), tops)
    return found


def stands_apart(way: ProbePath, other: ProbePath) -> bool:
    """Tell whether the fate of one copy can be observed independently of another copy of the same probe.

    It can if they come by different tops, so that their paths have no relay in common. Where paths join, only
    one copy is passed on, and it could be either. But if the other path leads through the origin of this one,
    a copy that arrives has passed all of this path.
    """
    return way.tops.isdisjoint(other.tops) or way.relays[0] in other.relays


def weight(origin: RelayId, all_ways: Mapping[RelayId, ProbePath], origins: int) -> float:
    """Return the weight of an outcome at `origin`, for probes with so many origins.

    Origins under a top with many relays can be observed independently less often. Inverse probability
    weighting corrects that bias. Source: Horvitz and Thompson, 1952.
    """
    own = all_ways[origin]
    apart = sum(stands_apart(own, way) for other, way in all_ways.items() if other != origin)
    others = len(all_ways) - 1
    chance = math.prod((apart - n) / (others - n) for n in range(min(origins - 1, others)))
    return 1 / chance if chance > 0 else 1.0


def judged(
    copies: Mapping[RelayId, ProbePath], taken: Collection[RelayId], came_by: Set[RelayId]
) -> dict[RelayId, bool]:
    """Return the origins of a probe for which it is certain whether their copy arrived, and whether it did.

    `copies` are the paths of all origins that it was handed to, `taken` the origins that gave a receipt: the
    others prove nothing. `came_by` are the relays that handed it to the subscriber. A relay that is the top
    of none of the paths brought a copy by a detour: it counts for a missing copy, if as many such copies came
    as are missing.
    """
    missing = sum(way.tops.isdisjoint(came_by) for way in copies.values())
    expected: set[RelayId] = set().union(*(way.tops for way in copies.values()))
    went_around = len(came_by - expected) >= missing
    found = {}
    for origin in taken:
        others = [way for other, way in copies.items() if other != origin]
        if origin in copies and all(stands_apart(copies[origin], other) for other in others):
            found[origin] = went_around or not copies[origin].tops.isdisjoint(came_by)
    return found


def share(probes: Iterable[ProbeCopy]) -> tuple[float, float, float]:
    """Return the share of origins that reach the subscriber, and its 95 % interval; there is a probe.

    Where weights differ, they are worth as many equal ones as Kish's effective size says.
    """
    held = list(probes)
    total = sum(probe.weight for probe in held)
    arrived = sum(probe.weight for probe in held if probe.arrived) / total
    size = total * total / sum(probe.weight * probe.weight for probe in held)
    return (arrived, *wilson(arrived, size))


class Losses(NamedTuple):
    """How many copies that one relay had it lost, and passed on; estimates, so no whole numbers."""

    lost: float
    passed: float


class Judgement(NamedTuple):
    """What the outcomes of probes say of relays."""

    suspects: Sequence[RelayId] = ()
    """Those that probably lose messages, the surest first."""
    losses: Mapping[RelayId, Losses] = {}
    """What became of copies at each relay that any path led through; of who loses one size alone, or what has
    one number of tokens, of these."""


def judged_in_steps(probes: Iterable[ProbeCopy]) -> Generator[None, None, Judgement]:
    """Judge all relays by their most likely loss rates (`_losses`); pause after each step of some 2 ms.

    A relay is suspect if it lost `MIN_LOST` probes and the lower end of the interval of its loss rate is
    `MIN_LOSS`. So partial losses, as of colluders, count as well. It is suspect, too, if it lost
    `MIN_LOST_OF_A_KIND` of the probes of one size, or of one number of tokens, with the same certainty: who
    loses only large messages passes all others. That is asked of kinds that have no more than half of the
    probes, and what suspects explain counts for nobody else there. A relay
    under another one that loses everything cannot be distinguished from an honest one: it counts as one that
    passed on what it was given.
    """
    held = list(probes)
    found = yield from _losses(held)
    named = {relay for relay, counts in found.items() if _is_suspect(counts, MIN_LOST)}
    kinds: dict[tuple[str, int], list[ProbeCopy]] = {}
    for number, probe in enumerate(held):
        for kind in zip(MessageForm._fields, probe.form, strict=True):
            kinds.setdefault(kind, []).append(probe)
        if number % _STEP == 0:
            yield
    unexplained = named.copy().isdisjoint
    for of_one_kind in kinds.values():
        if 2 * len(of_one_kind) <= len(held) and not all(probe.arrived for probe in of_one_kind):
            left = [probe for probe in of_one_kind if unexplained(probe.way)]
            for relay, counts in (yield from _losses(left)).items():
                if _is_suspect(counts, MIN_LOST_OF_A_KIND) and _least(counts) > _least(found[relay]):
                    found[relay] = counts
                    named.add(relay)
    return Judgement(sorted(named, key=lambda relay: (-found[relay].lost, found[relay].passed)), found)


def judge(probes: Iterable[ProbeCopy]) -> Judgement:
    """Judge all relays as `judged_in_steps`, at once."""
    steps = judged_in_steps(probes)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            judgement: Judgement = end.value
            return judgement


def _is_suspect(counts: Losses, least: int) -> bool:
    return round(counts.lost) >= least and _least(counts) >= MIN_LOSS


def _least(counts: Losses) -> float:
    """Return the lower end of the interval of a relay's loss rate."""
    tested = counts.lost + counts.passed
    return wilson(counts.lost / tested, tested)[0] if tested else 0.0


def _losses(probes: Sequence[ProbeCopy]) -> Generator[None, None, dict[RelayId, Losses]]:
    """Estimate how many probes each relay lost, and how many it passed on.

    Expectation maximisation: a lost probe was lost by one relay of its path, with probabilities from the loss
    rates; the loss rates follow from what each relay lost. Forgiving each relay some losses favours
    explanations with few lossy relays.
    Source: Coates, Hero, Nowak and Yu, "Internet Tomography", 2002.
    """
    missing: Counter[tuple[RelayId, ...]] = Counter()
    sure: Counter[RelayId] = Counter()
    for number, probe in enumerate(probes):
        if probe.arrived:
            sure.update(probe.way)
        else:
            missing[probe.way] += 1
        if number % _STEP == 0:
            yield
    loss = {relay: _DOUBT for way in missing for relay in way}
    lost, passed = dict.fromkeys(loss, 0.0), dict.fromkeys(loss, 0.0)
    for _ in range(_ROUNDS if missing else 0):
        lost, passed = dict.fromkeys(loss, 0.0), {relay: float(sure[relay]) for relay in loss}
        for number, (way, count) in enumerate(missing.items()):
            _lay(way, count, loss, lost, passed)
            if number % _STEP == 0:
                yield
        for relay in loss:
            blame = max(0.0, lost[relay] - _FORGIVEN)
            loss[relay] = blame / (blame + passed[relay] + _TRUST)
    found = {relay: Losses(0.0, float(count)) for relay, count in sure.items()}
    return found | {relay: Losses(count, passed[relay]) for relay, count in lost.items()}


def _lay(
    way: tuple[RelayId, ...],
    count: int,
    loss: Mapping[RelayId, float],
    lost: dict[RelayId, float],
    passed: dict[RelayId, float],
) -> None:
    """Attribute `count` losses to the relays of one path, by their loss rates."""
    through = math.prod(1 - loss[relay] for relay in way)
    all_lost = max(1 - through, _NEVER)
    come = 1.0
    for relay in way:
        lost[relay] += count * come * loss[relay] / all_lost
        come *= 1 - loss[relay]
        passed[relay] += count * max(0.0, come - through) / all_lost
