"""Judging relays: the same in steps as at once, and by the probes of one form as well as by all."""

from __future__ import annotations

import math
import random
from collections import Counter

import pytest
from core_examples import properties
from hypothesis import given
from hypothesis import strategies as st
from steps import one_step

from hushcast_protocol.base.intervals import wilson
from hushcast_protocol.overlay.coverage import (
    MIN_LOSS,
    MIN_LOST,
    MIN_LOST_OF_A_KIND,
    Losses,
    MessageForm,
    ProbeCopy,
    judge,
    judged_in_steps,
)

NAMES = [number.to_bytes(32, "big") for number in range(1, 13)]
SMALL, LARGE = MessageForm(1167, 8), MessageForm(16_527, 24)
CHANCE_A_THOUSAND = 3  # copies that honest relays lose: a machine that goes, a circuit that breaks

outcomes = st.lists(
    st.tuples(st.lists(st.sampled_from(NAMES), min_size=1, max_size=3, unique=True), st.booleans()),
    max_size=60,
)


def plain(probes: list[ProbeCopy]) -> dict[bytes, tuple[float, float]]:
    """Attribute losses as the docstring of `_losses` says, in one piece."""
    missing = Counter(probe.way for probe in probes if not probe.arrived)
    sure = Counter(relay for probe in probes if probe.arrived for relay in probe.way)
    found = {relay: (0.0, float(count)) for relay, count in sure.items()}
    rates = {relay: 0.5 for way in missing for relay in way}
    lost, passed = dict.fromkeys(rates, 0.0), dict.fromkeys(rates, 0.0)
    for _ in range(100 if missing else 0):
        lost, passed = dict.fromkeys(rates, 0.0), {relay: float(sure[relay]) for relay in rates}
        for way, count in missing.items():
            through = math.prod(1 - rates[relay] for relay in way)
            come = 1.0
            for relay in way:
                lost[relay] += count * come * rates[relay] / max(1 - through, 1e-12)
                come *= 1 - rates[relay]
                passed[relay] += count * max(0.0, come - through) / max(1 - through, 1e-12)
        for relay in rates:
            blame = max(0.0, lost[relay] - 1.0)
            rates[relay] = blame / (blame + passed[relay] + 0.5)
    return found | {relay: (lost[relay], passed[relay]) for relay in lost}


def is_suspect(lost: float, passed: float, least: int = MIN_LOST) -> bool:
    return round(lost) >= least and wilson(lost / (lost + passed), lost + passed)[0] >= MIN_LOSS


@pytest.mark.slow
@properties(100)
@given(outcomes)
def test_what_is_judged_in_steps_is_what_is_computed_at_once(drawn):
    probes = [ProbeCopy(tuple(way), arrived, 0.0) for way, arrived in drawn]
    expected = plain(probes)
    judgement = judge(probes)
    assert judgement.losses == expected
    assert set(judgement.suspects) == {relay for relay, counts in expected.items() if is_suspect(*counts)}
    ranks = [(-expected[relay][0], expected[relay][1]) for relay in judgement.suspects]
    assert ranks == sorted(ranks)


@pytest.mark.slow
@properties(100)
@given(outcomes, outcomes)
def test_a_relay_is_suspect_by_all_probes_or_by_those_of_one_size(small, large):
    probes = [ProbeCopy(tuple(way), arrived, 0.0, form=SMALL) for way, arrived in small]
    probes += [ProbeCopy(tuple(way), arrived, 0.0, form=LARGE) for way, arrived in large]
    judgement, by_all = judge(probes), plain(probes)
    named = {relay for relay, counts in by_all.items() if is_suspect(*counts)}
    kinds = [
        plain([probe for probe in probes if probe.form == form and named.isdisjoint(probe.way)])
        for form, drawn in ((SMALL, small), (LARGE, large))
        if 2 * len(drawn) <= len(probes)
    ]
    too = {
        relay for kind in kinds for relay, counts in kind.items() if is_suspect(*counts, MIN_LOST_OF_A_KIND)
    }
    assert set(judgement.suspects) == named | too
    for relay, counts in judgement.losses.items():
        assert counts == by_all[relay] or (relay in too and counts in [kind.get(relay) for kind in kinds])


def test_who_loses_one_form_alone_is_found_by_it():
    """Three large probes of a hundred: a loss rate of 3 % in all, and of all in what it loses."""
    bad, good = NAMES[:2]
    probes = [ProbeCopy((bad,), True, 0.0, form=SMALL) for _ in range(97)]
    probes += [ProbeCopy((bad,), False, 0.0, form=LARGE) for _ in range(3)]
    probes += [ProbeCopy((good,), number > 2, 0.0, form=SMALL) for number in range(100)]
    assert judge(probes).suspects == [bad]
    assert judge(probes).losses[bad] == pytest.approx(Losses(3.0, 0.0))
    assert judge(probes).losses[good] == pytest.approx(Losses(3.0, 97.0))


def test_chance_losses_spread_over_many_forms_name_nobody():
    rng = random.Random(1)
    forms = [MessageForm(size, tokens) for size in (1167, 4239, 16_527, 65_679) for tokens in (8, 24)]
    names = [number.to_bytes(32, "big") for number in range(1, 101)]
    honest = 0
    for _ in range(10):
        probes = []
        for _ in range(1000):
            way = tuple(rng.sample(names, 2))
            arrived = rng.randrange(1000) >= 2 * CHANCE_A_THOUSAND
            probes.append(ProbeCopy(way, arrived, 0.0, form=rng.choice(forms)))
        honest += len(judge(probes).suspects)
    assert honest <= 2


def test_no_step_is_long():
    rng = random.Random(1)
    names = [rng.randbytes(32) for _ in range(2000)]
    probes = [
        ProbeCopy(
            tuple(rng.sample(names, 3)), rng.random() < 0.5, 0.0, form=MessageForm(1167, rng.choice([8, 24]))
        )
        for _ in range(1000)
    ]
    steps = judged_in_steps(probes)
    taken = 0
    while taken >= 0:
        with one_step():
            taken = taken + 1 if next(steps, 1) is None else -1
