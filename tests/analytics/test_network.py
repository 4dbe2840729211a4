"""The network's own figures agree with a plain recount of the same trace files."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from recount import recount

from hushcast_analytics import delivery_figures
from hushcast_analytics.trace_files import Traces, keep, load, read_lines
from hushcast_protocol.base.trace import Observation, Truth, to_line
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
def simulated(request, tmp_path) -> Iterator[tuple[Path, object]]:
    directory = tmp_path / "simulated"
    scenario = request.param
    result = simulate(Scenario(**{**vars(scenario), "traces": directory}))
    return directory, result


def test_figures_of_a_simulation_agree_with_a_recount_and_with_the_simulation(spark, simulated, tmp_path):
    directory, result = simulated
    keep(spark, str(directory), str(tmp_path / "tables"))
    traces = load(spark, str(tmp_path / "tables"))
    assert traces.rejected.count() == 0
    agrees(traces, directory)
    (row,) = delivery_figures.summary(traces).collect()
    assert (row.pairs, row.delivered) == (result.pairs, result.delivered)
    assert (row.transmissions, row.ideal) == (result.transmissions, result.ideal)
    assert row.relays == result.nodes
    assert row.completeness == 1.0
    assert row.excess == 0.0


def test_subscriptions_with_conditions_are_counted_and_make_no_pairs(spark, tmp_path):
    written = [
        Truth("a", 3.0, 0, "published", topic="t", message=name, origins=("r",), took=1.0) for name in "mn"
    ]
    for number, (node, entry) in enumerate((("b", "trunk"), ("c", "warm"), ("d", "trunk"))):
        mailbox = f"box {number}"
        written.append(Truth(node, 1.0, 0, "subscribed", topic="t", mailbox=mailbox))
        tree = {"r": None}
        tokens = ("trunk", entry)
        written.append(
            Truth(node, 1.5, 0, "installed", topic="t", mailbox=mailbox, day=0, tree=tree, tokens=tokens)
        )
    written += [Truth(node, 3.5, 0, "delivered", topic="t", message="m") for node in "bc"]
    (tmp_path / "all.truth.jsonl").write_text("".join(to_line(one) + "\n" for one in written))
    traces = read_lines(spark, str(tmp_path))
    found = {(row.message, row.node): row.seconds for row in delivery_figures.pairs(traces).collect()}
    assert found == {("m", "b"): 1.5, ("n", "b"): None, ("m", "d"): None, ("n", "d"): None}
    (row,) = delivery_figures.summary(traces).collect()
    assert (row.subscriptions, row.conditional, row.pairs, row.completeness) == (3, 1, 4, 0.25)


def write(directory: Path, told: list[Truth], seen: list[Observation]) -> None:
    (directory / "all.truth.jsonl").write_text("".join(to_line(one) + "\n" for one in told))
    (directory / "all.observations.jsonl").write_text("".join(to_line(one) + "\n" for one in seen))


def test_a_subscription_goes_on_where_another_one_under_its_name_ends(spark, tmp_path):
    """As published, a user of the central system has one pseudonym for all that it subscribes to."""
    told = [Truth("b", 1.0, 0, "subscribed", topic=topic, mailbox="pseudonym") for topic in "st"]
    told.append(Truth("b", 2.0, 0, "unsubscribed", topic="s", mailbox="pseudonym"))
    told += [
        Truth("a", 3.0, 0, "published", topic=topic, message=f"on {topic}", origins=("r",), took=0.5)
        for topic in "st"
    ]
    write(tmp_path, told, [])
    found = [
        (row.message, row.node) for row in delivery_figures.pairs(read_lines(spark, str(tmp_path))).collect()
    ]
    assert found == [("on t", "b")]


def test_probes_are_no_messages_in_excess(spark, tmp_path):
    told = [Truth("b", 1.0, 0, "subscribed", topic="t", mailbox="box")]
    told += [
        Truth("a", 3.0, 0, "published", topic="t", message=name, origins=("r",), took=1.0) for name in "mn"
    ]
    told += [Truth("b", 3.5, 0, "delivered", topic="t", message=name) for name in ("m", "unheard of")]
    arrived = ("m", "n", "unheard of", "probe", "another probe")
    seen = [Observation("b", 3.5, 0, "delivered", message=name, tokens=("t",), size=1) for name in arrived]
    write(tmp_path, told, seen)
    (row,) = delivery_figures.summary(read_lines(spark, str(tmp_path))).collect()
    assert (row.arrivals, row.excess) == (3, pytest.approx(1 / 3))


def test_a_lease_that_was_withdrawn_twice_was_held_once(spark, tmp_path):
    told = [Truth("r", 0.0, 0, "started", role="relay")]
    seen = [
        Observation(
            *("r", 1.0, 0, "installed"), lease="one", elements=3, day=0, next="box", mark="00", children=0
        )
    ]
    seen += [Observation("r", at, 2, "withdrawn", lease="one") for at in (7200.0, 7300.0)]
    write(tmp_path, told, seen)
    (row,) = delivery_figures.loads(read_lines(spark, str(tmp_path))).collect()
    assert (row.leases, row.elements) == (1, 3)


def test_declared_columns(spark, tmp_path):
    write(
        tmp_path,
        [Truth("r", 0.0, 0, "started", role="relay")],
        [Observation("r", 1.0, 0, "drop", message="m")],
    )
    traces = read_lines(spark, str(tmp_path))
    for job, schema in (
        (delivery_figures.pairs, delivery_figures.PAIRS),
        (delivery_figures.path_lengths, delivery_figures.LENGTHS),
        (delivery_figures.latencies, delivery_figures.LATENCIES),
        (delivery_figures.loads, delivery_figures.LOADS),
        (delivery_figures.summary, delivery_figures.SUMMARY),
    ):
        made = job(traces).schema
        assert [(field.name, field.dataType) for field in made.fields] == [
            (field.name, field.dataType) for field in schema.fields
        ]
