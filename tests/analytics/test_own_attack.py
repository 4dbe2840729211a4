"""A researcher's own attack and queries, those of the example among them; what was analysed is told."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from hushcast_analytics.analysis import AnalysisPlan, analyze, chosen
from hushcast_analytics.errors import TracesError
from hushcast_testnet.simulations.overlay_simulation import Scenario, simulate

pytestmark = pytest.mark.spark

ROOT = Path(__file__).parents[2]
EXAMPLE = "research:busiest_hop"
MINE = """
from hushcast_analytics.attacks.own_attack import own_attack
from hushcast_analytics.posteriors import POSTERIOR

def _first(frames):
    for frame in frames:
        yield frame.groupby(["run", "trial"], as_index=False).first().assign(probability=1.0)

@own_attack("topic")
def first_in_the_list(view):
    asked = view.questions.join(view.candidates, "run").select("run", "trial", "candidate")
    return asked.coalesce(1).mapInPandas(_first, POSTERIOR)

@own_attack("topic")
def nothing_at_all(view):
    return view.questions

def plain(view):
    return view.questions
"""


@pytest.fixture(autouse=True)
def _beside_a_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.py").write_text(MINE)
    monkeypatch.setattr(sys, "path", [*sys.path, str(ROOT / "examples")])
    monkeypatch.chdir(tmp_path)
    sys.modules.pop("mine", None)


def digest_by_hand(folder: Path) -> str:
    page = (ROOT / "docs" / "summary.md").read_text()
    (typed,) = re.findall(r"^find .+$", page, re.MULTILINE)
    done = subprocess.run(["bash", "-c", typed], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.split()[0]


def test_the_same_traces_and_command_give_the_same_bytes_but_for_the_date(
    spark: SparkSession, tmp_path: Path
) -> None:
    traces, out = tmp_path / "a [1] trace", tmp_path / "out{1}"
    for profile in ("paper", "hardened"):
        simulate(Scenario(12, 1, 8, topics=4, depth=2, profile=profile, seed=5, traces=traces / profile))
    command = "hushcast lab analyze traces --out out"
    wanted = AnalysisPlan((0.4,), chosen([EXAMPLE, "mine:first_in_the_list"]), seed=7)
    written = []
    for _ in range(2):
        summary = analyze(spark, str(traces), out, wanted, command=command)
        date = summary["provenance"]["date"]
        pages = [(out / name).read_text() for name in ("summary.json", "report.html")]
        assert [page.count(date) for page in pages] == [1, 1]
        written.append([page.replace(date, "then") for page in pages])
    assert written[0] == written[1]

    told = summary["provenance"]
    files = [file for file in traces.rglob("*.jsonl") if file.is_file()]
    assert (told["command"], told["seed"], told["draws"]) == (command, 7, {"overlay": 1})
    assert told["traces"] == {
        "path": str(traces),
        "files": len(files),
        "bytes": sum(file.stat().st_size for file in files),
        "digest": digest_by_hand(traces),
    }
    assert {row["attack"] for row in summary["attacks"]} == {EXAMPLE, "mine:first_in_the_list"}
    assert all(part in written[0][1] for part in (told["traces"]["digest"], "seed of who colludes"))

    research = import_module("research")
    of_pandas = research.spread_with_pandas(str(out / "tables")).to_dict("records")
    of_spark = [row.asDict() for row in research.spread_with_spark(spark, str(out / "tables")).collect()]
    assert [row["run"] for row in of_spark] == ["hardened", "paper"]
    assert of_pandas == [pytest.approx(row) for row in of_spark]


def test_an_attack_that_returns_no_beliefs_is_told(spark: SparkSession) -> None:
    (attack,) = chosen(["mine:nothing_at_all"])

    class View:
        questions = spark.createDataFrame([], "run string, trial string, token string")

    assert attack.rule is not None
    with pytest.raises(TracesError, match="nothing_at_all returns a table without candidate"):
        attack.rule(View())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("magic", "the attacks are first-spy"),
        ("nowhere:magic", "nowhere is not loaded: ModuleNotFoundError"),
        ("broken:magic", "broken is not loaded: SyntaxError"),
        ("ends:magic", "ends is not loaded: SystemExit"),
        (":magic", "is not loaded: ValueError"),
        ("mine:magic", "mine has no function magic below an @own_attack"),
        ("mine:plain", "mine has no function plain below an @own_attack"),
    ],
)
def test_an_attack_that_there_is_not_is_told(name: str, told: str, tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("def")
    (tmp_path / "ends.py").write_text("raise SystemExit(2)")
    with pytest.raises(TracesError) as error:
        chosen([name])
    assert told in str(error.value)
