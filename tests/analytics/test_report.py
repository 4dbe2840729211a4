"""The report: one file, a verdict that fits the figures, pictures for all there is and for nothing else."""

import re
from typing import Any

import pytest

from hushcast_analytics.report import brokers_section, filters_page
from hushcast_analytics.report.analysis_findings import Findings, SeenTree
from hushcast_analytics.report.phrases import ATTACKS
from hushcast_analytics.report.report_page import page, verdict


def row(attack: str, accuracy: float, low: float, high: float, **more: Any) -> dict[str, Any]:
    told = dict.fromkeys(("inverse_rank", "ndcg", "entropy_bits", "degree", "effective_set"), 0.5)
    told |= dict.fromkeys(("min_entropy_bits", "guessing_entropy", "anonymity_set", "belief"), 1.0)
    return {
        **told,
        "attack": attack,
        "target": "subscriber",
        "profile": "paper",
        "colluding": 0.1,
        "trials": 200,
        "accuracy": accuracy,
        "accuracy_low": low,
        "accuracy_high": high,
        "bound": 0.01,
        "precision": None,
        "recall": accuracy,
        **more,
    }


def findings(**more: Any) -> Findings:
    told: dict[str, Any] = {
        "network": {"runs": 1, "completeness": 1.0},
        "latencies": [{"quantile": 0.5, "seconds": 1.5}, {"quantile": 1.0, "seconds": 2.5}],
        "loads": [{"sent": 10.0, "relays": 5}, {"sent": 30.0, "relays": 2}],
        "trees": [],
    }
    return Findings(**{**told, **more})


BETTER, WORSE = row("install-depth", 0.5, 0.4, 0.6), row("presence", 0.02, 0.005, 0.06, profile="hardened")


TREE = SeenTree({"a": None, "b": "a", "c": "a", "d": None}, frozenset("d"), "hardened")


def test_the_verdict_names_the_best_attack_and_what_chance_is() -> None:
    lines = [
        str(each)
        for each in verdict(findings(attacks=[row("trail-popcount", 0.3, 0.25, 0.35), BETTER, WORSE]))
    ]
    assert len(lines) == 2
    assert "install-depth is right in 50 %" in lines[0]
    assert "Chance is 1 %: 50 times as often" in lines[0]
    assert "not decided" in lines[1]
    assert "more trials" in lines[1]


@pytest.mark.slow
def test_nobody_to_find() -> None:
    whole = page(findings(), None)
    assert "There was nobody to find" in whole
    assert whole.count("<svg") == 2


@pytest.mark.slow
def test_one_file_that_needs_no_other() -> None:
    over_time = [{**BETTER, "epochs": 1, "epochs_to_name": float("inf")}]
    found = findings(attacks=[BETTER, WORSE], trees=[TREE], over_time=over_time)
    whole = page(found, None)
    # Both profiles beside chance, entropy, load, delivery, and the tree.
    assert whole.count("<svg") == whole.count("</svg>") == 5
    assert not re.search(r'(src|href)="(?!#)', whole.replace('xlink:href="#', ""))
    assert page(found, None) == whole


@pytest.mark.slow
def test_a_phone_can_read_it() -> None:
    whole = page(findings(attacks=[BETTER, WORSE]), None)
    assert '<meta name="viewport" content="width=device-width' in whole
    assert "max-width: 100%" in whole


@pytest.mark.slow
def test_the_first_picture_has_both_profiles_and_chance() -> None:
    whole = page(findings(attacks=[BETTER, WORSE]), None)
    first = whole[whole.index("<svg") : whole.index("</svg>")]
    assert all(f">{word}</text>" in first for word in ("paper", "hardened", "chance", "install-depth"))


@pytest.mark.slow
def test_the_first_picture_leaves_out_what_cannot_fail() -> None:
    sure = row("dictionary", 1.0, 0.7, 1.0, bound=1.0)
    whole = page(findings(attacks=[BETTER, sure]), None)
    assert ">dictionary</text>" not in whole
    assert "one candidate only, it could not fail" in whole
    assert page(findings(attacks=[sure]), None).count("<svg") == 2


@pytest.mark.slow
def test_pictures_by_share_have_one_chance_each_and_no_attack_that_cannot_fail() -> None:
    rows = [
        row(attack, 0.3, low, 0.4, subject=subject, colluding=share, bound=bound)
        for attack, subject, low, bound in (
            ("trained", "topic", 0.2, 0.01),
            ("presence", "topic", 0.1, 0.01),
            ("renewal-times", "link", 0.2, 0.2),
            ("dictionary", "participant", 0.2, 1.0),
        )
        for share in (0.1, 0.2)
    ]
    whole = page(findings(attacks=rows), None)
    by_share = whole[whole.index("By how many collude") : whole.index("The network")]
    assert by_share.count("<svg") == 2
    assert "paper: trained" in by_share  # the strongest alone
    assert "presence" not in by_share
    assert "dictionary" not in by_share


