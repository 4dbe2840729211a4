"""What answers of located feeds are made of: places, words, pages, similarity, trees, tables, prefixes."""

from __future__ import annotations

import math
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from spatial_world import OWNER, STRANGER, VOCABULARY, World, message, subscription, wants

from hushcast_protocol.base.errors import DecodeError, UsageError
from hushcast_protocol.base.wire import encode
from hushcast_protocol.spatial import places as places_module
from hushcast_protocol.spatial.answer_problems import AnswerProblem, InvalidAnswer
from hushcast_protocol.spatial.keywords import MAX_WORD, MAX_WORDS, WordRule, words_of
from hushcast_protocol.spatial.located_messages import (
    MAX_ID,
    MAX_MESSAGES,
    MAX_PAYLOAD,
    LocatedMessage,
    read_message,
)
from hushcast_protocol.spatial.located_subscription import MAX_KEYWORDS, read_subscription
from hushcast_protocol.spatial.places import (
    EARTH,
    MAX_DISTANCE,
    SCALE,
    around,
    chord,
    degrees_of,
    on_earth,
    place_of,
    square,
    square_to_box,
)
from hushcast_protocol.spatial.postings import common_weights, pack, unpack
from hushcast_protocol.spatial.prefixes import DUMMY, prefix
from hushcast_protocol.spatial.similarity import ANYWHERE, WeightedSubscription, in_order
from hushcast_protocol.spatial.tmr_tree import EMPTY, BatchWords, TreeNode, entries_of, grow, root_hash
from hushcast_protocol.spatial.weight_table import WeightTable, asked_by_excerpt, idf, read_table, sign_table
from hushcast_protocol.spatial.word_pages import PAGE, PagedWords, ShownPages, page_with, root_of

latitudes, longitudes = st.floats(-90, 90), st.floats(-180, 180)
places = st.builds(place_of, latitudes, longitudes)


@given(latitudes, longitudes, latitudes, longitudes)
def test_distances_are_chords_of_the_earth(north: float, east: float, other: float, far: float) -> None:
    one, two = place_of(north, east), place_of(other, far)
    assert on_earth(one)
    vectors = [
        (math.cos(math.radians(a)) * math.cos(math.radians(o)),
         math.cos(math.radians(a)) * math.sin(math.radians(o)),
         math.sin(math.radians(a)))
        for a, o in ((north, east), (other, far))
    ]  # fmt: skip
    assert math.sqrt(square(one, two)) / SCALE == pytest.approx(math.dist(*vectors), abs=1e-8)


@settings(max_examples=40)
@given(latitudes, longitudes)
def test_a_place_is_the_same_on_every_machine(north: float, east: float) -> None:
    assert place_of(north, east) == places_module._exactly(north, east)


def test_where_a_half_is_rounded_another_sine_gives_the_same_place(monkeypatch: pytest.MonkeyPatch) -> None:
    random = Random("halves")
    degrees = [(random.uniform(-90, 90), random.uniform(-180, 180)) for _ in range(2000)]
    here = [place_of(*one) for one in degrees]
    sine, cosine = math.sin, math.cos
    monkeypatch.setattr(places_module, "_DOUBT", 0.01)  # so that the error may be large enough to be met
    monkeypatch.setattr(math, "sin", lambda angle: sine(angle) * (1 + 4e-12))
    monkeypatch.setattr(math, "cos", lambda angle: cosine(angle) * (1 - 3e-12))
    assert [place_of(*one) for one in degrees] == here


def test_there_is_no_seam_and_no_pole() -> None:
    assert place_of(-17.7, 180) == place_of(-17.7, -180)
    assert place_of(90, 12) == place_of(90, -100) == (0, 0, SCALE)
    here, beyond = place_of(0, 179.999), place_of(0, -179.999)
    assert math.sqrt(square(here, beyond)) == pytest.approx(chord(0.002 / 360 * 2 * math.pi * EARTH), abs=2)
    assert degrees_of(place_of(60.1699, 24.9384)) == (60.1699, 24.9384)


@pytest.mark.parametrize("given", [(91, 0), (-90.001, 0), (0, 181), (math.nan, 0), (0, math.inf)])
def test_what_is_off_the_earth_is_no_place(given: tuple[float, float]) -> None:
    with pytest.raises(UsageError, match="are no place"):
        place_of(*given)


def test_what_came_from_outside_is_on_the_earth_or_not() -> None:
    assert not on_earth((0, 0, 0))
    assert not on_earth((SCALE, SCALE, SCALE))
    assert on_earth((SCALE, 0, 0))


