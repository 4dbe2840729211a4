"""The generator's networks are those of the in-process testnet.

A network has one value of each statistic. Twelve generated ones give its mean and spread, and the simulated
one's value has to lie within the interval for one more draw of the same law, at four standard deviations.
"""

import json
import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from hushcast_analytics.generator.publications import numbers
from hushcast_analytics.generator.scenario import GeneratorScenario
from hushcast_analytics.generator.trace_rows import TraceRows
from hushcast_protocol.overlay import profile
from hushcast_testnet.simulations.overlay_simulation import Scenario, simulate

pytestmark = pytest.mark.slow

GENERATED = 12
CASES = {
    "hardened": GeneratorScenario(120, 8, publications=120),
    "paper": GeneratorScenario(80, 4, publications=60, profile="paper"),
    # Into a second day: under listed roots trees are new.
    "hardened-days": GeneratorScenario(12, 2, publications=40, epochs=25),
    "paper-days": GeneratorScenario(12, 2, publications=40, epochs=25, profile="paper"),
}
FIRST_HOURS = 2.5  # of the day, over when a simulation begins


@pytest.fixture(autouse=True)
def listed_roots(monkeypatch):
    """Have relays as roots under both profiles: networks of messages are drawn without hosts.

    Nothing goes around a root that has no lease, as published. So of hardened networks what trees and their
    installation look like is compared, and not the ways of messages, which end at other roots.
    """
    hardened = replace(profile.PROFILES["hardened"], root=profile.Root.LISTED, detours=False)
    monkeypatch.setitem(profile.PROFILES, "hardened", hardened)


def simulated(directory, asked, seed):
    scenario = Scenario(
        asked.nodes, asked.subscribers, asked.publications, profile=asked.profile,
        origins=asked.behaviour.origins, seed=seed, traces=directory,
        minutes=60 * (asked.epochs - FIRST_HOURS) if asked.epochs > 1 else None,
    )  # fmt: skip
    simulate(scenario)
    return tuple(
        pd.DataFrame(
            json.loads(line)
            for file in directory.glob(f"*.{kind}.jsonl")
            for line in file.read_text().splitlines()
        )
        for kind in ("observations", "truth")
    )


def generated(asked):
    rows = TraceRows(asked)
    seen, told = [], []
    for epoch in range(asked.epochs):
        message = np.array(numbers(asked, 0, epoch))
        seen += [*rows.seen_of_rosters(epoch), *rows.seen_of_messages(0, epoch, message)]
        told += [*rows.truth_of_presence(epoch), *rows.truth_of_messages(0, epoch, message)]
    for day in range(asked.days):
        for subscriber in range(asked.subscribers):
            seen += rows.seen_of_install(0, day, subscriber)
            told += rows.truth_of_install(0, day, subscriber)
    return tuple(pa.Table.from_batches(batches).to_pandas() for batches in (seen, told))


def gini(values):
    values = np.sort(values)
    count = len(values)
    return float(((2 * np.arange(1, count + 1) - count - 1) * values).sum() / (count * values.sum()))


def statistics(observations, truths):
    publications = (truths.kind == "published").sum()
    relays = truths[(truths.kind == "started") & (truths.role == "relay")].node
    sent = observations[observations.kind == "sent"]
    received = observations[(observations.kind == "received")]
    inside = received[received.previous.notna()]
    copies = observations[observations.kind == "arrived"]
    load = sent.groupby("node").size().reindex(relays, fill_value=0)
    links = inside.groupby("node").previous.nunique().reindex(relays, fill_value=0)
    outcomes = received.outcome.value_counts()
    per_message = sent.groupby("message").size()
    trees = truths[truths.kind == "installed"].groupby("mailbox").tree
    return {
        "seats that change": sum(len(set(one) ^ set(two)) for one, two in trees.apply(first_and_last)),
        "transmissions a publication": len(sent) / publications,
        "their spread": per_message.std(),
        "deliveries": (truths.kind == "delivered").sum(),
        "copies at mailboxes": len(copies),
        "labels in their trails": copies.popcount.mean() / 14,
        "drops": (observations.kind == "drop").sum(),
        "gini of load": gini(load.to_numpy()),
        "greatest load": load.max(),
        "idle relays": (load == 0).sum(),
        "previous hops a relay": links.mean(),
        "most previous hops": links.max(),
        "labels in trails": inside.popcount.mean() / 14,
        "relays passed by what is sent on": inside[inside.outcome == "forwarded"].popcount.mean() / 14,
        **{name: outcomes.get(name, 0) for name in ("forwarded", "duplicate", "loop", "unrouted")},
    }


def first_and_last(trees):
    return [tuple(dict(trees.iloc[place]).items()) for place in (0, -1)]


def shapes(observations, truths):
    """What the planner's law fixes, whatever the seed."""
    installed = observations[observations.kind == "installed"]
    seats = sorted(zip(installed.children, installed.elements, installed.previous.notna(), strict=True))
    trees = truths[truths.kind == "installed"]
    paths = []
    for tree in trees.tree:
        above = dict(tree)
        for relay in above:
            length, at = 1, above[relay]
            while at is not None:
                length, at = length + 1, above[at]
            paths.append(length)
    kinds = observations[observations.kind.isin(["parcel", "installed", "passed"])].kind.value_counts()
    parcels = observations[observations.kind == "parcel"]
    sizes = sorted(zip(parcels["size"], parcels.children, strict=True))
    return seats, sorted(paths), dict(kinds), sizes


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if name == "hardened-days" else pytest.mark.soak) for name in CASES],
)
def test_generated_networks_are_like_simulated_ones(name, tmp_path):
    asked = CASES[name]
    ours = [generated(replace(asked, seed=seed)) for seed in range(GENERATED)]
    theirs = simulated(tmp_path / "traces", asked, 7)
    assert shapes(*theirs) == shapes(*ours[0])
    if asked.profile == "hardened":
        return
    values = pd.DataFrame([statistics(*one) for one in ours])
    assert (values["seats that change"] == 0).all() == (name != "paper-days")
    off = {}
    for name, value in statistics(*theirs).items():
        mean, spread = values[name].mean(), values[name].std()
        if abs(value - mean) > 4 * spread * math.sqrt(1 + 1 / GENERATED) + 1e-9:
            off[name] = (value, mean, spread)
    assert not off
