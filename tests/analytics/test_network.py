"""The network's own figures agree with a plain recount of the same trace files."""

import math
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import functions as F
from recount import recount

from hushcast_analytics import delivery_figures
from hushcast_analytics.trace_files import Traces, keep, load, read_lines
from hushcast_protocol.base.trace import Observation, Truth, to_line
from hushcast_protocol.overlay.profile import PROFILES, Root
from hushcast_testnet.simulations.overlay_simulation import Scenario, simulate

pytestmark = [pytest.mark.spark, pytest.mark.slow]

SCENARIOS = [
    Scenario(nodes=40, subscribers=5, publications=30, topics=2, origins=2),
    Scenario(nodes=40, subscribers=4, publications=12, topics=2, profile="paper"),
]


def agrees(traces: Traces, directory: Path) -> None:
    expected = recount(directory)
    (row,) = delivery_figures.summary(traces).collect()
    found = row.asDict()
    found.pop("run")
    assert found.pop("to_ideal") == pytest.approx(expected["transmissions"] / expected["ideal"], rel=1e-12)
    for name, value in found.items():
        assert value == pytest.approx(expected[name], rel=1e-12), name
    lengths = {row.length: row["count"] for row in delivery_figures.path_lengths(traces).collect()}
    assert lengths == expected["lengths"]
    latencies = {row.quantile: row.seconds for row in delivery_figures.latencies(traces).collect()}
    assert latencies == pytest.approx(expected["latencies"], rel=1e-12)


@pytest.fixture(params=SCENARIOS, ids=lambda scenario: scenario.profile)
def simulated(request, tmp_path) -> Iterator[tuple[Path, object, bool]]:
    directory = tmp_path / "simulated"
    scenario = request.param
    result = simulate(Scenario(**{**vars(scenario), "traces": directory}))
    return directory, result, PROFILES[scenario.profile].root is Root.HOST


def test_figures_of_a_simulation_agree_with_a_recount_and_with_the_simulation(spark, simulated, tmp_path):
    directory, result, is_hosted = simulated
    keep(spark, str(directory), str(tmp_path / "tables"))
    traces = load(spark, str(tmp_path / "tables"))
    assert traces.rejected.count() == 0
    agrees(traces, directory)
    (row,) = delivery_figures.summary(traces).collect()
    assert (row.pairs, row.delivered) == (result.pairs, result.delivered)
    assert row.transmissions == result.transmissions
    # Traces do not tell that both origins' copies are one from the host on: the last step counts twice.
    assert row.ideal == result.ideal + (result.pairs if is_hosted else 0)
    assert row.relays == result.nodes
    assert row.completeness == 1.0
    assert row.excess == 0.0


def published(topic: str, message: str, took: float = 1.0) -> Truth:
    return Truth("a", 3.0, 0, "published", topic=topic, message=message, origins=("r",), took=took)


def conditions() -> list[Truth]:
    told = [published("t", name) for name in "mn"]
    for number, (node, entry) in enumerate((("b", "trunk"), ("c", "warm"), ("d", "trunk"))):
        mailbox, tree, tokens = f"box {number}", {"r": None}, ("trunk", entry)
        told.append(Truth(node, 1.0, 0, "subscribed", topic="t", mailbox=mailbox))
        told.append(
            Truth(node, 1.5, 0, "installed", topic="t", mailbox=mailbox, day=0, tree=tree, tokens=tokens)
        )
    return told + [Truth(node, 3.5, 0, "delivered", topic="t", message="m") for node in "bc"]