def test_distances_on_the_ground_become_chords() -> None:
    assert chord(1e-9) == 1
    assert chord(math.pi * EARTH) == chord(1e9) == MAX_DISTANCE
    assert chord(1) == pytest.approx(SCALE / EARTH, abs=1)
    for wrong in (0, -1, math.nan, math.inf):
        with pytest.raises(UsageError, match="kilometres"):
            chord(wrong)


@given(places, st.lists(places, min_size=1, max_size=5))
def test_a_box_is_no_farther_than_what_is_in_it(
    here: tuple[int, int, int], inside: list[tuple[int, int, int]]
) -> None:
    box = around((one, one) for one in inside)
    assert square_to_box(here, box) <= min(square(here, one) for one in inside)
    assert all(square_to_box(one, box) == 0 for one in inside)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Shoes! SHOES, adidas-shoes.", ("adidas", "shoes")),
        ("Straße, ﬁne Ⅷ x²", ("fine", "strasse", "viii", "x2")),
        ("हिन्दी e\u0301te\u0301", ("été", "हिन्दी")),
        (" … ", ()),
    ],
)
def test_words_of_a_text(text: str, words: tuple[str, ...]) -> None:
    assert words_of(text) == words


@settings(max_examples=40)
@given(st.text(max_size=30))
def test_words_of_words_are_the_same_words(text: str) -> None:
    words = words_of(text)
    assert words_of(" ".join(words)) == words


def test_a_word_has_an_end() -> None:
    assert words_of("a" * MAX_WORD) == ("a" * MAX_WORD,)
    assert words_of("a" * (MAX_WORD + 1)) == ("a" * MAX_WORD,)
    assert words_of("é" * (MAX_WORD + 1), WordRule.RUNS) == ("é" * MAX_WORD,)
    assert len(words_of(" ".join(map(str, range(MAX_WORDS + 1))))) == MAX_WORDS


@given(
    st.sets(st.text("abcdé", min_size=1, max_size=4), max_size=60), st.text("abcdé", min_size=1, max_size=4)
)
def test_pages_show_what_is_there_and_what_is_not(words: set[str], asked: str) -> None:
    paged = PagedWords(sorted(words))
    shown = paged.shown([paged.page_of(asked)])
    assert root_of(shown) == paged.root
    page = page_with(shown, asked)
    assert page is not None
    assert (asked in page.words) is (asked in words)


@pytest.mark.slow
@given(st.integers(1, 100), st.data())
def test_any_pages_lead_to_the_root_and_no_others_do(count: int, data: st.DataObject) -> None:
    words = [f"{number:04}" for number in range(count)]
    paged = PagedWords(words, range(1, count + 1))
    assert len(paged.pages) == -(-count // PAGE)
    at = data.draw(st.sets(st.integers(0, len(paged.pages) - 1), min_size=1))
    shown = paged.shown(at)
    assert root_of(shown) == paged.root
    for hostile in (
        replace(shown, count=shown.count + 1),
        replace(shown, at=tuple(one + 1 for one in shown.at)),
        replace(shown, pages=shown.pages[1:] + shown.pages[:1] if len(shown.pages) > 1 else ()),
        replace(shown, beside=shown.beside[1:]),
        replace(shown, beside=(*shown.beside, bytes(32))),
    ):
        if hostile != shown:
            assert _root(hostile) != paged.root


def _root(shown: ShownPages) -> bytes | None:
    try:
        return root_of(shown)
    except DecodeError:
        return None


@pytest.mark.slow
@given(st.integers(0, 1000), st.integers(0, 1000), st.integers(1, MAX_DISTANCE), st.data())
def test_more_words_and_less_distance_never_make_a_yes_a_no(
    alpha: int, theta: int, most: int, data: st.DataObject
) -> None:
    weights = data.draw(st.lists(st.integers(1, 10_000), min_size=1, max_size=5))
    asked = WeightedSubscription(
        (0, 0, SCALE), {str(at): weight for at, weight in enumerate(weights)}, alpha, theta, most
    )
    common = data.draw(st.integers(0, asked.whole))
    at = data.draw(st.integers(0, 4 * SCALE * SCALE))
    farthest = asked.farthest(common)
    assert asked.reaches(common, at) is (at <= farthest)
    if asked.reaches(common, at):
        assert asked.reaches(asked.whole, at)
        assert asked.reaches(common, 0)
    assert farthest <= ANYWHERE


def signed_of(said: list[LocatedMessage], fan_out: int) -> tuple[bytes, bytes]:
    """What an owner signs of messages: the roots of their tree and of their words."""
    root = grow(said, fan_out)
    return root_hash(root), BatchWords(root).paged.root


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**64))
def test_the_tree_is_the_same_for_the_same_messages(seed: int) -> None:
    random = Random(seed)
    said = [message(random, 1, str(at)) for at in range(random.randint(0, 40))]
    fan_out = random.randint(2, 9)
    root = grow(said, fan_out)
    random.shuffle(said)
    assert signed_of(said, fan_out) == signed_of(said[::-1], fan_out)
    assert root_hash(grow(said, fan_out)) == root_hash(root)
    if root is None:
        assert root_hash(root) == EMPTY
        return
    assert root.count == len(said)
    below: list[TreeNode] = [root]
    while below:
        node = below.pop()
        assert 1 <= len(node.children) <= fan_out
        assert node.words == frozenset().union(*(child.words for child in node.children))
        assert [child.first for child in node.children] == [
            node.first + sum(child.count for child in node.children[:at]) for at in range(len(node.children))
        ]
        assert node.box == around(child.box for child in node.children)
        below += [child for child in node.children if isinstance(child, TreeNode)]
    one = random.choice(said)
    changes = (
        {"id": "other"},
        {"payload": one.payload + b"."},
        {"words": (*one.words, "\U0010ffff")},
        {"number": 2},
    )
    others = [other for other in said if other is not one]
    for change in changes:
        assert signed_of([*others, replace(one, **change)], fan_out) != signed_of(said, fan_out)
    assert root_hash(grow(others, fan_out)) != root.hash


