"""What brokers state: signatures, numbers, caps, epochs and ends; and that crowds equal a recount."""

from __future__ import annotations

from random import Random

import pytest
from filter_examples import Brute
from hypothesis import given as drawn_from
from hypothesis import strategies as st
from tomography_examples import (
    CAP,
    EPOCH,
    EPOCHS,
    KEYS,
    NOW,
    SEEDS,
    WHOLE,
    drawn_sides,
    names,
    several,
    statement,
    tree,
    wanted,
)

from hushcast_protocol.base.crypto.signatures import Signed
from hushcast_protocol.base.errors import PeerError, Refusal
from hushcast_protocol.base.wire import encode
from hushcast_protocol.brokers.anonymity_conditions import AnonymityCondition
from hushcast_protocol.brokers.filters import Filter
from hushcast_protocol.brokers.tomography import stated_filters as limits
from hushcast_protocol.brokers.tomography.stated_filters import StatedFilters
from hushcast_protocol.brokers.tomography.statements import (
    Contradiction,
    decode_contradiction,
    is_proven,
    read_statement,
)

FIRES = wanted((0, 9))
BELOW = {"root": "ab", "c": "ab", "a": "a", "b": "b"}
"""Edge brokers whose filters come to a broker."""


def heard(gathered: StatedFilters, broker: str, *made: Signed, now: float = NOW) -> None:
    for signed in made:
        gathered.hear(KEYS[broker], signed, EPOCHS, now)


def refused(gathered: StatedFilters, broker: str, signed: Signed, now: float = NOW) -> str:
    rows = gathered.rows
    with pytest.raises(Refusal) as refusal:
        gathered.hear(KEYS[broker], signed, EPOCHS, now)
    assert gathered.rows <= rows
    return refusal.value.reason


def level(gathered: StatedFilters, broker: str, given: Filter = FIRES) -> int:
    return gathered.crowd(KEYS[broker]).level(given, AnonymityCondition.SOURCE)


def test_a_source_counts_where_the_filter_is_held_on_its_way_up() -> None:
    gathered = StatedFilters(tree(), CAP)
    heard(gathered, "a", statement("a", 1, FIRES, names(1, 2)))
    assert (level(gathered, "a"), level(gathered, "c")) == (2, 0)
    heard(gathered, "c", statement("c", 1, FIRES))
    heard(gathered, "b", statement("b", 1, FIRES, names(3)))
    heard(gathered, "d", statement("d", 1, FIRES))
    assert (level(gathered, "a"), level(gathered, "c"), level(gathered, "root")) == (2, 3, 0)
    assert level(gathered, "d") == 0  # it is not above them
    heard(gathered, "a", statement("a", 2, FIRES, is_held=False))
    assert (level(gathered, "a"), level(gathered, "b"), level(gathered, "c")) == (0, 1, 1)
    heard(gathered, "c", statement("c", 2, FIRES, is_held=False))
    assert level(gathered, "c") == 0


def test_statements_that_are_not_the_brokers_own_are_refused() -> None:
    gathered = StatedFilters(tree(), CAP)
    good = statement("a", 1, FIRES, names(1))
    assert refused(gathered, "b", good) == "forged"
    assert refused(gathered, "a", Signed(good.body, bytes(64))) == "forged"
    assert refused(gathered, "a", Signed(good.body[:-1], good.signature)) == "form"
    with pytest.raises(Refusal, match="unknown"):
        gathered.hear(bytes(32), good, EPOCHS, NOW)
    upside_down = wanted((9, 3))
    assert refused(gathered, "a", statement("a", 1, upside_down, names(1))) == "form"


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        ({"epoch": EPOCH - 1}, "stale"),
        ({"epoch": EPOCH + 1}, "stale"),
        ({"until": int(NOW)}, "stale"),
        ({"until": int(NOW + limits.MAX_STATED) + 1}, "stale"),
        ({"is_held": False}, "form"),
        ({"bogus": 3}, "form"),
        ({"sources": names(1, 1)}, "form"),
    ],
)
def test_statements_of_another_time_or_in_bad_form_are_refused(other: dict[str, object], reason: str) -> None:
    made = statement("a", 1, FIRES, **({"sources": names(1, 2)} | other))  # type: ignore[arg-type]
    assert refused(StatedFilters(tree(), CAP), "a", made) == reason


def test_an_earlier_number_is_stale_and_the_same_twice_with_other_words_is_evidence() -> None:
    gathered = StatedFilters(tree(), CAP)
    first, second = statement("a", 5, FIRES, names(1)), statement("a", 6, WHOLE, names(1))
    heard(gathered, "a", first, second)
    assert refused(gathered, "a", first) == refused(gathered, "a", second) == "stale"
    assert refused(gathered, "a", statement("a", 3, FIRES, names(2))) == "stale"
    assert not gathered.contradictions
    other = statement("a", 5, FIRES, names(1, 2))
    assert refused(gathered, "a", other) == "contradicted"
    assert gathered.rows == 0  # nothing that it said counts any more
    assert refused(gathered, "a", statement("a", 7, FIRES, names(1))) == "contradicted"
    evidence = gathered.contradictions[KEYS["a"]]
    assert is_proven(evidence, KEYS["a"])
    assert decode_contradiction(encode(evidence)) == evidence
    assert not is_proven(evidence, KEYS["b"])
    assert not is_proven(Contradiction(first, first), KEYS["a"])
    assert not is_proven(Contradiction(first, second), KEYS["a"])


