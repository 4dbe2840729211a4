"""The verdict: what counts of trials allow to say, and the command that makes more. No Spark."""

from __future__ import annotations

import shlex
from typing import Any

import pytest

from hushcast_analytics.report.phrases import counted, percent
from hushcast_analytics.report.verdict import (
    NOBODY,
    AttackStanding,
    TrialNeed,
    commands,
    limit,
    need_of,
    said,
    standing,
    trials_needed,
    verdicts,
)
from hushcast_cli.main import cli
from hushcast_protocol.base.intervals import wilson


def row(hits: float, trials: int, chance: float, **more: Any) -> dict[str, Any]:
    low, high = wilson(hits / trials, trials)
    told = {"attack": "trained", "target": "subscriber", "subject": "topic", "profile": "hardened"}
    counts = {"colluding": 0.1, "trials": trials, "relays": 20, "bound": chance}
    return {
        **told,
        **counts,
        "accuracy": hits / trials,
        "accuracy_low": low,
        "accuracy_high": high,
        **more,
    }


@pytest.mark.parametrize(
    ("hits", "trials", "chance", "expected"),
    [
        (1, 1, 1.0, AttackStanding.CANNOT_FAIL),
        (0, 1, 0.02, AttackStanding.OPEN),
        (1, 1, 0.5, AttackStanding.OPEN),
        (0.2174, 1, 0.0196, AttackStanding.OPEN),
        (57, 100, 0.01, AttackStanding.LEAKS),
        (1, 1, 0.01, AttackStanding.LEAKS),  # once in a hundred: by itself, that is much
        (1, 1, 0.03, AttackStanding.OPEN),
        (10, 1000, 0.01, AttackStanding.HOLDS),
        (0, 1000, 0.01, AttackStanding.HOLDS),
        (0, 100, 0.01, AttackStanding.OPEN),
        (9, 10, 0.9, AttackStanding.OPEN),
        (900, 1000, 0.9, AttackStanding.HOLDS),
    ],
)
def test_what_trials_exclude(hits: float, trials: int, chance: float, expected: AttackStanding) -> None:
    assert standing(row(hits, trials, chance)) is expected


def test_many_comparisons_have_to_show_more() -> None:
    lucky = row(8, 100, 0.015)
    assert standing(lucky) is AttackStanding.LEAKS
    assert standing(lucky, 45) is not AttackStanding.LEAKS
    assert standing(row(57, 100, 0.01), 45) is AttackStanding.LEAKS


def test_runs_that_differ_count_for_less() -> None:
    assert standing(row(4, 60, 0.01)) is AttackStanding.LEAKS
    assert standing(row(4, 60, 0.01, effective=1.0)) is not AttackStanding.LEAKS


@pytest.mark.parametrize("chance", [0.001, 0.01, 0.1, 0.5, 0.9, 0.999])
def test_so_many_trials_decide_and_one_less_does_not(chance: float) -> None:
    trials = trials_needed(chance, chance)
    assert wilson(chance, trials)[1] <= limit(chance) < wilson(chance, trials - 1)[1]


def test_one_trial_decides_nothing_and_says_how_many_would() -> None:
    (found,) = verdicts([row(0.2174, 1, 0.0196)])
    more = trials_needed(0.0196, 0.0196) - 1
    assert found.standing is AttackStanding.OPEN
    assert "1 trial of trained" in found.text
    assert "1 trials" not in str(found)
    assert f"About {more:,} more trials" in found.text
    assert found.need is not None
    assert found.need.topics >= 1 + more
    assert "chance explains" not in str(found)


def test_after_enough_trials_of_chance_those_of_what_was_measured_are_asked_for() -> None:
    between = row(33, 2200, 0.01)
    (found,) = verdicts([between])
    assert found.standing is AttackStanding.OPEN
    assert trials_needed(0.01, 0.01) < 2200 < trials_needed(0.015, 0.01)
    assert f"About {trials_needed(0.015, 0.01) - 2200:,} more" in found.text


def test_what_cannot_fail_never_takes_the_headline() -> None:
    sure = row(10, 10, 1.0, attack="install-depth")
    (found,) = verdicts([sure, row(0, 2000, 0.01)])
    assert found.standing is AttackStanding.HOLDS
    (alone,) = verdicts([sure])
    assert alone.standing is AttackStanding.CANNOT_FAIL
    assert "100 %" not in str(alone)
    assert alone.need is not None
    assert alone.need.topics > 1


