"""The report: one file, a verdict that fits the figures, pictures for all there is and for nothing else."""

import re
from typing import Any

import pytest

from hushcast_analytics.report.page import page, verdict
from hushcast_analytics.report.pictures import Findings


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
        "tree": {},
    }
    return Findings(**{**told, **more})


BETTER, WORSE = row("install-depth", 0.5, 0.4, 0.6), row("presence", 0.02, 0.005, 0.06, profile="hardened")


def test_the_verdict_names_the_best_attack_and_what_is_allowed() -> None:
    lines = verdict(findings(attacks=[row("trail-popcount", 0.3, 0.25, 0.35), BETTER, WORSE]))
    assert len(lines) == 2
    assert "install-depth" in lines[0]
    assert "50.0 times what the definition allows (1.00%)" in lines[0]
    assert "which chance explains" in lines[1]


def test_nobody_to_find() -> None:
    assert verdict(findings()) == ["There was nobody to find: no honest participant published or subscribed."]
    assert page(findings(), None).count("<svg") == 2


def test_one_file_that_needs_no_other() -> None:
    tree = {"a": None, "b": "a", "c": "a", "d": None}
    over_time = [{**BETTER, "epochs": 1, "epochs_to_name": float("inf")}]
    whole = page(findings(attacks=[BETTER, WORSE], tree=tree, over_time=over_time), None)
    # A picture for each profile, entropy, load, delivery, and the tree.
    assert whole.count("<svg") == whole.count("</svg>") == 6
    assert not re.search(r'(src|href)="(?!#)', whole.replace('xlink:href="#', ""))
    assert page(findings(attacks=[BETTER, WORSE], tree=tree, over_time=over_time), None) == whole


def test_a_baseline_stands_beside() -> None:
    other = findings(attacks=[row("first-spy", 0.1, 0.05, 0.2, target="publisher")], network={"runs": 7})
    whole = page(findings(attacks=[BETTER]), other)
    assert "baseline, paper: publishers" in whole
    assert "<td>7</td>" in whole


@pytest.mark.parametrize("bad", ["<script>", "a & b"])
def test_names_are_escaped(bad: str) -> None:
    assert f"<td>{bad}" not in page(findings(attacks=[row(bad, 0.5, 0.4, 0.6)]), None)
