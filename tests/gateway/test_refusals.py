"""What an operator is told of subscriptions that were refused, and that no filter, user or client is."""

from __future__ import annotations

from collections import Counter

import pytest
from broker_world import World

from hushcast_gateway.refusals import TOLD_EVERY, RefusalLog, refusals_found
from hushcast_protocol.mqtt.access import Access, AccessPermissions
from hushcast_protocol.mqtt.packets import V5, V311
from hushcast_protocol.mqtt.reason_codes import Reason
from hushcast_protocol.mqtt.refused_subscriptions import LATELY, RefusalCause, RefusedSubscriptions
from hushcast_runtime.logs import configure_logs

NAMES = ("secret", "mallory", "frost")


def refused(*causes: tuple[int, float]) -> RefusedSubscriptions:
    found = RefusedSubscriptions(Counter())
    for reason, now in causes:
        assert found.note(reason, now) == reason
    return found


@pytest.mark.parametrize(("version", "told"), [(V5, Reason.NOT_AUTHORIZED), (V311, Reason.UNSPECIFIED_ERROR)])
def test_a_filter_that_a_user_may_not_have(version: int, told: int) -> None:
    world = World()
    lists = AccessPermissions(Access((), ("home/#",)), "mallory", "frost")
    client = world.connect("frost", version, permissions=lists)
    assert client.subscribe("secret/#", "home/x") == [told, 2]
    assert world.broker.counts["subscriptions_forbidden"] == 1
    found = refusals_found(world.broker.refused, world.now)
    assert (found.verdict, found.found) == (
        "warning",
        "1 subscription refused in 10 minutes: 1 because their user may not read what they match",
    )
    assert not any(name in found.found + found.advice for name in NAMES)


def test_each_cause_is_counted_by_itself() -> None:
    found = refused(
        (Reason.QUOTA_EXCEEDED, 0.0),
        (Reason.TOPIC_FILTER_INVALID, 0.0),
        (Reason.WILDCARD_SUBSCRIPTIONS_NOT_SUPPORTED, 0.0),
        (Reason.NOT_AUTHORIZED, 0.0),
    )
    found.note(Reason.NOT_AUTHORIZED, 0.0, by_rules=True)
    assert found.totals == dict.fromkeys(RefusalCause, 1)


def test_the_doctor_tells_of_the_last_minutes_and_of_what_was_most() -> None:
    found = refused(
        (Reason.QUOTA_EXCEEDED, 0.0), (Reason.QUOTA_EXCEEDED, 300.0), *[(Reason.NOT_AUTHORIZED, 300.0)] * 2
    )
    told = refusals_found(found, 300.0)
    assert told.found.startswith("4 subscriptions refused in 10 minutes: 2 because there were as many")
    later = refusals_found(found, 60.0 * LATELY)
    assert later.found.startswith("3 subscriptions refused in 10 minutes: 2 because their user may not")
    assert "subscribe" in later.advice
    assert refusals_found(found, 300.0 + 60.0 * LATELY).verdict == "good"
    assert refusals_found(found, -60.0 * LATELY).verdict == "good", "a clock that was set back"


def test_what_is_known_of_the_last_minutes_is_bounded() -> None:
    found = refused(*[(Reason.NOT_AUTHORIZED, 60.0 * minute) for minute in range(1_000)])
    assert sum(found.lately(60.0 * 999).values()) == LATELY


def test_the_log_tells_at_once_and_of_the_rest_in_ten_minutes(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logs("info", False)
    lines, found = RefusalLog(), refused()
    lines.look(found.totals, 0.0)
    found.note(Reason.NOT_AUTHORIZED, 0.0)
    for second in range(int(TOLD_EVERY) + 1):
        lines.look(found.totals, float(second))
        found.note(Reason.QUOTA_EXCEEDED, 0.0)
    first, second = capsys.readouterr().err.splitlines()
    assert "subscriptions were refused     forbidden=1 full=0 " in first
    assert f"subscriptions were refused     forbidden=0 full={int(TOLD_EVERY)} " in second