@given(st.sets(st.integers(0, 60) | st.integers(0, MAX_MESSAGES - 1), min_size=1))
def test_postings_are_numbers_in_few_bytes(numbers: set[int]) -> None:
    postings = pack(sorted(numbers))
    assert unpack(postings) == sorted(numbers)
    assert len(postings) <= min(len(numbers), max(numbers) // 8 + 1)


def test_postings_say_which_messages_have_a_word() -> None:
    random = Random("postings")
    root = grow([message(random, 1, str(at)) for at in range(40)], 3)
    said = BatchWords(root)
    for number, entry in enumerate(entries_of(root)):
        assert entry.first == number
        assert entry.words == {word for word, numbers in said.numbers.items() if number in numbers}
    weights = {"a": 5, "b": 7, "c": 9}
    assert common_weights(weights, {"a": [0, 2], "b": [2]}, 3) == [5, 0, 12]
    with pytest.raises(DecodeError):
        common_weights(weights, {"a": [3]}, 3)


def test_a_tree_is_as_deep_as_its_messages_need() -> None:
    random = Random("depth")
    for count, fan_out, depth in ((64, 2, 6), (65, 2, 7), (1, 2, 1), (100, 64, 2)):
        root = grow([message(random, 1, str(at)) for at in range(count)], fan_out)
        found = 0
        while isinstance(root, TreeNode):
            found, root = found + 1, root.children[0]  # type: ignore[assignment]
        assert found == depth


def table(weights: dict[str, int], version: int = 1) -> WeightTable:
    return sign_table(OWNER, version, weights, 50, chord(10))


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**64))
def test_an_excerpt_weighs_as_the_table_does(seed: int) -> None:
    random = Random(seed)
    known = table({word: random.randint(1, 99) for word in random.sample(VOCABULARY, random.randint(0, 60))})
    again = read_table(encode(known.whole), OWNER.public())
    one = subscription(random)
    expected = WeightedSubscription(
        one.place,
        in_order({word: known.weights.get(word, 50) for word in one.words}),
        one.alpha,
        one.threshold,
        chord(10),
    )
    assert again.asked(one) == asked_by_excerpt(one, known.body, again.excerpt(one)) == expected
    assert list(expected.weights.values()) == sorted(expected.weights.values(), reverse=True)


def test_a_table_is_its_owners_and_in_order() -> None:
    whole = table({"a": 1, "b": 2}).whole
    for hostile in (replace(whole, words=("b", "a")), replace(whole, weights=(1,))):
        with pytest.raises(DecodeError):
            read_table(encode(hostile), OWNER.public())
    for other in (replace(whole, weights=(1, 3)), replace(whole, words=("a", "c"))):
        with pytest.raises(InvalidAnswer) as raised:
            read_table(encode(other), OWNER.public())
        assert raised.value.problem is AnswerProblem.WEIGHTS
    with pytest.raises(InvalidAnswer):
        read_table(encode(whole), STRANGER.public())


