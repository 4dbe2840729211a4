"""Blur: a weaker subscription that the provider is told, and wants all that the true one wants.

The place is moved to the middle of a cell of a grid that is the same for everybody, some keywords are left
out, and the threshold is lowered by as much as that may cost a message, and no more. The provider's answer is
checked as to what it was told; then the true subscription takes what it wants (k-filter anonymity has such
filters, too: a filter that covers, and readers who narrow down).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction

from hushcast_protocol.base.errors import UsageError
from hushcast_protocol.spatial.keywords import WordRule, words_of
from hushcast_protocol.spatial.located_subscription import LocatedSubscription
from hushcast_protocol.spatial.places import EARTH, Place, chord, degrees_of, place_of, square
from hushcast_protocol.spatial.similarity import WHOLE, WeightedSubscription
from hushcast_protocol.spatial.verification_object import WantedMessage

MAX_SUMS = 4096  # weights of some of the words that are told: of twelve words all; of more a bound will do
_FARTHEST = 0.8  # of a cell's height: how far a place may be from its middle
_STEP = 20  # thousandths that a threshold is rounded down to where words are left out
_HALF_ROUND = math.pi * EARTH  # kilometres from pole to pole


def middle_of_cell(place: Place, kilometres: float) -> Place:
    """Return the middle of the cell of a grid that a place is in; raise `UsageError`.

    Rows of cells go around the earth, each `kilometres` high, and cells of a row are about as wide. Who is in
    the same cell gets the same integers. No place is farther from its middle than `_FARTHEST` of the height.
    """
    if not 0 < kilometres < math.inf:
        raise UsageError(f"{kilometres} is not a number of kilometres above 0")
    latitude, longitude = degrees_of(place)
    rows = max(math.ceil(_HALF_ROUND / kilometres), 1)
    row, north = _step((latitude + 90) / 180, rows)
    widest = math.cos(math.radians(180 * (_nearest_to_equator(row, rows)) / rows - 90))
    cells = max(math.ceil(2 * rows * widest), 1)
    _, east = _step((longitude + 180) / 360, cells)
    return place_of(180 * north - 90, 360 * east - 180)


def _step(share: float, count: int) -> tuple[int, float]:
    """Return which of `count` steps of a whole a share of it is in, and the middle of that step."""
    at = min(int(share * count), count - 1)
    return at, (at + 0.5) / count


def _nearest_to_equator(row: int, rows: int) -> float:
    """Return the edge of a row, or the line in it, where it is widest."""
    return min(max(rows / 2, row), row + 1)


def cover(
    true: WeightedSubscription, kilometres: float | None = None, words: int | None = None
) -> LocatedSubscription:
    """Return the subscription to tell a provider: in the middle of a cell, with the heaviest of its words.

    `None` leaves the place, or the words, as they are. The threshold is that of whoever is farthest from the
    middle of the cell, so that it does not tell where in the cell a place is; where words are left out it is
    rounded down, so that it hardly tells what they weigh. Raises `UsageError` where nothing that a provider
    could be told says less and still wants less than everything.
    """
    if words is not None and words < 1:
        raise UsageError("one keyword has to be told at least")
    place, moved = true.place, 0
    if kilometres is not None:
        place = middle_of_cell(true.place, kilometres)
        moved = chord(_FARTHEST * kilometres)
    told = list(true.weights)[:words]  # from the heaviest on: so the least weight is left out
    threshold = least_similarity(true, place, told, moved)
    if len(told) < len(true.weights):
        threshold -= threshold % _STEP
    if threshold <= 0:
        raise UsageError(
            "so coarse a subscription would have to want everything: blur the place over fewer kilometres, "
            "tell more of the keywords, or choose a higher threshold"
        )
    return LocatedSubscription(place, tuple(sorted(told)), true.alpha, threshold)


def covers(told: LocatedSubscription, true: WeightedSubscription) -> bool:
    """Tell whether a provider that answers `told` shows all that `true` wants, by the weights of `true`."""
    if told.alpha != true.alpha or not set(told.words) <= true.weights.keys():
        return False
    return told.threshold <= least_similarity(true, told.place, told.words)


def least_similarity(true: WeightedSubscription, place: Place, words: Iterable[str], moved: int = 0) -> int:
    """Return the largest threshold, in thousandths, with which `place` and `words` want all that `true` does.

    It holds for all subscriptions like `true` whose place is `moved` away at most.

    Of a message let c be what it has in common with the true subscription, whose words weigh w, and d its
    distance. Let words of weight r be left out, v = w - r, and the place be moved by e. The told words have
    c' >= c - r in common with it, and its distance is d + e at most (triangle inequality). With a = alpha, D
    the greatest distance and y = (1 - a) max(0, 1 - d/D), what the place brings,

        sim = a c / w + y >= theta   and   sim' >= a c' / v + max(0, y - (1 - a) e / D).

    For a given c' the least sim' is at the least y, so at the largest c, c' + r, with all of the words that
    were left out: y(c') = max(0, theta - a (c' + r) / w). As c' grows, a c' / v grows by a / v for each unit,
    and y falls by a / w <= a / v at most: sim' never falls. So it is least at the least c' with which the
    place can bring the rest, y(c') <= 1 - a, of those that words among the told ones have. There it is
    attained by a message with these words at distance d, in line behind both places; rounded down to a
    thousandth it is returned. e is rounded up to an integer, which costs nothing of what is covered.
    """
    weights = [true.weights[word] for word in words]
    whole, told = true.whole, sum(weights)
    left_out = whole - told
    moved = max(moved, _root_up(square(true.place, place)))
    by_place = WHOLE - true.alpha  # in thousandths, as is all that follows
    common = 0
    if true.alpha:
        needed = Fraction((true.threshold - by_place) * whole, true.alpha) - left_out
        common = _least_sum(weights, math.ceil(needed))
    rest = max(Fraction(0), true.threshold - Fraction(true.alpha * (common + left_out), whole))
    kept = max(Fraction(0), rest - Fraction(by_place * moved, true.most))
    return math.floor(Fraction(true.alpha * common, told) + kept)


def _least_sum(weights: Iterable[int], least: int) -> int:
    """Return the least weight of some of the words that is `least` at least, or less than that weight."""
    if least <= 0:
        return 0
    sums = {0}
    for weight in weights:
        sums |= {one + weight for one in sums}
        if len(sums) > MAX_SUMS:
            return least
    return min(one for one in sums if one >= least)


def _root_up(number: int) -> int:
    root = math.isqrt(number)
    return root + (root * root < number)


def narrowed(
    true: WeightedSubscription, messages: Iterable[WantedMessage], rule: WordRule
) -> tuple[WantedMessage, ...]:
    """Return the messages that the true subscription wants, of those that hold for one that covers it.

    A message's words are those of its text, by the feed's rule. Where that is no text, it may be wanted, and
    is returned.
    """
    return tuple(one for one in messages if _wants(true, one, rule))


def _wants(true: WeightedSubscription, message: WantedMessage, rule: WordRule) -> bool:
    try:
        said = words_of(message.payload.decode(), rule)
    except UnicodeDecodeError:
        return True
    common = sum(weight for word, weight in true.weights.items() if word in said)
    return true.reaches(common, square(true.place, message.place))
