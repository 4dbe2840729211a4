"""Covering: what a provider is told wants all that the true one wants, and hardly more than it must."""

from __future__ import annotations

import json
import math
from random import Random

import pytest
from covering import Excess, near, try_case
from hypothesis import given, settings
from hypothesis import strategies as st
from spatial_world import OWNER

from hushcast_protocol.base.errors import UsageError
from hushcast_protocol.base.wire import encode
from hushcast_protocol.spatial import subscription_blur as covering_module
from hushcast_protocol.spatial.batch import BatchInterval, make_batch, read_batch
from hushcast_protocol.spatial.keywords import NEWEST
from hushcast_protocol.spatial.located_answer import ProviderBatch
from hushcast_protocol.spatial.located_messages import read_message
from hushcast_protocol.spatial.located_subscription import LocatedSubscription
from hushcast_protocol.spatial.places import EARTH, SCALE, chord, on_earth, place_of, square
from hushcast_protocol.spatial.similarity import WeightedSubscription, in_order
from hushcast_protocol.spatial.subscription_blur import (
    cover,
    covers,
    least_similarity,
    middle_of_cell,
    narrowed,
)
from hushcast_protocol.spatial.verifier import verify
from hushcast_protocol.spatial.weight_table import idf, sign_table

HERE = place_of(60.17, 24.94)


def asked(
    weights: dict[str, int], alpha: int, threshold: int, kilometres: float = 100
) -> WeightedSubscription:
    return WeightedSubscription(HERE, in_order(weights), alpha, threshold, chord(kilometres))


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(st.integers(0, 2**32))
def test_nothing_is_missed(seed: int) -> None:
    try_case(Random(seed), Excess())


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(st.floats(-90, 90), st.floats(-180, 180), st.sampled_from((0.1, 1, 10, 500, 8000, 50_000)))
def test_a_cell_has_one_middle_that_is_near(latitude: float, longitude: float, kilometres: float) -> None:
    place = place_of(latitude, longitude)
    middle = middle_of_cell(place, kilometres)
    assert on_earth(middle)
    assert middle_of_cell(middle, kilometres) == middle
    away = 2 * EARTH * math.asin(min(math.sqrt(square(place, middle)) / (2 * SCALE), 1))
    assert away <= 0.8 * kilometres + 0.001


def test_whoever_is_near_each_other_is_told_as_one_place() -> None:
    random = Random(1)
    places = [near(random, (60.17, 24.94), 5) for _ in range(400)]
    assert 2 <= len({middle_of_cell(one, 20) for one in places}) <= 9


@pytest.mark.parametrize("kilometres", [0, -1, math.nan, math.inf])
def test_no_grid_of_such_cells(kilometres: float) -> None:
    with pytest.raises(UsageError, match="kilometres"):
        middle_of_cell(HERE, kilometres)


def test_without_blur_it_is_the_subscription_itself() -> None:
    told = cover(asked({"shoe": 3, "red": 2}, 500, 700))
    assert told == LocatedSubscription(HERE, ("red", "shoe"), 500, 700)