def test_weights_by_inverse_document_frequency() -> None:
    weights, other = idf([("a", "b"), ("a",), ("a",)])
    assert weights == {"a": 693, "b": 1386}
    assert other == 1386
    assert idf([]) == ({}, 1)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**64))
def test_what_is_wanted_shares_a_word_of_the_prefix_within_its_distance(seed: int) -> None:
    world = World.draw(Random(seed), most=12, intervals=1)
    feed = world.feeds[0]
    said = [message(world.random, 1, str(at)) for at in range(12)]
    for one in world.subscriptions:
        filed = prefix(feed.table.asked(one))
        assert [word for word, _ in filed if word != DUMMY] == list(feed.table.asked(one).weights)[
            : sum(word != DUMMY for word, _ in filed)
        ]
        for other in said:
            if wants(one, other, feed.table):
                at = square(one.place, other.place)
                assert any(word in (*other.words, DUMMY) and at <= farthest for word, farthest in filed)


def test_a_prefix_ends_where_the_rest_cannot_reach() -> None:
    weights = {"a": 50, "b": 30, "c": 20}
    asked = WeightedSubscription((0, 0, SCALE), weights, 500, 900, chord(10))
    assert [word for word, _ in prefix(asked)] == ["a"]  # tau is 0.8: b and c have half of it
    assert [
        word for word, _ in prefix(WeightedSubscription((0, 0, SCALE), weights, 500, 700, chord(10)))
    ] == ["a", "b"]
    assert [word for word, _ in prefix(WeightedSubscription((0, 0, SCALE), weights, 500, 500, 1))] == [
        "a",
        "b",
        "c",
        DUMMY,
    ]
    assert prefix(WeightedSubscription((0, 0, SCALE), weights, 1000, 800, 1)) == [("a", ANYWHERE)]


LINE = {"id": "1", "lat": 60.0, "lon": 25.0, "keywords": ["Shoe, discount"], "alpha": 0.5, "threshold": 0.7}


def line(**changes: object) -> bytes:
    import json

    return json.dumps(LINE | changes).encode()


def test_a_line_is_a_subscription() -> None:
    name, one = read_subscription(line())
    assert (name, one.words, one.alpha, one.threshold) == ("1", ("discount", "shoe"), 500, 700)
    assert read_subscription(line(id=7, keywords="shoe discount", alpha=0.50004))[1] == one
    without = line().replace(b'"id": "1", ', b"")
    assert read_subscription(without) == ("", one)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (b"{", "no JSON"),
        (b"[" * 100_000, "no JSON"),
        (b"[1]", "no JSON object"),
        (line(lat=91), "are no place"),
        (line(lon="25"), "'lon' is no number"),
        (line(lat=True), "'lat' is no number"),
        (line().replace(b"60.0", b"NaN"), "NaN is no number"),
        (line().replace(b"60.0", b"1e999"), "'lat' is no number that"),
        (line(lat=10**400), "'lat' is no number that"),
        (line(alpha=1.001), "'alpha' is 1.001: from 0 to 1"),
        (line(threshold=-0.1), "'threshold' is -0.1"),
        (line(keywords=[]), "'keywords' has no word"),
        (line(keywords=["…"]), "'keywords' has no word"),
        (line(keywords=[1]), "no list of texts"),
        (line(keywords=[str(at) for at in range(100_000)]), f"100,000 words, above {MAX_KEYWORDS}"),
        (line(keywords=["\ud800"]), "no valid Unicode"),
        (line(id=[]), "'id' is no text"),
        (line(teta=1), "'teta' is not known"),
        (line().replace(b'"alpha": 0.5, ', b""), "'alpha' is missing"),
    ],
)
def test_what_is_no_subscription_is_told(given: bytes, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        read_subscription(given)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"id": ""}, "'id' has 0 characters"),
        ({"id": "1" * (MAX_ID + 1)}, f"1 to {MAX_ID}"),
        ({"text": "a " * MAX_PAYLOAD}, f"above {MAX_PAYLOAD:,}"),
        ({"text": None}, "'text' is no text"),
        ({"lat": -90.5}, "are no place"),
    ],
)
def test_what_is_no_message_is_told(given: dict[str, object], told: str) -> None:
    import json

    with pytest.raises(UsageError, match=told):
        read_message(json.dumps({"id": "1", "lat": 0, "lon": 0, "text": "shoe"} | given).encode(), 1)