def test_a_broker_vouches_for_its_own_and_for_no_more_than_its_cap() -> None:
    gathered = StatedFilters(tree(), 3)
    assert refused(gathered, "c", statement("c", 1, FIRES, names(1))) == "not-edge"
    heard(gathered, "a", statement("a", 1, FIRES, names(1, 2)), statement("a", 2, WHOLE, names(2, 3)))
    assert refused(gathered, "a", statement("a", 3, wanted((1, 2)), names(4))) == "cap"
    assert refused(gathered, "b", statement("b", 1, FIRES, names(3))) == "another's"
    # The same statement without one that only it named leaves room for another.
    heard(gathered, "a", statement("a", 4, FIRES, names(2, 4)))
    assert gathered.vouched(KEYS["a"], FIRES.topic) == set(names(2, 3, 4))
    heard(gathered, "b", statement("b", 2, FIRES, names(1)))


def test_bounds_on_filters_of_one_broker_and_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    gathered = StatedFilters(tree(), CAP)
    monkeypatch.setattr(limits, "MAX_ROWS_EACH", 1)
    heard(gathered, "a", statement("a", 1, FIRES, names(1)))
    assert refused(gathered, "a", statement("a", 2, WHOLE, names(1))) == "quota"
    heard(gathered, "a", statement("a", 3, FIRES, names(1, 2)))  # in place of the first
    monkeypatch.setattr(limits, "MAX_ROWS", 1)
    assert refused(gathered, "b", statement("b", 1, FIRES, names(3))) == "quota"


def test_a_new_epoch_begins_without_the_pseudonyms_of_the_one_before() -> None:
    gathered = StatedFilters(tree(), 2)
    heard(gathered, "a", statement("a", 1, FIRES, names(1, 2)), statement("a", 2, WHOLE, names(1)))
    both = range(EPOCH, EPOCH + 2)
    gathered.hear(KEYS["a"], statement("a", 3, FIRES, names(3, 4), epoch=EPOCH + 1), both, NOW)
    assert level(gathered, "a") == 2
    assert level(gathered, "a", WHOLE) == 0
    with pytest.raises(Refusal, match="stale"):
        gathered.hear(KEYS["a"], statement("a", 2, WHOLE, names(1)), both, NOW)


def test_statements_end() -> None:
    gathered = StatedFilters(tree(), CAP)
    heard(gathered, "a", statement("a", 1, FIRES, names(1), until=int(NOW) + 100))
    heard(gathered, "b", statement("b", 1, FIRES, names(2), until=int(NOW) + 50))
    heard(gathered, "a", statement("a", 2, FIRES, names(1), until=int(NOW) + 200))
    assert gathered.deadline() == gathered.until(FIRES.topic) == int(NOW) + 50
    assert gathered.expire(NOW + 49) == set()
    assert gathered.expire(NOW + 50) == {FIRES.topic}
    assert gathered.until(FIRES.topic) == int(NOW) + 200
    assert gathered.expire(NOW + 200) == {FIRES.topic}
    assert gathered.deadline() == gathered.until(FIRES.topic) == float("inf")
    assert gathered.rows == 0


def test_who_is_no_longer_there_or_elsewhere_in_the_tree_counts_no_more() -> None:
    gathered = StatedFilters(tree(), CAP)
    heard(gathered, "a", statement("a", 1, FIRES, names(1)))
    heard(gathered, "b", statement("b", 1, FIRES, names(2)))
    heard(gathered, "c", statement("c", 1, FIRES))
    assert level(gathered, "c") == 2
    gathered.use(tree(c="root", d="root", b="d"))
    assert level(gathered, "b") == 1
    assert level(gathered, "c") == 0
    heard(gathered, "d", statement("d", 1, FIRES))
    assert level(gathered, "d") == 1
    assert refused(gathered, "a", statement("a", 2, FIRES, names(1))) == "unknown"


@pytest.mark.slow
@several
@drawn_from(st.integers(0, 2**32))
def test_crowds_are_what_a_recount_gives(seed: int) -> None:
    random = Random(seed)
    gathered = StatedFilters(tree(), CAP)
    held: dict[str, dict[Filter, tuple[bytes, ...]]] = {name: {} for name in ("root", "c", "a", "b")}
    for number in range(20):
        broker = random.choice(list(held))
        given = Filter(WHOLE.topic, drawn_sides(random))
        base = {"a": 100, "b": 200}.get(broker)
        sources = names(*random.sample(range(base, base + 4), random.randrange(4))) if base else ()
        is_held = random.random() < 0.8
        made = statement(broker, number, given, sources if is_held else (), is_held=is_held)
        gathered.hear(KEYS[broker], made, EPOCHS, NOW)
        held[broker].pop(given, None)
        if is_held:
            held[broker][given] = sources
    for broker, rows in held.items():
        brute = Brute()
        for given in rows:
            for below in BELOW[broker]:
                for source in held[below].get(given, ()):
                    brute.insert(given, source)
        crowd = gathered.crowd(KEYS[broker])
        for given in brute.held:
            for condition in AnonymityCondition:
                assert crowd.level(given, condition) == brute.level(given, condition)
    assert gathered.rows == sum(map(len, held.values()))


@several
@drawn_from(st.data())
def test_a_changed_or_cut_statement_is_told_from_its_brokers(data: st.DataObject) -> None:
    body = statement("a", 1, FIRES, names(1, 2, 3)).body
    signature = statement("a", 1, FIRES, names(1, 2, 3)).signature
    at = data.draw(st.integers(0, len(body) - 1))
    bit = 1 << data.draw(st.integers(0, 7))
    changed = body[:at] + bytes([body[at] ^ bit]) + body[at + 1 :]
    for wrong in (changed, body[:at]):
        with pytest.raises(PeerError):
            read_statement(Signed(wrong, signature), KEYS["a"])


def test_examples_are_signed_by_whom_they_say() -> None:
    assert {name: seed.public() for name, seed in SEEDS.items()} == KEYS