@pytest.mark.slow
def test_trials_that_are_too_few_come_with_what_to_type() -> None:
    whole = page(findings(attacks=[BETTER, WORSE], network={"relays": 77.0}), None)
    assert "<pre>hushcast lab traces generate --nodes 77 " in whole
    assert "To decide" not in page(findings(attacks=[BETTER]), None)


@pytest.mark.slow
def test_each_attack_has_a_sentence() -> None:
    whole = page(findings(attacks=[BETTER, WORSE]), None)
    assert "It names the next hop of a colluder that was instructed from outside. Paper: right in" in whole
    assert "Paper: right in 50&nbsp;% of 200 trials (40&nbsp;% to 60&nbsp;%), chance is 1&nbsp;%" in whole
    assert "The claim: topic-subscriber anonymity (VB §3)" in whole


def test_every_attack_has_words() -> None:
    from hushcast_analytics.attacks import catalogue

    assert list(ATTACKS) == list(catalogue.ATTACKS)


@pytest.mark.slow
def test_shares_that_are_no_relay_are_said_to_be_left_out() -> None:
    assert "Left out: 5&nbsp;% of these relays is less than one of them." in page(
        findings(unwatched=(0.05,)), None
    )


@pytest.mark.slow
def test_a_tree_shows_what_colluders_see() -> None:
    tree = SeenTree({"a": None, "b": "a", "c": "a", "d": None, "e": "d"}, frozenset("c"), "paper")
    assert tree.seen == {"c"}
    assert tree.neighbours == {"a"}
    assert not tree.root_met
    assert SeenTree(tree.parents, frozenset("a"), "paper").seen == {"a", "b", "c"}
    assert SeenTree(tree.parents, frozenset("a"), "paper").root_met
    assert "1 colluder can see 1 of 5 links" in page(findings(trees=[tree]), None)


@pytest.mark.slow
def test_a_baseline_stands_beside() -> None:
    other = findings(attacks=[row("first-spy", 0.1, 0.05, 0.2, target="publisher")], network={"runs": 7})
    whole = page(findings(attacks=[BETTER]), other)
    assert "baseline, paper" in whole
    assert "<td>7</td>" in whole


@pytest.mark.slow
@pytest.mark.parametrize("bad", ["<script>", "a & b"])
def test_names_are_escaped(bad: str) -> None:
    assert f"<td>{bad}" not in page(findings(attacks=[row(bad, 0.5, 0.4, 0.6)]), None)


@pytest.mark.slow
def test_the_page_of_filters_says_what_is_reached_and_what_it_costs() -> None:
    condition = {"condition": "successor", "k": 3}
    cost = {"sampled": 9, "had": 0.5, "generalised": 0.3, "nothing": 0.2, "added_mean": 0.1, "added_p90": 0.3}
    judged = {"colluding": 0.1, "cap": None, "spread": None, "claimed": 1.0, "true": 0.5, "wrongly": 0.5}
    summary = {
        "filters": 4,
        "sources": 1,
        "topics": 2,
        "largest": 3,
        "brokers": 50,
        "watched": 4,
        "wanted": {"ks": [3], "conditions": ["successor"], "brokers": 50, "cap": 2, "spread": 3},
        "levels": [
            {**condition, "mean": 2.0, "most": 4, "quantiles": {"0.5": 1}, "at_least": {"1": 1.0, "2": 0.5}}
        ],
        "reached": [{**condition, "filters": 0.5, "subscribers": 0.25}],
        "cost": [{**condition, **cost, "added_median": 0.05, "times_median": 2.0}],
        "colluding": [{**condition, **judged, "claimed_level": 9.0, "true_level": 2.0}],
    }
    shown = filters_page.page(summary)
    assert "4 filters of 1 subscriber on 2 topics" in shown
    assert "all filters of 25&nbsp;% of the subscribers; where not, a wider one adds 5&nbsp;%" in shown
    assert "for 20&nbsp;% none was found" in shown
    assert shown.count("<svg") == 4
    summary["cost"] = []
    assert "wider one" not in filters_page.page(summary)


def test_of_communities_it_is_said_what_is_not_tried():
    row = {"attack": "known-topic", "profile": "community", "model": "community", "colluding": 0.1}
    row |= {"accuracy": 0.03, "accuracy_low": 0.02, "accuracy_high": 0.04}
    (line,) = brokers_section.said([row])
    assert "model 2" in line
    assert "not tried" in line
    assert "3 %" in line


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["$\\frac$", "</text></svg><script>alert(1)</script>", '" onload=alert(1) x="']
)
def test_names_out_of_traces_are_text_and_nothing_else(name: str) -> None:
    rows = [{**BETTER, "profile": name}, {**BETTER, "profile": name, "colluding": 0.2}, WORSE]
    over_time = [{**BETTER, "profile": name, "epochs": 1, "epochs_to_name": 1.0}]
    tree = SeenTree({"a": None, name: "a"}, frozenset({name}), name)
    whole = page(findings(attacks=rows, over_time=over_time, trees=[tree]), None)
    assert "<script" not in whole
    assert not re.search(r"<[^>]*onload=", whole)
    assert whole.count("<svg") == whole.count("</svg>") > 0