def test_why_nothing_could_fail_is_told_apart() -> None:
    (one,) = verdicts([row(10, 10, 1.0, candidates=1.0)])
    (all_right,) = verdicts([row(10, 10, 1.0, candidates=30.0)])
    assert "There was one candidate only" in one.text
    assert "Each of the 30 candidates was right" in all_right.text


def test_how_many_different_ones_trials_are_about_is_told_and_one_is_too_few() -> None:
    (several,) = verdicts([row(20, 2000, 0.01, targets=7)])
    assert several.standing is AttackStanding.HOLDS
    assert "the 2,000 trials of trained about 7 subscribers" in several.text
    (one,) = verdicts([row(20, 2000, 0.01, targets=1)])
    assert one.standing is AttackStanding.OPEN
    assert "about one subscriber alone" in one.text
    assert one.need is not None
    (named,) = verdicts([row(57, 100, 0.01, targets=1)])
    assert named.standing is AttackStanding.LEAKS


def test_colluding_subscribers_are_told() -> None:
    (found,) = verdicts([row(20, 2000, 0.01, users=5)])
    assert "2 of 20 relays (10 %) and 5 subscribers collude" in found.text


def test_the_strongest_leak_is_the_headline_and_chance_stands_beside() -> None:
    rows = [row(30, 100, 0.01), row(57, 100, 0.01, attack="install-depth"), row(0, 2000, 0.01)]
    (found,) = verdicts(rows)
    assert found.standing is AttackStanding.LEAKS
    assert "2 of 20 relays (10 %) collude, install-depth is right in 57 % of 100 trials" in found.text
    assert "Chance is 1 %: 57 times as often." in found.text


def test_each_profile_and_goal_has_one_and_linking_is_a_goal_of_its_own() -> None:
    rows = [
        row(57, 100, 0.01, profile="paper"),
        row(0, 2000, 0.01),
        row(0, 2000, 0.01, subject="link", attack="renewal-times"),
        row(0, 2000, 0.01, subject="message", target="publisher", attack="first-spy"),
    ]
    found = [(each.profile, each.goal) for each in verdicts(rows)]
    assert found == [
        ("paper", "subscriber"),
        ("hardened", "publisher"),
        ("hardened", "subscriber"),
        ("hardened", "link"),
    ]


def test_nobody_to_find() -> None:
    assert said(verdicts([])) == [NOBODY]


@pytest.mark.parametrize("subject", ["message", "author", "topic", "link", "participant"])
def test_what_so_many_trials_need(subject: str) -> None:
    need = need_of(row(0, 1, 0.02, subject=subject), 700)
    assert (need.publications if subject == "message" else need.topics) >= 700 / 0.9


def test_one_command_a_profile_decides_all_and_can_be_typed() -> None:
    rows = [
        row(0, 1, 0.02, profile="paper"),
        row(0, 1, 0.02),
        row(0, 1, 0.001, target="publisher", subject="message"),
    ]
    found = verdicts(rows)
    typed = commands(found, 500)
    assert len(typed) == 2
    for line, profile in zip(typed, ("paper", "hardened"), strict=True):
        program, lab, traces, generate, *options = shlex.split(line)
        assert (program, lab, traces, generate) == ("hushcast", "lab", "traces", "generate")
        command = cli.commands[lab].commands[traces].commands[generate]
        made = command.make_context("generate", options).params
        assert made["profile"] == made["run"] == profile
        assert made["nodes"] == 500
        needs = [each.need or TrialNeed() for each in found if each.profile == profile]
        assert made["topics"] == max(need.topics for need in needs)
        assert made["publications"] == max(need.publications for need in needs)
    assert commands(verdicts([row(57, 100, 0.01)]), 500) == []


def test_numbers_as_people_read_them() -> None:
    assert [counted(number, "trial") for number in (0, 1, 2, 1234)] == [
        *("0 trials", "1 trial", "2 trials", "1,234 trials"),
    ]
    shares = (0.0, 0.00001, 0.00206, 0.0123, 0.05, 0.1, 0.576, 1.0)
    assert [percent(share) for share in shares] == [
        *("0 %", "below 0.01 %", "0.21 %", "1.2 %", "5 %", "10 %", "58 %", "100 %"),
    ]
