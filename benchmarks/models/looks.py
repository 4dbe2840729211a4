"""How many publications are lost though publishers look for them: `python -m benchmarks.models.looks`.

Relays and keepers are drawn anew for each publication; a share of them is bad: they lose what they take, or
lose it and say that they keep it. A publication is lost if no honest keeper has it after the last look. Not
counted are those all of whose keepers are bad: no look helps them.
"""

from __future__ import annotations

import argparse
from typing import NamedTuple

import numpy as np

from hushcast_protocol.base.keeping_rule import MAX_KEEPERS
from hushcast_protocol.base.versions.manner import NEWEST

ORIGINS = 2
OF = 10_000  # publications, of which it is told how many are lost


class Rule(NamedTuple):
    """When a look ends: so many as lead are asked, then one after the other until it can be told."""

    lead: int
    """By so many more keepers show a publication than do not: then it is there."""
    most: int
    """Keepers that are asked; where these cannot give the lead any more, it is dropped anew."""

    def __str__(self) -> str:
        return f"{self.lead} of {self.most}" if self.lead < self.most else f"all of {self.most}"


LOOK = Rule(NEWEST.keepers_asked, NEWEST.keepers_asked + NEWEST.keepers_asked_more)
RULES = (Rule(1, 1), Rule(2, 2), Rule(2, 4), Rule(3, 3), LOOK, Rule(4, 4), Rule(MAX_KEEPERS, MAX_KEEPERS))


class Lost(NamedTuple):
    """Of `OF` publications, how many are lost without looks and with them, and what each costs."""

    without: float
    after_looks: float
    drops: float
    """Drops anew."""
    contacts: float
    """First contacts: of each question one, of each drop anew one for each of its origins."""


def lost(bad: float, is_lying: bool, trials: int, rule: Rule = LOOK) -> Lost:
    """Return what becomes of so many publications where a share of the relays is bad."""
    rng = np.random.default_rng(1)
    keepers = rng.random((trials, MAX_KEEPERS)) < bad  # in the order in which a look draws them
    counted = ~keepers.all(axis=1)
    keepers = keepers[counted]
    kept = np.any(rng.random((len(keepers), ORIGINS)) >= bad, axis=1)
    without = OF * float((~kept).mean())
    left, ever = np.ones(len(keepers), bool), np.zeros(len(keepers), bool)
    drops = dropped = questions = 0
    for turn in range(NEWEST.dropped_anew + 1):
        drawn = rng.permuted(keepers, axis=1)
        shown = np.where(drawn, is_lying, kept[:, None])
        is_there, asked = _looked(shown, rule)
        questions += int(asked[left].sum())
        ever |= (shown & (np.arange(MAX_KEEPERS) < asked[:, None])).any(axis=1)
        left &= ~is_there
        if turn < NEWEST.dropped_anew:
            drops += int(left.sum())
            origins = np.where(ever, ORIGINS, ORIGINS * NEWEST.times_anew)
            dropped += int(origins[left].sum())
            kept |= left & (rng.random(len(keepers)) >= bad**origins)
    contacts = (questions + dropped) / len(keepers)
    return Lost(without, OF * float((~kept).mean()), drops / len(keepers), contacts)


def _looked(shown: np.ndarray, rule: Rule) -> tuple[np.ndarray, np.ndarray]:
    """Return by what keepers show, in order, whether each look finds it there, and how many it asks."""
    lead = np.cumsum(np.where(shown[:, : rule.most], 1, -1), axis=1)
    left = rule.most - 1 - np.arange(rule.most)
    is_over = (lead >= rule.lead) | (lead + left < rule.lead)
    last = is_over.argmax(axis=1)
    return np.take_along_axis(lead, last[:, None], axis=1)[:, 0] >= rule.lead, np.maximum(last + 1, rule.lead)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=2_000_000)
    trials: int = parser.parse_args().trials
    lacking = f"lost of {OF:,} without looks | with them | they lie"
    print(f"| bad | must show it | {lacking} | drops anew | contacts |")
    for bad in (0.1, 0.2):
        for rule in RULES:
            honest, lying = (lost(bad, is_lying, trials, rule) for is_lying in (False, True))
            figures = f"{honest.without:.1f} | {honest.after_looks:.2f} | {lying.after_looks:.2f}"
            print(
                f"| {bad:.0%} | {rule} | {figures} | {honest.drops:.2f} | {honest.contacts:.1f} |", flush=True
            )


if __name__ == "__main__":
    main()