def test_the_threshold_falls_by_what_a_message_may_lose_and_no_more() -> None:
    true = asked({"shoe": 2, "red": 2}, 500, 700)
    # With `red` alone, a quarter of the weight: sim 0.25 by words, 0.45 by place. What is told sees 0.45.
    assert least_similarity(true, HERE, ["shoe"]) == 450
    # By a tenth of the greatest distance, of which alpha leaves a half.
    moved = (HERE[0], HERE[1], HERE[2] - true.most // 10)
    assert least_similarity(true, moved, ["shoe", "red"]) == 650
    assert least_similarity(true, moved, ["shoe"]) == 400
    # Words count nine tenths: with `red` alone the place cannot bring the rest, so `shoe` has to be there.
    assert least_similarity(asked({"shoe": 2, "red": 2}, 900, 700), HERE, ["shoe"]) == 900


def test_the_threshold_cannot_be_higher() -> None:
    """At the border there is a message that a threshold one thousandth higher would miss."""
    random, tight = Random(2), 0
    for _ in range(300):
        weights = {f"w{at}": random.randrange(1, 50) for at in range(random.randint(1, 4))}
        true = asked(weights, random.choice((100, 500, 900)), random.choice((500, 700, 900)))
        told = list(true.weights)[: random.randint(1, 4)]
        best = least_similarity(true, HERE, told)
        least = min(_similarity(true, told, some) for some in _wanted_at_border(true))
        assert best <= least * 1000 + 1e-9
        tight += best == math.floor(least * 1000 + 1e-9)
    assert tight == 300


def _wanted_at_border(true: WeightedSubscription) -> list[tuple[frozenset[str], float]]:
    """Each set of words, and the least that the place has to bring so that it is wanted."""
    words, found = list(true.weights), []
    for bits in range(2 ** len(words)):
        some = frozenset(word for at, word in enumerate(words) if bits >> at & 1)
        common = sum(true.weights[word] for word in some)
        needed = max(0.0, true.threshold / 1000 - true.alpha / 1000 * common / true.whole)
        if needed <= 1 - true.alpha / 1000 + 1e-12:
            found.append((some, needed))
    return found


def _similarity(true: WeightedSubscription, told: list[str], message: tuple[frozenset[str], float]) -> float:
    some, by_place = message
    whole = sum(true.weights[word] for word in told)
    common = sum(true.weights[word] for word in told if word in some)
    return true.alpha / 1000 * common / whole + by_place


def test_a_threshold_does_not_tell_where_in_its_cell_a_place_is() -> None:
    random = Random(3)
    told = {}
    for _ in range(200):
        place = near(random, (60.17, 24.94), 8)
        true = WeightedSubscription(place, in_order({"shoe": 3, "red": 2}), 500, 700, chord(100))
        one = cover(true, 20, 1)
        told.setdefault(one.place, set()).add(one)
    assert 1 < len(told) < 9
    assert all(len(some) == 1 for some in told.values())


def test_a_threshold_hardly_tells_what_was_left_out() -> None:
    thresholds = {cover(asked({"shoe": 900, "red": at}, 500, 700), None, 1).threshold for at in range(1, 900)}
    assert len(thresholds) <= 14


def test_many_words_are_bounded_from_below(monkeypatch: pytest.MonkeyPatch) -> None:
    true = asked({f"w{at}": 1000 + 7**at % 1013 for at in range(12)}, 900, 700)
    exact = least_similarity(true, HERE, list(true.weights)[:10])
    monkeypatch.setattr(covering_module, "MAX_SUMS", 8)
    assert 0 < least_similarity(true, HERE, list(true.weights)[:10]) <= exact


def test_what_would_want_everything_is_refused_with_a_way_out() -> None:
    true = asked({"shoe": 1, "red": 1}, 500, 500)
    for kilometres, words in ((5000.0, None), (400.0, 1)):
        with pytest.raises(UsageError, match="tell more of the keywords"):
            cover(true, kilometres, words)
    with pytest.raises(UsageError, match="one keyword"):
        cover(true, None, 0)


def test_new_weights_may_uncover() -> None:
    told = cover(asked({"shoe": 9, "red": 1}, 500, 700), 1, 1)
    assert told.words == ("shoe",)
    assert covers(told, asked({"shoe": 9, "red": 1}, 500, 700))
    assert covers(told, asked({"shoe": 99, "red": 1}, 500, 700))
    assert not covers(told, asked({"shoe": 1, "red": 9}, 500, 700))
    assert not covers(told, asked({"shoe": 9, "red": 1}, 500, 700, kilometres=1))
    assert not covers(told, asked({"boot": 9}, 500, 700))


def test_an_answer_to_what_is_told_holds_and_is_narrowed_down() -> None:
    random = Random(4)
    said = []
    for at in range(60):
        words = " ".join(random.sample(["shoe", "red", "boot", "sale", "tram"], 2))
        line = {"id": str(at), "lat": 60.17 + random.gauss(0, 0.2), "lon": 24.94, "text": words}
        said.append(read_message(json.dumps(line).encode(), 1))
    weights, other = idf(one.words for one in said)
    table = sign_table(OWNER, 1, weights, other, chord(100))
    whole = make_batch(OWNER, BatchInterval(0, 300, None), table, 4, said)
    _, batch, root = read_batch(encode(whole))
    mine = LocatedSubscription(HERE, ("red", "shoe"), 500, 700)
    true = table.asked(mine)
    told = cover(true, 20, 1)
    (answer,) = ProviderBatch(batch, root, table).answers([told])
    shown = verify(OWNER.public(), told, encode(answer)).messages
    (exact,) = ProviderBatch(batch, root, table).answers([mine])
    wanted = verify(OWNER.public(), mine, encode(exact)).messages
    assert {one.id for one in narrowed(true, shown, NEWEST)} == {one.id for one in wanted}
    assert len(shown) > len(wanted) > 0
