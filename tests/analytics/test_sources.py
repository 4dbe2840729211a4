"""Sources: what is wrong with a directory of traces is told without Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from hushcast_analytics.errors import TracesError
from hushcast_analytics.sources import look, make_room


def test_no_directory(tmp_path: Path) -> None:
    with pytest.raises(TracesError, match="no such directory"):
        look(str(tmp_path / "nothing"))
    (tmp_path / "file").touch()
    with pytest.raises(TracesError, match="no such directory"):
        look(str(tmp_path / "file"))


def test_nothing_in_it(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "other.jsonl").touch()
    with pytest.raises(TracesError, match=r"no \*.observations.jsonl"):
        look(str(tmp_path))


def test_lines_below_are_found_and_measured(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "relay-0.observations.jsonl").write_text("x" * 3500)
    assert look(str(tmp_path)) == 10


def test_tables_are_found_and_half_written_ones_refused(tmp_path: Path) -> None:
    (tmp_path / "observations" / "run=a").mkdir(parents=True)
    (tmp_path / "observations" / "run=a" / "part.parquet").write_bytes(bytes(1200))
    with pytest.raises(TracesError, match="half written"):
        look(str(tmp_path))
    (tmp_path / "truths" / "run=a").mkdir(parents=True)
    assert look(str(tmp_path)) == 100


@pytest.mark.parametrize("source", ["hdfs://here/traces", "s3a://bucket/traces", "/tmp/*/traces"])
def test_what_only_spark_can_tell(source: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert look(source) is None
    make_room("run", source)
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    assert look(str(tmp_path / "nothing")) is None


def test_a_second_run_of_one_name(tmp_path: Path) -> None:
    make_room("a", str(tmp_path / "new"))
    assert (tmp_path / "new").is_dir()
    (tmp_path / "observations" / "run=a").mkdir(parents=True)
    with pytest.raises(TracesError, match="a run a already"):
        make_room("a", str(tmp_path))
