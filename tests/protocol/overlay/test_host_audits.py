"""When an owner asks a keeper, and for which day."""

from __future__ import annotations

from collections import Counter

from hushcast_protocol.overlay.host_audits import FIRST_DAY, drawn_audit

DAY = 20_000
NAMES = [number.to_bytes(16, "big") for number in range(5200)]


def test_an_audit_is_drawn_once_for_a_day_and_uniformly() -> None:
    drawn = [drawn_audit(name, DAY, 14) for name in NAMES]
    assert drawn == [drawn_audit(name, DAY, 14) for name in NAMES]
    assert None not in drawn
    audits = [one for one in drawn if one is not None]
    assert all(0 <= one.moment < 1 for one in audits)
    assert 0.48 < sum(one.moment for one in audits) / len(audits) < 0.52
    days = Counter(one.day for one in audits)
    assert set(days) == set(range(DAY - 14, DAY - FIRST_DAY + 1))
    assert max(days.values()) < 1.4 * min(days.values())
    keepers = Counter(one.place % 6 for one in audits)
    assert max(keepers.values()) < 1.2 * min(keepers.values())


def test_each_day_and_each_topic_has_a_draw_of_its_own() -> None:
    moments = {drawn_audit(name, DAY + day, 14) for name in NAMES[:50] for day in range(14)}
    assert len({one.moment for one in moments if one is not None}) == 50 * 14


def test_where_nothing_is_kept_for_two_days_nothing_is_asked() -> None:
    assert drawn_audit(NAMES[0], DAY, FIRST_DAY - 1) is None
    assert [drawn_audit(name, DAY, FIRST_DAY) is not None for name in NAMES[:9]] == [True] * 9