BY_HAND: dict[str, tuple[list[Truth], list[Observation]]] = {
    "conditions": (conditions(), []),
    # As published, a user of the central system has one pseudonym for all that it subscribes to.
    "one-name": (
        [
            *(Truth("b", 1.0, 0, "subscribed", topic=topic, mailbox="pseudonym") for topic in "st"),
            Truth("b", 2.0, 0, "unsubscribed", topic="s", mailbox="pseudonym"),
            *(published(topic, f"on {topic}", 0.5) for topic in "st"),
        ],
        [],
    ),
    "probes": (
        [
            Truth("b", 1.0, 0, "subscribed", topic="t", mailbox="box"),
            *(published("t", name) for name in "mn"),
            *(Truth("b", 3.5, 0, "delivered", topic="t", message=name) for name in ("m", "unheard of")),
        ],
        [
            Observation("b", 3.5, 0, "delivered", message=name, tokens=("t",), size=1)
            for name in ("m", "n", "unheard of", "probe", "another probe")
        ]
        + [
            Observation("r", 3.0, 0, "sent", message=name, tokens=("t",), next="box")
            for name in ("m", "n", "probe", "another probe", "a third")
        ],
    ),
    "leases": (
        [Truth("r", 0.0, 0, "started", role="relay")],
        [
            Observation(
                *("r", 1.0, 0, "installed"), lease="one", elements=3, day=0, next="box", mark="00", children=0
            ),
            *(Observation("r", at, 2, "withdrawn", lease="one") for at in (7200.0, 7300.0)),
        ],
    ),
}


@pytest.fixture(scope="module")
def by_hand(spark, tmp_path_factory) -> Traces:
    """All of it in one table: a directory is a run, and figures go by runs."""
    directory = tmp_path_factory.mktemp("by-hand")
    for run, (told, seen) in BY_HAND.items():
        (directory / run).mkdir()
        for kind, lines in (("truth", told), ("observations", seen)):
            (directory / run / f"all.{kind}.jsonl").write_text("".join(to_line(one) + "\n" for one in lines))
    return read_lines(spark, str(directory))


@pytest.fixture(scope="module")
def summaries(by_hand):
    return {row.run: row for row in delivery_figures.summary(by_hand).collect()}


@pytest.fixture(scope="module")
def pairs(by_hand):
    return delivery_figures.pairs(by_hand).collect()


def test_declared_columns(by_hand):
    for job, schema in (
        (delivery_figures.pairs, delivery_figures.PAIRS),
        (delivery_figures.path_lengths, delivery_figures.LENGTHS),
        (delivery_figures.latencies, delivery_figures.LATENCIES),
        (delivery_figures.loads, delivery_figures.LOADS),
        (delivery_figures.summary, delivery_figures.SUMMARY),
    ):
        made = job(by_hand).schema
        assert [(field.name, field.dataType) for field in made.fields] == [
            (field.name, field.dataType) for field in schema.fields
        ]


def test_subscriptions_with_conditions_are_counted_and_make_no_pairs(pairs, summaries):
    found = {(row.message, row.node): row.seconds for row in pairs if row.run == "conditions"}
    assert found == {("m", "b"): 1.5, ("n", "b"): None, ("m", "d"): None, ("n", "d"): None}
    row = summaries["conditions"]
    assert (row.subscriptions, row.conditional, row.pairs, row.completeness) == (3, 1, 4, 0.25)


def test_a_subscription_goes_on_where_another_one_under_its_name_ends(pairs):
    assert [(row.message, row.node) for row in pairs if row.run == "one-name"] == [("on t", "b")]


@pytest.mark.parametrize("parts", [1, 7])
def test_quantiles_are_exact_in_whatever_parts_the_deliveries_come(parts, spark, by_hand):
    amount, prime = 50_000, 50_021
    seconds = (F.col("id") * 7919 % prime).cast("double").alias("seconds")  # all below a prime, in disorder
    paired = spark.range(1, amount + 1, 1, parts).select(F.lit("r").alias("run"), seconds)
    ordered = sorted(number * 7919 % prime for number in range(1, amount + 1))
    found = {row.quantile: row.seconds for row in delivery_figures.latencies(by_hand, paired).collect()}
    assert found == {q: ordered[math.ceil(q * amount) - 1] for q in delivery_figures.QUANTILES}


def test_probes_are_counted_apart(summaries):
    row = summaries["probes"]
    assert (row.arrivals, row.excess) == (3, pytest.approx(1 / 3))
    assert (row.transmissions, row.probes, row.mean_sent) == (2, 3, 5)


def test_a_lease_that_was_withdrawn_twice_was_held_once(by_hand):
    (row,) = delivery_figures.loads(by_hand).where("run = 'leases'").collect()
    assert (row.leases, row.elements) == (1, 3)
