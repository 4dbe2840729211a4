"""What is believed of keepers that may have been away, or lie."""

from __future__ import annotations

from hushcast_protocol.overlay.kept_answers import MAX_AWAY, KeptIds, last_epoch, shown_by_most, windows

DAY = 20_000
LAST = last_epoch(DAY)
ONE, TWO, THREE = (bytes([number]) * 32 for number in range(3))
KEEPERS = [number.to_bytes(32, "big") for number in range(6)]


def says(*ids: bytes, is_away: bool = False) -> KeptIds:
    return KeptIds(frozenset(ids), frozenset({LAST} if is_away else ()))


def believed(*answers: KeptIds) -> set[bytes]:
    return shown_by_most(dict(zip(KEEPERS, answers, strict=False)), LAST)


def test_the_last_epoch_of_a_day_is_its_last_window_but_one() -> None:
    assert list(windows(DAY))[-2] == LAST
    assert len(windows(DAY)) == MAX_AWAY


def test_what_one_keeper_alone_shows_or_fewer_than_half_is_not_believed() -> None:
    assert believed(says(ONE)) == set()
    assert believed(says(ONE), says(ONE, TWO)) == {ONE}
    some, others = [says(ONE)] * 2, [says(ONE, TWO)] * 3
    assert believed(says(ONE, THREE), *some, *others) == {ONE}, "half are not most"


def test_who_was_away_counts_for_what_it_shows_and_not_against_the_rest() -> None:
    was_away = says(is_away=True)
    assert believed(says(ONE), says(ONE), says(), says()) == set()
    assert believed(says(ONE), says(ONE), was_away, was_away, was_away) == {ONE}
    assert believed(says(ONE), says(ONE, is_away=True), says(), was_away) == {ONE}
    assert believed(says(ONE), was_away, was_away) == set(), "one alone"


def test_a_keeper_that_was_away_is_not_said_to_lack_a_message() -> None:
    kept = says(ONE, is_away=True)
    assert not kept.lacks(ONE, LAST - 1)
    assert kept.lacks(TWO, LAST - 1), "it was back"
    assert not kept.lacks(TWO, LAST)
