"""Likeness: probes have sizes, attributes and recurring tokens of what came, or any while nothing came."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from statistics import fmean

import pytest
from core_examples import properties
from hypothesis import given
from hypothesis import strategies as st

from hushcast_protocol.base.crypto.secrets import TopicKey
from hushcast_protocol.content.attributes import Values
from hushcast_protocol.content.likeness import OTHERS, Likeness, draw_likeness, draw_values
from hushcast_protocol.content.payload_sizes import PADDED_SIZES
from hushcast_protocol.content.predicates import parse_where
from hushcast_protocol.content.tokens import TOKEN_COUNTS, published_tokens
from hushcast_protocol.content.topics import make_topic

TOPIC = make_topic("heights", ["kind", "place", "height:0..1000", "wind:0..100000:0.5"])
KEY = TopicKey(bytes(32))


class Dice:
    """Draws that replay."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self.randomness: Callable[[int], bytes] = self._random.randbytes

    def below(self, bound: int) -> int:
        return self._random.randrange(bound)


def drawn(came: Sequence[Likeness], where: str = "", count: int = 4000) -> list[Likeness]:
    dice, known = Dice(1), parse_where(where, TOPIC.attributes).conditions
    return [draw_likeness(came, TOPIC.attributes, known, dice) for _ in range(count)]


def test_probes_are_like_what_came_but_for_a_few():
    plain, full = Likeness(1024, frozenset()), Likeness(65_536, frozenset({"kind", "height"}))
    counts = Counter(drawn([plain, plain, plain, full]))
    like_these = 1 - 1 / OTHERS
    assert counts[plain] / 4000 == pytest.approx(0.75 * like_these, abs=0.05)
    assert counts[full] / 4000 == pytest.approx(0.25 * like_these, abs=0.03)


@pytest.mark.slow
def test_while_nothing_came_probes_have_all_sizes_and_forms():
    found = drawn([])
    sizes = Counter(like.size for like in found)
    assert [size for size, _ in sizes.most_common()] == list(PADDED_SIZES)
    assert fmean(like.size for like in found) < 8 * 1024
    numbers = Counter(len(like.names) for like in found)
    assert set(numbers) == {0, 1, 2, 3, 4}
    assert min(numbers.values()) > 600
    tokens = {
        len(published_tokens(KEY, TOPIC, draw_values(like.names, [], TOPIC.attributes, [], Dice(2)), bytes))
        for like in found[:500]
    }
    assert tokens == set(TOKEN_COUNTS[:3])


def test_what_a_carrier_knows_is_set_in_all():
    assert all("kind" in like.names for like in drawn([], "kind = fire"))
    came = [Likeness(1024, frozenset({"height"}))]
    assert all("kind" in like.names for like in drawn(came, "kind = fire"))


def recurring(messages: Sequence[Values]) -> list[float]:
    """Tell of each message how many of its tokens others of these have, the trunk left out."""
    tokens = [published_tokens(KEY, TOPIC, values, random.Random(1).randbytes)[1:] for values in messages]
    counts = Counter(token for each in tokens for token in set(each))
    return [sum(counts[token] > 1 for token in each) for each in tokens]


@pytest.mark.parametrize("few", [True, False])
def test_tokens_recur_in_probes_as_they_do_in_publications(few):
    """Whoever sees which tokens of a day come again learns nothing, be values few or ever new."""
    dice, rng = Dice(3), random.Random(4)
    came: list[Values] = [
        {
            "kind": rng.choice(["fire", "flood"]) if few else rng.randbytes(4).hex(),
            "height": rng.choice([12, 13, 700]) if few else rng.randrange(1001),
        }
        for _ in range(60)
    ]
    names = frozenset({"kind", "height"})
    probes = [draw_values(names, came, TOPIC.attributes, [], dice) for _ in range(60)]
    plain = fmean(recurring([*came[:30], *came[30:]]))
    among = recurring([*came, *probes])
    assert fmean(among[60:]) == pytest.approx(plain, rel=0.2)
    random_labels = [{"kind": rng.randbytes(8).hex(), "height": rng.randrange(1001)} for _ in range(60)]
    if few:
        assert fmean(recurring([*came, *random_labels])[60:]) < 0.8 * plain


values_drawn = st.fixed_dictionaries(
    {},
    optional={
        "kind": st.sampled_from(["fire", "flood"]),
        "place": st.text("abc", min_size=1, max_size=3),
        "height": st.integers(0, 1000),
        "wind": st.integers(0, 200_000),
    },
)


@pytest.mark.slow
@properties(100)
@given(
    st.lists(values_drawn, max_size=8),
    st.sets(st.sampled_from([attribute.name for attribute in TOPIC.attributes])),
    st.sampled_from(["", "kind = fire", "height in [17, 300]", "kind = flood, wind in [3, 999]"]),
    st.integers(0, 2**32),
)
def test_values_are_those_of_the_names_and_meet_what_is_known(came, names, where, seed):
    known = parse_where(where, TOPIC.attributes)
    names = frozenset(names) | {condition.attribute.name for condition in known.conditions}
    values = draw_values(names, came, TOPIC.attributes, known.conditions, Dice(seed))
    assert values.keys() == names
    assert known.matches(values)
    assert values.get("height", 0) in range(1001)
    assert values.get("wind", 0) in range(200_001)


def test_a_label_that_one_message_has_alone_is_not_repeated():
    """A reader would learn that who probes was there when it came."""
    came: list[Values] = [{"kind": "fire"}, {"kind": "fire"}, {"kind": "once"}]
    dice = Dice(5)
    kinds = Counter(
        draw_values(frozenset({"kind"}), came, TOPIC.attributes, [], dice)["kind"] for _ in range(300)
    )
    assert kinds["once"] == 0
    assert kinds["fire"] == pytest.approx(200, abs=40)
