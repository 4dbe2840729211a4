"""The network's own figures agree with a plain recount of the same trace files."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from recount import recount

from hushcast_analytics import network
from hushcast_analytics.reading import Traces, keep, load, read_lines
from hushcast_testnet.simulation import Scenario, simulate

pytestmark = [pytest.mark.spark, pytest.mark.network]

SCENARIOS = [
    Scenario(nodes=40, subscribers=5, publications=30, topics=2, origins=2),
    Scenario(nodes=40, subscribers=4, publications=12, topics=2, profile="paper"),
]


def agrees(traces: Traces, directory: Path) -> None:
    expected = recount(directory)
    (row,) = network.summary(traces).collect()
    found = row.asDict()
    found["to_ideal"], found.pop("run")
    assert found.pop("to_ideal") == pytest.approx(expected["transmissions"] / expected["ideal"], rel=1e-12)
    for name, value in found.items():
        assert value == pytest.approx(expected[name], rel=1e-12), name
    lengths = {row.length: row["count"] for row in network.path_lengths(traces).collect()}
    assert lengths == expected["lengths"]
    latencies = {row.quantile: row.seconds for row in network.latencies(traces).collect()}
    assert latencies == pytest.approx(expected["latencies"], rel=1e-12)


@pytest.fixture(params=SCENARIOS, ids=lambda scenario: scenario.profile)
def simulated(request, tmp_path) -> Iterator[tuple[Path, object]]:
    directory = tmp_path / "simulated"
    scenario = request.param
    result = simulate(Scenario(**{**vars(scenario), "traces": directory}))
    return directory, result


def test_figures_of_a_simulation_agree_with_a_recount_and_with_the_simulation(spark, simulated, tmp_path):
    directory, result = simulated
    keep(read_lines(spark, str(directory)), str(tmp_path / "tables"))
    traces = load(spark, str(tmp_path / "tables"))
    assert traces.rejected.count() == 0
    agrees(traces, directory)
    (row,) = network.summary(traces).collect()
    assert (row.pairs, row.delivered) == (result.pairs, result.delivered)
    assert (row.transmissions, row.ideal) == (result.transmissions, result.ideal)
    assert row.relays == result.nodes
    assert row.completeness == 1.0
    assert row.excess == 0.0


def test_declared_columns(spark, simulated):
    traces = read_lines(spark, str(simulated[0]))
    for job, schema in (
        (network.pairs, network.PAIRS),
        (network.path_lengths, network.LENGTHS),
        (network.latencies, network.LATENCIES),
        (network.loads, network.LOADS),
        (network.summary, network.SUMMARY),
    ):
        made = job(traces).schema
        assert [(field.name, field.dataType) for field in made.fields] == [
            (field.name, field.dataType) for field in schema.fields
        ]
